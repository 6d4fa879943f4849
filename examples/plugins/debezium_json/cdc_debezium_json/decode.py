"""Decode one record in Debezium's envelope, from a Debezium connector or from CDC Translator's Debezium projection."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from cdc_debezium_json.types import ColumnType, Unsupported, columns_of
from translator.dialect_api import (
    Changes,
    Column,
    ConfigError,
    DialectPlugin,
    ErrorCode,
    Limits,
    MaskedValues,
    Message,
    MessageError,
    ReadMessage,
    Recognizer,
    RowChange,
    Setup,
    Skip,
    TableName,
    TableSchema,
    Tx,
    Writer,
    check_distinct,
    field,
    masked_json,
    parse_object,
)

UNAVAILABLE = "__debezium_unavailable_value"
OPERATIONS = ("r", "c", "u", "d", "t")

_TIMES = ("ts_ms", "ts_us", "ts_ns")
_KEPT = frozenset(
    {
        *((name,) for name in ("op", *_TIMES)),
        *(("source", name) for name in ("version", "connector", "name", "db", "schema", "table", "snapshot", *_TIMES)),
        *(("transaction", name) for name in ("id", "total_order", "data_collection_order")),
    }
)
"""The fields of an envelope that a masked copy keeps."""
_KEPT_IN_SCHEMA = frozenset(
    ("type", "field", "name", "optional", "version", "scale", "connect.decimal.precision", "length")
)


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a source."""

    unavailable: str = UNAVAILABLE
    """The placeholder for a value that was not sent (Debezium's `unavailable.value.placeholder`)."""


class DebeziumJson:
    """Decodes Debezium's envelope."""

    name = "debezium_json"

    def __init__(self, setup: Setup, options: Options) -> None:
        if not options.unavailable:
            raise ConfigError("debezium_json: unavailable must not be empty")
        self._source = setup.source
        self._limits = setup.limits
        self._unavailable = _placeholders(options.unavailable)

    def decode(self, message: Message) -> Changes | Skip:
        """Return the only change in a record."""
        if not message.value:
            return Skip("tombstone")
        envelope, columns = _opened(message.value, self._limits)
        source = field(envelope, "source", dict, "$")
        operation = field(envelope, "op", str, "$")
        if operation == "m":
            return Skip("logical_message")
        if operation not in OPERATIONS:
            raise MessageError(ErrorCode.UNKNOWN_OPERATION, f"op is none of {', '.join(OPERATIONS)}", path="$.op")
        change = RowChange(operation, _table(source), _writer(source))
        _set_position(change, envelope, source)
        if operation != "t":
            change.key_columns, change.key_kind = _key(message.key, self._limits)
            self._set_images(change, envelope, columns)
        return Changes([change])

    def learn(self, key: str, document: bytes) -> object:
        """Learn nothing, because the messages describe themselves."""
        raise MessageError(ErrorCode.SCHEMA_MISSING, "Debezium's JSON has no metadata messages")

    def tables(self, message: Message) -> Sequence[TableName]:
        """Return the table of a record that was rejected."""
        envelope, _ = _opened(message.value or b"", self._limits)
        return [_table(field(envelope, "source", dict, "$"))]

    def _set_images(self, change: RowChange, envelope: Mapping[str, Any], columns: Mapping[str, ColumnType]) -> None:
        change.before = self._image(envelope, "before", columns, change)
        change.after = self._image(envelope, "after", columns, change)
        needed = "before" if change.op == "d" else "after"
        if getattr(change, needed) is None:
            raise MessageError(ErrorCode.MISSING_FIELD, f"op {change.op} has no {needed}", path=f"$.{needed}")
        if columns:
            change.schema = self._schema(change, columns)

    def _schema(self, change: RowChange, columns: Mapping[str, ColumnType]) -> TableSchema:
        keys = {name: number for number, name in enumerate(change.key_columns, 1)}
        listed = [Column(name, found.type, key=keys.get(name)) for name, found in columns.items()]
        table = change.table
        return TableSchema.of(self._source, table.db, table.schema, table.table, listed, change.key_kind)

    def _image(
        self, envelope: Mapping[str, Any], name: str, columns: Mapping[str, ColumnType], change: RowChange
    ) -> dict[str, Any] | None:
        sent = field(envelope, name, dict, "$", optional=True)
        if sent is None:
            return None
        image: dict[str, Any] = {}
        for column, value in sent.items():
            if value in self._unavailable:
                change.unavailable = [*dict.fromkeys((*(change.unavailable or ()), column))]
            else:
                image[column] = _canonical(value, columns.get(column), f"$.{name}")
        return image


