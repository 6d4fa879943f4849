"""The Chinese pages have the structure, the commands and the links of the English ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.repository.pages import DOCS, ROOT

TRANSLATED = [ROOT / "README.md", DOCS / "tutorial.md"]
each = pytest.mark.parametrize("english", TRANSLATED, ids=lambda path: path.stem)


def _chinese(english: Path) -> Path:
    return english.with_suffix(".zh-CN.md")


def _blocks(path: Path) -> list[str]:
    return re.findall(r"^```.*?^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def _prose(path: Path) -> str:
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@each
def test_sections(english: Path) -> None:
    """Both pages have the same sections and tables, in the same order."""
    lines = (
        re.compile(r"^(#+ (?:\d+\.)?|\| |- )", re.MULTILINE).findall(_prose(path))
        for path in (english, _chinese(english))
    )
    first, second = lines
    assert first == second
    assert len(first) > 5


@each
def test_commands(english: Path) -> None:
    assert _blocks(english) == _blocks(_chinese(english))
    assert len(_blocks(english)) > 5


@each
def test_links(english: Path) -> None:
    """Both pages link to the same pages. A translated page links to translated pages."""
    translated = {path.name for path in TRANSLATED}

    def targets(path: Path) -> list[str]:
        found = re.findall(r"\]\(([^)#][^)]*)\)", _prose(path))
        return sorted(target for target in found if not target.startswith(("README", english.stem)))

    wanted = [
        re.sub(r"\.md$", ".zh-CN.md", target) if Path(target).name in translated else target
        for target in targets(english)
    ]
    assert sorted(wanted) == targets(_chinese(english))


@each
def test_numbers(english: Path) -> None:
    """Measured values with four or more digits are the same."""
    found = (re.findall(r"\d{1,3}(?: \d{3})+", _prose(path)) for path in (english, _chinese(english)))
    first, second = found
    assert first == second
