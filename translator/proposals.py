"""Rate the evidence about a source's options in a sample of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from translator.message import Change, Message

Certainty: TypeAlias = Literal["certain", "likely", "unknown"]
"""The reliability of the evidence: only one writer can produce such messages, no other known writer produces them, or
no evidence exists.
"""


class Proposal(Struct, frozen=True):
    """A proposed value for one option.

    Args:
        value: the proposed value. None means that the sample does not determine it, and the operator has to decide.
        why: the evidence, without row data.
    """

    option: str
    value: str | bool | None
    certainty: Certainty
    why: str


class ReadMessage(Struct, frozen=True):
    """A message that the dialect reads, and its changes. A message that cannot be translated has no changes."""

    message: Message
    changes: Sequence[Change]


class Propose(Protocol):
    """The part of a dialect that judges a sample."""

    def __call__(self, sample: Sequence[ReadMessage]) -> list[Proposal]: ...


class Recognizer(Struct, frozen=True):
    """Options for reading a sample in a dialect.

    Args:
        attempts: the options with which the dialect can read as much as possible, the simplest ones first.
    """

    attempts: Sequence[Mapping[str, str | bool]]
    propose: Propose


def notes_of(sample: Sequence[ReadMessage]) -> frozenset[str]:
    """Return the notes from all changes."""
    return frozenset(note for read in sample for change in read.changes for note in change.notes or ())
