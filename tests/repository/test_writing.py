"""The prose avoids the phrases that docs/writing.md lists, and commit messages follow one form."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

import pytest

from dev.pages.prose import ROOT, Text, of_module, prose
from tests.repository.pages import names, page, section, table

PHRASES = names(table(section(page("writing.md"), "Words to avoid"), "avoid"))
_AVOIDED = re.compile(r"\b(" + "|".join(sorted(map(re.escape, PHRASES), key=len, reverse=True)) + r")\b", re.IGNORECASE)
# A sentence whose subject is a relative clause, or that begins with a preposition instead of a noun.
_OPENING = re.compile(r"(?:^|(?<=[.:] ))(Of (?!course)|Who (?![^.]*\?)|Whoever )")

# Files in which a listed phrase is allowed, and why.
EXCEPTIONS = {
    "docs/writing.md": "lists the phrases",
}


_QUANTITIES = frozenset({"all", "both", "each", "half", "many", "most", "none", "one", "some", "three", "two"})


def _unlisted(match: re.Match[str]) -> str:
    quantity, _, which = match[0].partition(" of ")
    return match[0] if which and quantity.lower() not in _QUANTITIES else "`…`"


def complaints(texts: Iterable[Text]) -> list[str]:
    """Return every listed phrase with its file, line and surrounding words."""
    found = []
    for text in texts:
        # Code in marks, the names of arguments, and Python's None are not prose. "One of which" is good English.
        pattern = r"`[^`]*`|\bNone\b|^\s+\w+:(?= )|\w+ of which(?= )"
        prosaic = re.sub(pattern, _unlisted, text.text, flags=re.MULTILINE)
        plain = " ".join(prosaic.split())
        for match in (*_AVOIDED.finditer(plain), *_OPENING.finditer(plain)):
            around = plain[max(0, match.start() - 40) : match.end() + 40]
            found.append(f"{text.path.relative_to(ROOT)}:{text.line}: {match[1].strip()!r} in '{around}'")
    return found


def test_the_prose_avoids_the_listed_phrases() -> None:
    """Pages, docstrings, settings, help, log events and errors contain no listed phrase."""
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
    """The search finds a phrase in every kind of text."""
    found = complaints(of_module(ROOT / "x.py", source))
    assert any(f"{phrase!r} in" in line for line in found)


def test_the_search_leaves_code_alone() -> None:
    """The search ignores names in code marks and single words in code."""
    assert complaints(of_module(ROOT / "x.py", '"""The event `beside` a row."""\nKIND = "beside"')) == []


# The last commit before this rule existed.
_BEFORE_THE_RULE = "eb62ba77"


def test_commits_have_an_area_and_an_imperative_subject() -> None:
    """Every commit has the subject `area: imperative subject` in at most 72 characters, and a body with the reason."""
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
    """Return whether a commit message follows the rule."""
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
    """A message starts with an area and a lower-case subject, and has a reason."""
    assert well_formed(subject, body) is right
