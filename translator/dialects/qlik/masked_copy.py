"""Masked copies of Qlik messages. JSON text is unchanged except for the values. Avro is decoded, and encoded again with
different values."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import fastavro
import msgspec
from msgspec.structs import replace

from translator.dialects._avro_datum import DatumReader
from translator.dialects._avro_schema import AvroType
from translator.dialects._masked_json import Part, Path, masked_json, masked_key
from translator.dialects._masked_values import MaskedValues
from translator.dialects.qlik.avro import FRAME_BYTES, open_envelope, registry_id
from translator.dialects.qlik.frame import CONFLUENT_AVRO, ENVELOPED_AVRO, JSON, METADATA, REGISTRY, framing
from translator.dialects.qlik.keys import is_framed
from translator.dialects.qlik.metadata import Metadata
from translator.dialects.qlik.row_schema import RowSchema, WriterSchema, WriterSchemas
from translator.dialects.qlik.sections import BEFORE, DATA, HEADER_NAMES, HEADERS, SEPARATOR, Splitter
from translator.errors import MessageError, Unmaskable
from translator.message import Limits, Message

_AROUND = frozenset({"magic", "type", "headers", "messageSchemaId", "messageSchema"})
_DESCRIBING = frozenset({"schemaId", "lineage", "tableStructure", "dataSchema", HEADERS})
"""The message fields that are unrelated to rows: all metadata, and the headers."""

_COLUMN_HEADERS = frozenset(f"{HEADERS}{SEPARATOR}{name}" for name in HEADER_NAMES)


_Made = TypeVar("_Made")


class MaskedCopies:
    """Makes copies, using the options and what the source has learned.

    Args:
        splitter: the sections declared by the operator.
        embedded: schemas contained in messages.
        found: looks up what was learned under a key: metadata or a registry schema.
    """

    def __init__(
        self,
        splitter: Splitter | None,
        limits: Limits,
        embedded: WriterSchemas,
        found: Callable[[str, type[Any]], Any],
        masked: MaskedValues,
    ) -> None:
        self._splitter = splitter
        self._limits = limits
        self._embedded = embedded
        self._found = found
        self._masked = masked

    def copy(self, message: Message) -> Message:
        """Return a copy without headers.

        Raises:
            Unmaskable: the message cannot be read, or its metadata or schema is unknown.
        """
        try:
            value = self._value(message.value) if message.value else message.value
            return replace(message, key=self._key(message.key), value=value, headers=())
        except MessageError as error:
            raise Unmaskable(f"it cannot be read: {error.code}") from None

    def _value(self, value: bytes) -> bytes:
        return {JSON: self._json, ENVELOPED_AVRO: self._enveloped, CONFLUENT_AVRO: self._framed}[framing(value)](value)

    def _enveloped(self, value: bytes) -> bytes:
        envelope = open_envelope(value, self._limits)
        if envelope.type == METADATA:
            return value
        if envelope.schema_text is not None:
            schema = self._embedded.of(envelope.schema_text).row
        else:
            schema = self._learned(envelope.schema_id or "", Metadata).row_schema
        return value.removesuffix(_sized(envelope.message)) + _sized(
            _masked_row(schema, envelope.message, self._masked)
        )

    def _framed(self, value: bytes) -> bytes:
        schema = self._learned(f"{REGISTRY}{registry_id(value)}", WriterSchema).row
        return value[:FRAME_BYTES] + _masked_row(schema, value[FRAME_BYTES:], self._masked)

    def _key(self, key: bytes | None) -> bytes | None:
        if key is None or not is_framed(key):
            return masked_key(key, self._masked)
        frame, data = key[:FRAME_BYTES], key[FRAME_BYTES:]
        schema = self._found(f"{REGISTRY}{registry_id(frame)}", WriterSchema)
        # The registry is not queried for the key's schema if the message has a row.
        return frame + (self._masked.bytes(data) if schema is None else _rewritten(schema.record, data, self._masked))

    def _learned(self, key: str, kind: type[_Made]) -> _Made:
        found: _Made | None = self._found(key, kind)
        if found is None:
            raise Unmaskable("its metadata or schema is unknown")
        return found

    def _json(self, value: bytes) -> bytes:
        splitter = self._splitter
        try:
            root = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            root = None
        if not isinstance(root, dict):
            raise Unmaskable("it is not JSON")
        body = root.get("message")
        # Headers next to rows that are objects are not columns. Without such an object, headers cannot be distinguished
        # from columns.
        beside = frozenset(HEADER_NAMES) if isinstance(root.get(DATA, root.get(BEFORE)), dict) else frozenset()

        inside = _DESCRIBING | _COLUMN_HEADERS
        around = inside | _AROUND | beside

        def part(path: Path) -> Part:
            if path[:1] == ("message",) and isinstance(body, dict):
                path, kept = path[1:], inside
            else:
                kept = around
            section = splitter.section_of(path[0]) if splitter is not None and path else None
            if section is not None:
                return "keep" if section == HEADERS else "value"
            return "keep" if not kept.isdisjoint(path[:1]) else "value"

        return masked_json(value, self._masked, part)


def _sized(data: bytes) -> bytes:
    """Return bytes in Avro's encoding, after their length."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "bytes", data)
    return out.getvalue()


def _masked_row(schema: RowSchema, data: bytes, masked: MaskedValues) -> bytes:
    section_of: Callable[[str], str | None] = schema.splitter.section_of if schema.splitter else lambda name: name
    kept = {name for name, _ in schema.type.fields if section_of(name) == HEADERS}
    return _rewritten(schema.reader, data, masked, kept)


def _rewritten(reader: DatumReader, data: bytes, masked: MaskedValues, kept: Collection[str] = ()) -> bytes:
    """Return a record with different values in all fields except those to keep."""
    record = reader.read(data)
    fields = dict(reader.schema.fields)
    return reader.write(
        {name: cell if name in kept else _cell(cell, fields[name], masked) for name, cell in record.items()}
    )


def _cell(cell: Any, type_: AvroType, masked: MaskedValues) -> Any:
    """Mask a cell as read by fastavro. In a union with several types, the value shows which type it has."""
    types = [branch for branch in type_.branches if branch.kind != "null"] or [type_]
    match cell:
        case None | bool():
            return cell
        case dict():
            fields = {name: of for found in types for name, of in found.fields}
            return {name: _cell(part, fields[name], masked) for name, part in cell.items()}
        case int():
            return int(masked.number(str(cell)))
        case float():
            return float(masked.text(repr(cell)))
        case bytes():
            return _bytes(cell, masked, types)
        case _:
            # An enum symbol is part of the schema, and a schema has only a few symbols.
            return cell if any(found.kind == "enum" for found in types) else masked.text(cell)


def _bytes(cell: bytes, masked: MaskedValues, types: list[AvroType]) -> bytes:
    """Return the same number of bytes: a smaller number for a decimal, otherwise text with different letters."""
    if any(found.logical == "decimal" for found in types):
        number = masked.number(str(int.from_bytes(cell, "big", signed=True)))
        return int(number).to_bytes(len(cell), "big", signed=True)
    try:
        text = masked.text(cell.decode()).encode()
    except UnicodeDecodeError:
        return masked.bytes(cell)
    return text if len(text) == len(cell) else masked.bytes(cell)
