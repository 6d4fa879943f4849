"""The evidence of a sample of messages about the options of a source, and how far it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from translator.message import Change, Message

Certainty: TypeAlias = Literal["certain", "likely", "unknown"]
"""By what messages of one writer alone can hold; by what the other writers were not seen to do; not at all."""


class Proposal(Struct, frozen=True):
    """A value to declare for one option.

    Args:
        value: to declare; None: the sample cannot tell, and the option is left to the operator.
        why: the evidence, without row data.
    """

    option: str
    value: str | bool | None
    certainty: Certainty
    why: str


class ReadMessage(Struct, frozen=True):
    """A message that the dialect reads, with its changes; it has none where it cannot be translated as it is."""

    message: Message
    changes: Sequence[Change]


class Propose(Protocol):
    """The part of a dialect that judges a sample."""

    def __call__(self, sample: Sequence[ReadMessage]) -> list[Proposal]: ...


class Recogniser(Struct, frozen=True):
    """A dialect's way of being tried on a sample.

    Args:
        attempts: options that let it read as much as it can, the plainest first.
    """

    attempts: Sequence[Mapping[str, str | bool]]
    propose: Propose


def notes_of(sample: Sequence[ReadMessage]) -> frozenset[str]:
    """All notes of all changes."""
    return frozenset(note for read in sample for change in read.changes for note in change.notes or ())
