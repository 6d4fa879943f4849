"""Define the types of settings beyond text and numbers: names, topics and topic patterns, and start positions."""

from __future__ import annotations

import fnmatch
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AwareDatetime, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator


def _in_words(words: str) -> WrapValidator:
    """Describe the expected value in words, because regular expressions are hard to read in an error."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise ValueError(words) from None

    return WrapValidator(validate)


Name = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._-]{1,128}$"),
    _in_words("expected a name of at most 128 letters, digits, dots, - and _"),
]
# A name or a name pattern, in which `*` matches any characters and `?` matches one.
TopicPattern = Annotated[
    str,
    Field(pattern=r"^\.{0,2}[A-Za-z0-9_*?-][A-Za-z0-9._*?-]*$", max_length=249),
    _in_words("expected a topic name, or a pattern with * and ? (regular expressions are not supported)"),
]


# The start position in a partition for which the group has no committed offset.
Start: TypeAlias = Literal["earliest", "latest"] | AwareDatetime


def is_pattern(topic: str) -> bool:
    """Return whether an entry of `topics` is a pattern."""
    return "*" in topic or "?" in topic


def matches(topic: str, entry: str) -> bool:
    """Return whether an entry of `topics` matches this topic."""
    return fnmatch.fnmatchcase(topic, entry)  # fnmatch also treats `[` as special, but entries contain no `[`
