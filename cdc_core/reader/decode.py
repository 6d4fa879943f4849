"""Decode record values into changes. The first byte identifies the encoding, so no configuration is needed
(docs/reading.md).
"""

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

# The exceptions that fastavro and msgspec raise for invalid bytes.
_FOREIGN = (
    *(ValueError, TypeError, LookupError, ArithmeticError, EOFError, StopIteration, MemoryError, RecursionError),
    *(struct.error, msgspec.MsgspecError),
)


class ChangeReader:
    """Reads the values of canonical records, whatever codec and framing the translator used.

    Args:
        schemas: the source of the column types for images. None leaves values in their JSON types.
        later: the Avro schemas of later releases, as JSON text. The keys are their fingerprints (16 hex digits) or
            registry ids. The schema of this release is built in.
    """

    def __init__(self, schemas: KnownSchemas | None = None, later: Mapping[str | int, str] | None = None) -> None:
        self._schemas = schemas
        self._later = {
            _header(name): fastavro.parse_schema(_without_logical_types(text)) for name, text in (later or {}).items()
        }

    def read(self, value: bytes) -> Change:
        """Return the change in a record value.

        Raises:
            ReadError: the value is not a version 1 event, or the event's images do not match its schema.
            UnknownSchema: the event's schema has not been learned.
        """
        return Change.of(decode(value, self._later), self._schemas)

    def read_record(
        self, value: bytes | None, key: bytes | None = None, headers: Iterable[tuple[str, bytes | None]] = ()
    ) -> Change | None:
        """Return the change in a record from any of the translator's event topics, including Debezium projections.

        It returns None for a tombstone, which only repeats a delete. Upsert projections cannot be read, because they
        contain rows by key and no changes.

        Raises:
            ReadError: see `read`.
            UnknownSchema: see `read`.
        """
        if value is None:
            return None
        if not value.startswith(JSON):
            return self.read(value)
        told = {name: text for name, text in headers if text is not None}
        try:
            event = event_of_debezium(value, key, told) if is_debezium(value) else None
        except _FOREIGN as error:
            raise ReadError(f"the record was not written by a Debezium projection: {_reason(error)}") from None
        return self.read(value) if event is None else Change.of(_of_version(event), self._schemas)


def decode(value: bytes, later: Mapping[bytes, Schema] | None = None) -> ChangeEvent:
    """Return the event in a record value.

    Raises:
        ReadError: not a version 1 event.
    """
    try:
        event = _event(value, later or {})
    except _FOREIGN as error:
        raise ReadError(f"the value begins with {value[:10].hex()} and is not an event: {_reason(error)}") from None
    return _of_version(event)


def _of_version(event: ChangeEvent) -> ChangeEvent:
    if event.v != VERSION:
        raise ReadError(
            f"{event.id}: the event has envelope version {event.v}, but this reader only supports {VERSION}"
        )
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
        # The id can belong to a schema from another release. Every version 1 datum begins with the fields that this
        # release knows.
        return event_of_datum(body)
    else:
        raise ValueError("the value is neither JSON nor Avro with a known schema")
    if body.read(1):
        raise ValueError("unexpected bytes follow the datum")
    return event


def _reason(error: BaseException) -> str:
    """Return the message of an error only if this package raised it, because errors from libraries may quote values."""
    return str(error) if type(error) is ValueError else type(error).__name__


def _header(name: str | int) -> bytes:
    return MARKER + bytes.fromhex(name) if isinstance(name, str) else CONFLUENT + name.to_bytes(4, "big")


def _without_logical_types(text: str) -> Any:
    """Return the schema with times as numbers, because a source may send times that datetime cannot represent."""
    return json.loads(text, object_hook=lambda node: node["type"] if "logicalType" in node else node)
