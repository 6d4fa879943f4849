"""Look up the meanings of codes and notes, and the runbooks of alerts, in the words of the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct


class Meaning(Struct, frozen=True, forbid_unknown_fields=True):
    """An explanation of a code or a note.

    Args:
        page: the documentation page that explains it, as a path in the repository.
        heading: the section of that page.
    """

    page: str
    heading: str
    text: str


class Runbook(Struct, frozen=True, forbid_unknown_fields=True):
    """The instructions for an alert.

    Args:
        paragraphs: a text in which code is between backquotes.
    """

    page: str
    paragraphs: Sequence[str]


@cache
def runbooks() -> Mapping[str, Runbook]:
    """Return the runbooks by alert, in page order."""
    text = resources.files("translator.web").joinpath("runbooks.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Runbook])


@cache
def meanings() -> Mapping[str, Sequence[Meaning]]:
    """Return all meanings by name. A name may mean something else in each dialect."""
    text = resources.files("translator.web").joinpath("meanings.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, list[Meaning]])


def meaning(name: str, dialect: str = "") -> Meaning | None:
    """Return what a code or a note means in a dialect, or None for a name that the documentation does not explain.

    Args:
        name: the name. It may include the subject of a note, as in `TZ_ASSUMED=UTC`.
    """
    found = meanings().get(name.partition("=")[0], ())
    own = f"docs/dialects/{dialect}.md"
    return next((each for each in found if each.page == own), found[0] if found else None)
