"""Compile writer schemas. They read rows and message keys, and reveal facts about the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

from msgspec import Struct

from translator.dialects._avro_datum import DatumReader
from translator.dialects._avro_schema import AvroType, parse_schema
from translator.dialects._json import JsonObject
from translator.dialects.qlik.avro_values import AvroColumn, avro_column
from translator.dialects.qlik.sections import BEFORE, DATA, HEADERS, Splitter, detect
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Limits, TableName
from translator.values import Converter, Unrepresentable, local_of

T = TypeVar("T")


class AvroReading(Struct, frozen=True):
    """The operator's declarations about Avro messages."""

    splitter: Splitter | None = None
    """The format of the sections. If it is None, the format is detected."""
    masks: Literal["big", "little"] = "big"
    """The first byte of a mask: the most or the least significant one."""


class RowSchema:
    """A data record's schema.

    Args:
        schema: the record's schema.
        reading: what the operator declared.

    Raises:
        MessageError: UNSUPPORTED_SHAPE if it is not the schema of data records.
    """

    def __init__(self, schema: AvroType, reading: AvroReading) -> None:
        self.reader = DatumReader(schema)
        self.type = schema
        """The type that was parsed."""
        members = _members(schema)
        self.splitter = reading.splitter or detect(members)
        sections = self.splitter.split(members) if self.splitter else members
        headers = sections.get(HEADERS)
        if not isinstance(headers, dict) or "operation" not in headers:
            raise _no_data_record(schema, "it has no headers.operation")
        rows = [sections[name] for name in (DATA, BEFORE) if sections.get(name) is not None]
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise _no_data_record(schema, "it has no record `data`")
        self.columns = _columns(schema, rows)
        self.declared: Mapping[str, AvroType] = {name: type_ for row in reversed(rows) for name, type_ in row.items()}
        """The column types. Both rows declare the same type, or equivalent types, for a column."""
        self._as_json = [(name, convert) for name, type_ in headers.items() if (convert := _header(type_, reading))]
        self.named = named_by_namespace(schema)
        self.made: dict[Any, Any] = {}
        """The objects that read rows. They are stored here because they may be large, and should be freed together with
        the schema.
        """
        self.basis = "certain" if self.splitter is None else "declared" if reading.splitter else "inferred"
        """The basis for the structure of the sections: certain, declared by the operator, or inferred."""

    def read(self, data: bytes, path: str) -> JsonObject:
        """Return the record in the form of a JSON message's body. Only its cells are different.

        Raises:
            MessageError: MALFORMED_AVRO.
        """
        body = self.reader.read(data, path)
        if self.splitter:
            body = self.splitter.split(body)
        headers = body[HEADERS]
        if headers is not None:
            for name, convert in self._as_json:
                if headers[name] is not None:
                    headers[name] = convert(headers[name])
        return body


def _no_data_record(schema: AvroType, lacks: str) -> MessageError:
    reason = f"the schema {quote(schema.name)} is not the schema of data records: {lacks}"
    return MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)


def _columns(schema: AvroType, rows: list[dict[str, AvroType]]) -> Mapping[str, AvroColumn]:
    """Return the rows' columns, in the order of the first row. The rows before and after a change usually have the
    record type Data (§3a).
    """
    columns: dict[str, AvroColumn] = {}
    for row in rows:
        for name, type_ in row.items():
            column = avro_column(name, type_)
            known = columns.setdefault(name, column)
            if (known.type, known.native) != (column.type, column.native):
                reason = f"the schema {quote(schema.name)} gives column {quote(name)} two different types"
                raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
    return columns


def _record(type_: AvroType) -> AvroType | None:
    """Return a record, or the record in a union of null and a record."""
    types = [branch for branch in type_.branches if branch.kind != "null"] if type_.branches else [type_]
    return types[0] if len(types) == 1 and types[0].kind == "record" else None


def _members(schema: AvroType) -> dict[str, Any]:
    """Return a data record's fields as in a message, with types instead of values."""
    return {name: dict(record.fields) if (record := _record(type_)) else type_ for name, type_ in schema.fields}


