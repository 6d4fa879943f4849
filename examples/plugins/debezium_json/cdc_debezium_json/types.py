"""The types in the schema of a record, and how their values become canonical values."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct

_EPOCH = datetime(1970, 1, 1)


class Unsupported(ValueError):
    """The schema has a type that this dialect does not read. The text contains no values."""


class Column(Struct, frozen=True):
    """A column's canonical type, or None if the schema does not tell, and how to convert its values, if necessary."""

    type: str | None
    convert: Callable[[Any], object] | None = None


def _time(micros: int) -> str:
    text = (_EPOCH + timedelta(microseconds=micros)).isoformat()
    return text.rstrip("0") if "." in text else text


def _decimal(parameters: Mapping[str, Any]) -> Column:
    scale = int(parameters["scale"])

    def convert(value: str) -> str:
        number = int.from_bytes(base64.b64decode(value, validate=True), signed=True)
        return f"{Decimal(number).scaleb(-scale):f}"

    return Column("decimal", convert)


_PLAIN: Mapping[str, Column] = {
    "boolean": Column("boolean"),
    "int8": Column("int8"),
    "int16": Column("int16"),
    "int32": Column("int32"),
    "int64": Column("int64"),
    "float": Column("float32", float),
    "double": Column("float64", float),
    "bytes": Column("bytes"),
    # Texts, decimals, dates and local times are all strings, so their type is unknown.
    "string": Column(None),
}

_NAMED: Mapping[str, Column] = {
    "io.debezium.data.Json": Column("json"),
    "io.debezium.data.Uuid": Column("uuid"),
    "io.debezium.data.Enum": Column("enum"),
    "io.debezium.data.EnumSet": Column("set"),
    "io.debezium.time.ZonedTimestamp": Column("timestamptz"),
    "io.debezium.time.Date": Column("date", lambda days: (date(1970, 1, 1) + timedelta(days=days)).isoformat()),
    "io.debezium.time.Timestamp": Column("timestamp", lambda millis: _time(millis * 1000)),
    "io.debezium.time.MicroTimestamp": Column("timestamp", _time),
    "io.debezium.time.Year": Column("int32"),
}

_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def columns_of(schema: object) -> Mapping[str, Column]:
    """Return the columns of both images.

    Raises:
        Unsupported: a column has a type that this dialect does not know.
    """
    if schema is None:
        return {}
    try:
        images = [part for part in _fields(schema) if part.get("field") in ("before", "after")]
        return {str(column["field"]): _column(column) for image in images for column in _fields(image)}
    except (KeyError, TypeError, AttributeError):
        raise Unsupported("the schema is not a schema of Kafka Connect's JSON converter") from None


def _fields(schema: Any) -> list[dict[str, Any]]:
    return list(schema["fields"])


def _column(column: Mapping[str, Any]) -> Column:
    name, kind = column.get("name"), column["type"]
    if name == _DECIMAL:
        return _decimal(column["parameters"])
    known: Mapping[str, Column] = _PLAIN if name is None else _NAMED
    if (name or kind) not in known:
        raise Unsupported("a column has a type other than " + ", ".join([*_PLAIN, *_NAMED, _DECIMAL]))
    return known[name or kind]
