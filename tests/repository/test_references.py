"""Check that every reference to a page, a section or a rule has a target.

`docs/design.md §4.2` refers to a section of a page, and `docs/sink-design.md, R14` to a rule of the sink. A bare `§4.2`
in the code and the tests of a dialect refers to the dialect's pages in docs/formats/, which share one numbering.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.repository.pages import ROOT

REFERENCE = re.compile(
    r"(?<![\w/])(docs/[\w/-]+\.md)(?: §(\d+[a-z]?(?:\.\d+)*)|, ([RC]\d+))?|(?<!\.md )§(\d+[a-z]?(?:\.\d+)*)"
)
ELSEWHERE = re.compile(r"(?<!docs/)\bformats/\w+\.md|\blakehouse (?:page|R\d+)|\bdesign section \d+")
DIALECTS = ("canal", "dts_avro", "qlik", "shareplex")


@cache
def sections(page: str) -> frozenset[str]:
    """Return the numbers of headings (`4`, `3a`, `6.5`), list items (`4.3`) and rules (`R14`, `C3`).

    Pages of a format (`canal.md`, `canal_values.md`) count as one page.
    """
    found, heading = set(), ""
    pages = [ROOT / page, *(ROOT / page).parent.glob(f"{Path(page).stem}_*.md")]
    for line in "\n".join(path.read_text(encoding="utf-8") for path in pages).splitlines():
        if named := re.match(r"#{2,4} (\d+[a-z]?(?:\.\d+)*)", line):
            heading = named[1]
            found.add(heading)
        elif item := re.match(r"(\d+)\. ", line):
            found.add(f"{heading}.{item[1]}")
        elif rule := re.match(r"\| ([RC]\d+) \|", line):
            found.add(rule[1])
    return frozenset(found)


def page_of(path: str) -> str | None:
    """Return the page that a bare section number in a file refers to."""
    places = ("translator/dialects/{}/", "tests/translator/dialects/{}/", "docs/formats/{}")

    named = [name for name in DIALECTS for place in places if path.startswith(place.format(name))]
    return f"docs/formats/{named[0]}.md" if named else None


def broken(text: str, path: str = "README.md") -> Iterator[str]:
    """Return the references in a text that have no target. `path` is the file of the text."""
    yield from (f"{found} is no page of this project" for found in ELSEWHERE.findall(text))
    for named, section, rule, bare in REFERENCE.findall(text):
        page = named or page_of(path)
        wanted = section or rule or bare
        if page is None:
            yield f"§{bare} of which page?"
        elif not (ROOT / page).exists():
            yield f"{page} is no page"
        elif wanted and wanted not in sections(page):
            yield f"{page} has no {wanted}"


def test_every_reference_leads_somewhere() -> None:
    """Every reference in the code, the tests and the pages has a target."""
    files = [
        path
        for folder in ("cdc_core", "translator", "spark_sink", "dev", "bench", "tests", "docs")
        for pattern in ("*.py", "*.md")
        for path in (ROOT / folder).rglob(pattern)
        if path != Path(__file__)
    ]
    found = {}
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        if complaints := list(broken(path.read_text(encoding="utf-8"), name)):
            found[name] = complaints
    assert {} == found


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("(formats/canal.md section 4)", "README.md"),
        ("docs/formats/oracle.md", "README.md"),
        ("docs/formats/canal.md §99", "README.md"),
        ("docs/formats/qlik.md §3.77", "README.md"),
        ("docs/sink-design.md, R77", "README.md"),
        ("as in design section 4", "README.md"),
        ("(lakehouse R14)", "README.md"),
        ("(§4)", "translator/message.py"),
        ("(§99)", "translator/dialects/canal/rows.py"),
    ],
)
def test_the_search_finds(text: str, path: str) -> None:
    """The search finds references without a target."""
    assert 1 == len(list(broken(text, path)))


def test_the_search_is_not_too_eager() -> None:
    """The search accepts a page without a section, and existing sections and rules."""
    assert [] == list(broken("docs/formats/canal.md, docs/formats/canal.md §6.5, docs/sink-design.md, R14 and C3"))
    assert [] == list(broken("(§6.5)", "translator/dialects/canal/rows.py"))
