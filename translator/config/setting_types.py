"""The types of settings that are more than texts and numbers: names, topics and patterns over them, beginnings."""

from __future__ import annotations

import fnmatch
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AwareDatetime, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator


def _in_words(words: str) -> WrapValidator:
    """Tell a text of another form in words: nobody reads regular expressions at three in the morning."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise ValueError(words) from None

    return WrapValidator(validate)


Name = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._-]{1,128}$"),
    _in_words("expected a name of letters, digits, dots, - and _, at most 128"),
]
# A name, or a pattern over names: `*` stands for any characters, `?` for one.
TopicPattern = Annotated[
    str,
    Field(pattern=r"^\.{0,2}[A-Za-z0-9_*?-][A-Za-z0-9._*?-]*$", max_length=249),
    _in_words("expected the name of a topic, or a pattern with * and ?, which is no regular expression"),
]


# Where a partition begins that the group never committed.
Start: TypeAlias = Literal["earliest", "latest"] | AwareDatetime


def is_pattern(topic: str) -> bool:
    """Return whether an entry of `topics` stands for all topics that it matches."""
    return "*" in topic or "?" in topic


def matches(topic: str, entry: str) -> bool:
    """Return whether an entry of `topics` means this topic."""
    return fnmatch.fnmatchcase(topic, entry)  # an entry has no `[`, fnmatch's third special character