def _placeholders(text: str) -> tuple[str, str]:
    """Return the placeholder as text, and as base64 for columns with bytes."""
    return text, base64.b64encode(text.encode()).decode()


def _opened(value: bytes, limits: Limits) -> tuple[dict[str, Any], Mapping[str, ColumnType]]:
    """Return the envelope and, if the record contains a schema, its columns."""
    body = parse_object(value, limits)
    check_distinct(value, [body])
    envelope = _payload(body)
    if envelope is body:
        return body, {}
    try:
        return envelope, columns_of(body.get("schema"))
    except Unsupported as error:
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, str(error), path="$.schema") from None


def _canonical(value: object, column: ColumnType | None, path: str) -> object:
    if value is None:
        return None
    if column is not None:
        try:
            return column.convert(value)
        except (LookupError, ValueError, TypeError, ArithmeticError):
            reason = "a value does not have the form that its schema announces"
            raise MessageError(ErrorCode.INVALID_FIELD, reason, path=path) from None
    if isinstance(value, Decimal):
        number = float(value)
        if not math.isfinite(number):
            raise MessageError(ErrorCode.INVALID_FIELD, "a number is too large for a double", path=path)
        return number
    if isinstance(value, (dict, list)):
        reason = "a value is a JSON object or array; configure Debezium to write it as text"
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path=path)
    return value


def _table(source: Mapping[str, Any]) -> TableName:
    read = partial(field, source, expected=str, path="$.source")
    return TableName(read("db", optional=True), read("schema", optional=True), read("table"))


def _writer(source: Mapping[str, Any]) -> Writer:
    read = partial(field, source, expected=str, path="$.source", optional=True)
    return Writer(server=read("name"), dbms=read("connector"))


def _set_position(change: RowChange, envelope: Mapping[str, Any], source: Mapping[str, Any]) -> None:
    """Set times and the transaction. Connectors before 2.6 send only milliseconds."""
    committed = field(source, "ts_ms", int, "$.source", optional=True)
    captured = field(envelope, "ts_ms", int, "$", optional=True)
    change.ts_commit_us = field(source, "ts_us", int, "$.source", optional=True) or (committed or 0) * 1000 or None
    change.ts_capture_us = field(envelope, "ts_us", int, "$", optional=True) or (captured or 0) * 1000 or None
    transaction = field(envelope, "transaction", dict, "$", optional=True)
    if transaction is not None:
        place = "$.transaction"
        change.tx = Tx(
            field(transaction, "id", str, place), field(transaction, "total_order", int, place, optional=True)
        )


def _key(key: bytes | None, limits: Limits) -> tuple[tuple[str, ...], str]:
    """Return the key columns, which are the fields of the record's key."""
    if key is None:
        return (), "none"
    return tuple(_payload(parse_object(key, limits))), "primary"


def _payload(body: dict[str, Any]) -> dict[str, Any]:
    """Return the record, without the wrapper of Kafka Connect's JSON converter. A key column can be called `payload`,
    too, but its value is no object.
    """
    payload = body.get("payload")
    return payload if isinstance(payload, dict) and body.keys() <= {"schema", "payload"} else body


def _masked(value: bytes, masked: MaskedValues) -> bytes:
    """Return a copy with other row values. In a record that is not an envelope, every value can be a row's."""
    try:
        envelope = _payload(parse_object(value, Limits()))
    except MessageError:
        envelope = {}
    is_envelope = isinstance(envelope.get("source"), dict) and envelope.get("op") in (*OPERATIONS, "m")
    return masked_json(value, masked, _part_of if is_envelope else lambda _: "value", _placeholders(UNAVAILABLE))


def _part_of(path: tuple[str, ...]) -> Literal["keep", "value"]:
    """Only what is known not to be a row's value is kept."""
    if path[:1] == ("schema",):
        return "keep" if "default" not in path and path[-1] in _KEPT_IN_SCHEMA else "value"
    return "keep" if (path[1:] if path[:1] == ("payload",) else path) in _KEPT else "value"


def _propose(sample: Sequence[ReadMessage]) -> list[Any]:
    return []


PLUGIN = DialectPlugin(
    name=DebeziumJson.name,
    api=1,
    build=DebeziumJson,
    options=Options,
    recognizer=Recognizer(({},), _propose),
    masked_value=_masked,
)
