"""Find out which raw record a written record comes from, according to its origin."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from translator.operations.audit_index import digest
from translator.translation.dead_letter import read_dead_letter


class RecordOrigin(Struct, frozen=True):
    """The origin stated in a written record. `n` is None for a dead letter."""

    source: str
    topic: str
    partition: int
    offset: int
    n: int | None
    content: bytes
    """An event's digest, or a dead letter's code."""
    refused: bool = False
    """True if the message of the dead letter is missing only from a projection."""


def of_event(record: Any) -> RecordOrigin | None:
    """Return the origin of a record in the canonical topic, or None if the record has no origin."""
    headers = record.headers() or []
    try:
        source, topic, partition, offset, n = dict(headers)["cdc-id"].decode().split("/")
        numbers = int(partition), int(offset), int(n)
    except (KeyError, ValueError):
        return None
    return RecordOrigin(source, topic, *numbers, digest(record.key(), record.value(), headers))


def of_letter(record: Any) -> RecordOrigin | None:
    """Return the origin of a record in the dead-letter topic, or None if the record has no origin."""
    found = read_dead_letter(record.key(), record.value(), record.headers() or ())
    if found is None:
        return None
    message, refused = found.message, found.output is not None
    return RecordOrigin(
        found.source, message.topic, message.partition, message.offset, None, found.code.encode(), refused=refused
    )
