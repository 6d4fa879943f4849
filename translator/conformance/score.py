"""The scores of a plug-in. They show which properties of a dialect it has, and the first counterexample for each one
that it lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

Result: TypeAlias = Literal["passed", "failed", "not applicable"]


class Failed(Exception):
    """A plug-in lacks a property.

    Args:
        example: the first example, without row data.
        remedy: the advice for the plug-in's author.
    """

    def __init__(self, example: str, remedy: str) -> None:
        super().__init__(f"{example}. {remedy}")


class NotApplicable(Exception):
    """The property cannot be checked. The message is the reason."""


class Score(Struct, frozen=True):
    """The result for one property.

    Args:
        detail: the first example with advice, or the reason why the property is not applicable. Empty if the plug-in
            passed.
    """

    name: str
    result: Result
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.result:<16}{self.name}{': ' if self.detail else ''}{self.detail}"


class Scorecard(Struct, frozen=True):
    """A plug-in's scores, one for each property. As text, one line per score."""

    plugin: str
    scores: Sequence[Score]

    @property
    def passed(self) -> bool:
        """Return whether no property failed."""
        return all(score.result != "failed" for score in self.scores)

    @property
    def complete(self) -> bool:
        """Return whether every property was checked and passed."""
        return all(score.result == "passed" for score in self.scores)

    def __str__(self) -> str:
        return "\n".join([self.plugin, *map(str, self.scores)])
