"""The prose of the project avoids the phrases that docs/writing.md lists, and its commits have subjects of one form."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

import pytest

from dev.pages.prose import ROOT, Text, of_module, prose
from tests.repository.pages import names, page, section, table

PHRASES = names(table(section(page("writing.md"), "Words to avoid"), "avoid"))
_AVOIDED = re.compile(r"\b(" + "|".join(sorted(map(re.escape, PHRASES), key=len, reverse=True)) + r")\b", re.IGNORECASE)
# A sentence whose subject is a relative clause, or that begins with a preposition in place of a noun.
_OPENING = re.compile(r"(?:^|(?<=[.:] ))(Of (?!course)|Who (?![^.]*\?)|Whoever )")

# Files in which a phrase is right, and why.
EXCEPTIONS = {
    "docs/writing.md": "lists the phrases",
}


def complaints(texts: Iterable[Text]) -> list[str]:
    """Every phrase to avoid, with the file, the line and the words around it."""
    found = []
    for text in texts:
        # Code in marks, the names of arguments, and Python's None are not prose.
        prosaic = re.sub(r"`[^`]*`|\bNone\b|^\s+\w+:(?= )", "`…`", text.text, flags=re.MULTILINE)
        plain = " ".join(prosaic.split())
        for match in (*_AVOIDED.finditer(plain), *_OPENING.finditer(plain)):
            around = plain[max(0, match.start() - 40) : match.end() + 40]
            found.append(f"{text.path.relative_to(ROOT)}:{text.line}: {match[1].strip()!r} in '{around}'")
    return found


def test_the_prose_avoids_the_listed_phrases() -> None:
    """Pages, docstrings, settings, help, log events and errors."""
    found = complaints(text for text in prose() if str(text.path.relative_to(ROOT)) not in EXCEPTIONS)
    assert found == []


@pytest.mark.parametrize(
    ("source", "phrase"),
    [
        ('"""A column beside the key."""', "beside"),
        ('def f():\n    """Of the metadata topic: its offset."""', "Of"),
        ('log.info("reading goes on", topic=1)', "goes on"),
        ('x = Field(description="Whoever reads the topic.")', "Whoever"),
        ('raise ValueError(f"the topic {name} is not there")', "is not there"),
    ],
)
def test_the_search_finds(source: str, phrase: str) -> None:
    """A phrase is found in every kind of text."""
    found = complaints(of_module(ROOT / "x.py", source))
    assert any(f"{phrase!r} in" in line for line in found)


def test_the_search_leaves_code_alone() -> None:
    """Names in code marks are not prose, and neither are single words in code."""
    assert complaints(of_module(ROOT / "x.py", '"""The event `beside` a row."""\nKIND = "beside"')) == []


# The last commit before the rule.
_BEFORE_THE_RULE = "eb62ba77"


def test_commits_have_an_area_and_an_imperative_subject() -> None:
    """`area: imperative subject`, at most 72 characters, and a body that gives the reason."""
    known = subprocess.run(["git", "cat-file", "-e", _BEFORE_THE_RULE], cwd=ROOT, capture_output=True, check=False)
    if known.returncode != 0:
        pytest.skip("the history of this checkout does not reach back to the commit before the rule")
    log = subprocess.run(
        ["git", "log", "--no-merges", "--format=%s%x00%b%x01", f"{_BEFORE_THE_RULE}..HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    commits = [entry.strip("\n").split("\0") for entry in log.stdout.split("\1") if entry.strip("\n")]
    assert [] == [subject for subject, body in commits if not well_formed(subject, body)]


def well_formed(subject: str, body: str) -> bool:
    """Whether a commit message follows the rule."""
    return bool(re.match(r"[a-z][a-z_-]*: [a-z]", subject)) and len(subject) <= 72 and bool(body.strip())


@pytest.mark.parametrize(
    ("subject", "body", "right"),
    [
        ("sink: park a table whose data file is missing", "A reader would fail.", True),
        ("The sink parks a table", "A reader would fail.", False),
        ("sink: Park a table", "A reader would fail.", False),
        ("sink: park a table", "", False),
        ("sink: " + "x" * 70, "A reader would fail.", False),
    ],
)
def test_the_rule_of_commits(subject: str, body: str, right: bool) -> None:
    """The area comes first, the subject starts in lower case, and a reason follows."""
    assert well_formed(subject, body) is right