def _hex(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _hex_reversed(value: object) -> object:
    return value[::-1].hex() if isinstance(value, bytes) else value


def _exact(value: object) -> object:
    return Decimal(repr(value)) if isinstance(value, float) else value


_TIME_DIGITS = {"timestamp-millis": 3, "timestamp-micros": 6, "timestamp-nanos": 9}


def _time_text(read: Converter, value: object) -> object:
    """Return a time header whose schema defines its unit. It is text, or a number if the time is outside the calendar's
    range.
    """
    try:
        return read(value)
    except Unrepresentable:
        return value


_BYTES, _FLOATS = frozenset({"bytes", "fixed"}), frozenset({"float", "double"})


def _header(type_: Any, reading: AvroReading) -> Callable[[object], object] | None:
    """Return the conversion from a header to its JSON form, or None if none is needed."""
    types = type_.branches or (type_,) if isinstance(type_, AvroType) else ()
    digits = next((_TIME_DIGITS[branch.logical] for branch in types if branch.logical in _TIME_DIGITS), None)
    if digits is not None:
        return partial(_time_text, local_of(digits))
    kinds = {branch.kind for branch in types}
    if kinds & _BYTES:
        return _hex if reading.masks == "big" else _hex_reversed
    return _exact if kinds & _FLOATS else None


# -- names by namespace

_BASE = "com.attunity.queue.msg."


class NamespaceParts:
    """The parts of a namespace. `assumed`: the namespace has two segments, which could also be task and table."""

    def __init__(self, table: TableName, task: str | None, *, assumed: bool) -> None:
        self.table, self.task, self.assumed = table, task, assumed


def named_by_namespace(schema: AvroType) -> NamespaceParts | None:
    """Return the table in a data record's namespace: `com.attunity.queue.msg.<task>.<schema>.<table>`.

    The number of segments varies (§3b). With two segments, the first is assumed to be the schema, so two tables are
    never merged. With more than three, nothing shows which of the names contain a dot.
    """
    rows = [record for name, type_ in schema.fields if name in (DATA, BEFORE) and (record := _record(type_))]
    spaces = [record.namespace for record in (schema, *rows)]
    space = next((space for space in spaces if space.startswith(_BASE)), _BASE)
    *above, table = space[len(_BASE) :].split(".")
    if not table or not all(above) or len(above) > 2:
        return None
    return NamespaceParts(
        TableName(None, above[-1] if above else None, table),
        above[0] if len(above) == 2 else None,
        assumed=len(above) == 1,
    )


# -- schemas as they arrive


class WriterSchema:
    """A schema text that arrived with the data. Errors in the schema are reported when it is used. Every message that
    needs it becomes a dead letter, and nothing else is affected.
    """

    def __init__(self, text: bytes, limits: Limits, reading: AvroReading) -> None:
        self._text, self._limits, self._reading = text, limits, reading

    @property
    def row(self) -> RowSchema:
        """Return a data record's schema.

        Raises:
            MessageError: the schema is not for data records, or is unusable.
        """
        return _sure(self._row)

    @property
    def record(self) -> DatumReader:
        """Return a reader for any record: a message key, or metadata.

        Raises:
            MessageError: the schema is not for records, or is unusable.
        """
        return _sure(self._record)

    @cached_property
    def _type(self) -> AvroType | MessageError:
        return _caught(lambda: parse_schema(self._text, self._limits))

    @cached_property
    def _row(self) -> RowSchema | MessageError:
        return _caught(lambda: RowSchema(_sure(self._type), self._reading))

    @cached_property
    def _record(self) -> DatumReader | MessageError:
        return _caught(lambda: DatumReader(_sure(self._type)))


def _caught(make: Callable[[], T]) -> T | MessageError:
    try:
        return make()
    except MessageError as error:
        return error


def _sure(made: T | MessageError) -> T:
    if isinstance(made, MessageError):
        # A new exception each time, because raised exceptions accumulate tracebacks.
        raise MessageError(made.code, made.reason, path=made.path)
    return made


_HELD_BYTES = 4 * 1024 * 1024


class WriterSchemas:
    """Schemas embedded in messages, cached by their text, up to 4 MiB of text."""

    def __init__(self, limits: Limits, reading: AvroReading) -> None:
        self._limits, self._reading = limits, reading
        self._held: dict[bytes, WriterSchema] = {}
        self._bytes = 0

    def of(self, text: bytes) -> WriterSchema:
        """Return the schema for its text."""
        found = self._held.get(text)
        if found is None:
            if self._bytes + len(text) > _HELD_BYTES:
                self._held.clear()
                self._bytes = 0
            found = self._held[text] = WriterSchema(text, self._limits, self._reading)
            self._bytes += len(text)
        return found
