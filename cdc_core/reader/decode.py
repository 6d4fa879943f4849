"""Records to changes, by the first byte of the value: no configuration of the writer is needed (docs/reading.md)."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import fastavro
import msgspec
from fastavro.types import Schema

from cdc_core.envelope import VERSION, ChangeEvent
from cdc_core.reader.change import Change
from cdc_core.reader.debezium import event_of_debezium, is_debezium
from cdc_core.reader.errors import ReadError
from cdc_core.reader.known_schemas import KnownSchemas
from cdc_core.wire_format import (
    CONFLUENT,
    CONFLUENT_SIZE,
    JSON,
    MARKER,
    SINGLE_OBJECT,
    event_of_datum,
    event_of_json,
)

# What fastavro and msgspec say to bytes that are none of theirs.
_FOREIGN = (
    *(ValueError, TypeError, LookupError, ArithmeticError, EOFError, StopIteration, MemoryError, RecursionError),
    *(struct.error, msgspec.MsgspecError),
)


class ChangeReader:
    """Reads values of records of the canonical topic, whatever codec and framing the translator was told to write.

    Args:
        schemas: gives images their types; None leaves values as JSON has them.
        later: Avro schemas of later releases, as JSON text, by the 16 hex digits of their fingerprint or by their id in
            the registry. The schema of this release need not be named.
    """

    def __init__(self, schemas: KnownSchemas | None = None, later: Mapping[str | int, str] | None = None) -> None:
        self._schemas = schemas
        self._later = {
            _header(name): fastavro.parse_schema(_without_logical_types(text)) for name, text in (later or {}).items()
        }

    def read(self, value: bytes) -> Change:
        """The change in the value of a record.

        Raises:
            ReadError: not an event of version 1, or one whose images are not what their schema says.
            UnknownSchema: it names a schema that was not learned.
        """
        return Change.of(decode(value, self._later), self._schemas)

    def read_record(
        self, value: bytes | None, key: bytes | None = None, headers: Iterable[tuple[str, bytes | None]] = ()
    ) -> Change | None:
        """The change in a record of any topic that the translator writes events to, a Debezium projection too.

        None for a record without a value, which repeats a delete. A projection of rows by key has no changes in it.

        Raises:
            ReadError: as `read`.
            UnknownSchema: as `read`.
        """
        if value is None:
            return None
        if not value.startswith(JSON):
            return self.read(value)
        told = {name: text for name, text in headers if text is not None}
        try:
            event = event_of_debezium(value, key, told) if is_debezium(value) else None
        except _FOREIGN as error:
            raise ReadError(f"not a record of a Debezium projection: {_reason(error)}") from None
        return self.read(value) if event is None else Change.of(_of_version(event), self._schemas)


def decode(value: bytes, later: Mapping[bytes, Schema] | None = None) -> ChangeEvent:
    """The event in the value of a record.

    Raises:
        ReadError: not an event of version 1.
    """
    try:
        event = _event(value, later or {})
    except _FOREIGN as error:
        raise ReadError(f"a value that begins with {value[:10].hex()} is no event: {_reason(error)}") from None
    return _of_version(event)


def _of_version(event: ChangeEvent) -> ChangeEvent:
    if event.v != VERSION:
        raise ReadError(f"{event.id}: version {event.v} of the envelope; this reader knows {VERSION}")
    return event


def _event(value: bytes, later: Mapping[bytes, Schema]) -> ChangeEvent:
    if value.startswith(JSON):
        return event_of_json(value)
    size = len(SINGLE_OBJECT) if value.startswith(MARKER) else CONFLUENT_SIZE
    head, body = value[:size], io.BytesIO(value[size:])
    if head in later:
        event = event_of_datum(body, later[head])
    elif head == SINGLE_OBJECT:
        event = event_of_datum(body)
    elif head.startswith(CONFLUENT):
        # Another release's schema may be behind the id. A datum of version 1 begins with what this release knows.
        return event_of_datum(body)
    else:
        raise ValueError("neither JSON, nor Avro of a schema that is known here")
    if body.read(1):
        raise ValueError("there are bytes behind it")
    return event


def _reason(error: BaseException) -> str:
    """Our own words; those of libraries may quote values."""
    return str(error) if type(error) is ValueError else type(error).__name__


def _header(name: str | int) -> bytes:
    return MARKER + bytes.fromhex(name) if isinstance(name, str) else CONFLUENT + name.to_bytes(4, "big")


def _without_logical_types(text: str) -> Any:
    """A schema under which times stay numbers: a source may send one that no datetime holds."""
    return json.loads(text, object_hook=lambda node: node["type"] if "logicalType" in node else node)
