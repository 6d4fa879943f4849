"""List the requirements of each dialect with the tests that cover them, and write the page with both.

A test lists the requirements (requirements.toml) that it covers in the marker `requirement`, a case in a last line
`Shows:` of its about.md. `python -m tests.translator.dialects.requirements` writes the page.
"""

from __future__ import annotations

import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import tests.translator
from tests.translator.dialects.case import CASES, find_cases, shown_by

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "requirements.md"
_HEAD = """# Requirements of the dialects

This page lists the requirements of each dialect and the tests in `tests/translator/` that cover them.
`python -m tests.translator.dialects.requirements` generates it from the markers of the tests.
"""

REQUIREMENTS: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("requirements.toml").read_text(encoding="utf-8")
)
"""The texts of the requirements by dialect and group."""


def identified() -> dict[str, str]:
    """Return the text of every requirement by ID, `<dialect>.<group>.<number from 1>`."""
    return {
        f"{dialect}.{group}.{number}": words
        for dialect, groups in REQUIREMENTS.items()
        for group, all_words in groups.items()
        for number, words in enumerate(all_words, 1)
    }


def shown() -> dict[str, list[str]]:
    """Return the sorted tests of each requirement, as `<file>::<test>` in tests/translator, with cases in brackets."""
    found: dict[str, list[str]] = {}
    for test, ids in sorted([*_marked(), *_cases()]):
        for name in ids:
            found.setdefault(name, []).append(test)
    return found


def page() -> str:
    """Return the text of the page."""
    tests_by_id = shown()
    lines = [_HEAD]
    for dialect in REQUIREMENTS:
        lines += [f"## {dialect}", "", f"The format: [{dialect}.md]({dialect}.md)", ""]
        lines += ["| requirement | text | tests |", "| --- | --- | --- |"]
        own = {name: words for name, words in identified().items() if name.startswith(f"{dialect}.")}
        for name, words in own.items():
            named = "<br>".join(f"`{test}`" for test in tests_by_id.get(name, ()))
            lines.append(f"| {name} | {words.replace('|', chr(92) + '|')} | {named} |")
        lines.append("")
    return "\n".join(lines)


def _marked() -> Iterator[tuple[str, tuple[str, ...]]]:
    for module in pkgutil.walk_packages(tests.translator.__path__, "tests.translator."):
        if module.name.rpartition(".")[2].startswith("test_"):
            file = module.name.removeprefix("tests.translator.").replace(".", "/") + ".py"
            yield from _of(import_module(module.name), file)


def _of(holder: Any, path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the marked tests of a module or a test class."""
    for name, found in vars(holder).items():
        if name.startswith("Test") and isinstance(found, type):
            yield from _of(found, f"{path}::{name}")
        elif name.startswith("test_"):
            for mark in getattr(found, "pytestmark", ()):
                if mark.name == "requirement":
                    yield f"{path}::{name}", mark.args


def _cases() -> Iterator[tuple[str, tuple[str, ...]]]:
    for case in find_cases():
        yield f"dialects/test_cases.py::test_case[{case.relative_to(CASES).as_posix()}]", shown_by(case)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
