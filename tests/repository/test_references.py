"""References to the format pages lead somewhere: the page is there, and so is the section that is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.repository.pages import DOCS, ROOT

FORMATS = DOCS / "formats"
REFERENCE = re.compile(r"(?<!docs/)formats/(\w+)\.md|docs/formats/(\w+)\.md(?: §(\d+(?:\.\d+)*))?")


@cache
def sections(name: str) -> frozenset[str]:
    """The numbers of a page's headings: `4`, `4.3`."""
    text = (FORMATS / f"{name}.md").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^#{2,4} (\d+(?:\.\d+)*)", text, re.MULTILINE))


def broken(text: str) -> Iterator[str]:
    """The references of a text that lead nowhere."""
    for elsewhere, name, section in REFERENCE.findall(text):
        if elsewhere or not (FORMATS / f"{name}.md").exists():
            yield f"formats/{elsewhere or name}.md is no page"
        elif section and section not in sections(name):
            yield f"docs/formats/{name}.md has no section {section}"


def test_every_reference_leads_somewhere() -> None:
    """In the code, the tests and the pages."""
    files = [
        path
        for folder in ("cdc_core", "translator", "spark_sink", "dev", "bench", "tests", "docs")
        for pattern in ("*.py", "*.md")
        for path in (ROOT / folder).rglob(pattern)
    ]
    found = {
        str(path.relative_to(ROOT)): complaints
        for path in files
        if path.name != "test_references.py" and (complaints := list(broken(path.read_text(encoding="utf-8"))))
    }
    assert {} == found


@pytest.mark.parametrize(
    "text",
    [
        "(formats/canal.md section 4)",
        "docs/formats/oracle.md",
        "docs/formats/canal.md §99",
        "docs/formats/qlik.md §3.77",
    ],
)
def test_the_search_finds(text: str) -> None:
    """The search above can fail."""
    assert 1 == len(list(broken(text)))


def test_the_search_is_not_too_eager() -> None:
    """A page alone, and a section that is there, are fine."""
    assert [] == list(broken("docs/formats/canal.md, docs/formats/canal.md §6.5 and docs/formats/qlik.md §3"))
