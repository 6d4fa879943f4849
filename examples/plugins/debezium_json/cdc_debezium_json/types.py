"""The types in the schema of a record, and how their values become canonical values."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct

_EPOCH = datetime(1970, 1, 1)
_MOST_ZEROS = 1000
_ZONED = re.compile(
    r"(?P<seconds>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<fraction>\.\d{1,9})?(?P<offset>Z|[+-]\d\d:\d\d)", re.ASCII
)


class Unsupported(ValueError):
    """The schema has a type that this dialect does not read. The text contains no values."""


class Column(Struct, frozen=True):
    """A column's canonical type, or None if the schema does not tell, and how to convert its values, if necessary."""

    type: str | None
    convert: Callable[[Any], object] | None = None


def _only(kind: type, convert: Callable[[Any], object] = lambda value: value) -> Callable[[Any], object]:
    """Return a conversion that rejects values of another JSON type."""

    def checked(value: object) -> object:
        if type(value) is not kind:
            raise TypeError
        return convert(value)

    return checked


def _float(value: object) -> float:
    if type(value) not in (int, float, Decimal):
        raise TypeError
    number = float(value)  # type: ignore[arg-type]  # checked above
    if not math.isfinite(number):
        raise ValueError
    return number


def _time(micros: int) -> str:
    text = (_EPOCH + timedelta(microseconds=micros)).isoformat()
    return text.rstrip("0") if "." in text else text


def _instant(text: str) -> str:
    """Return a time with an offset in UTC. Its fraction can have nine digits, more than a datetime keeps."""
    found = _ZONED.fullmatch(text)
    if found is None:
        raise ValueError
    utc = datetime.fromisoformat(found["seconds"] + found["offset"]).astimezone(UTC).replace(tzinfo=None)
    fraction = (found["fraction"] or "").rstrip("0.")
    return f"{utc.isoformat()}{fraction}Z"


def _decimal(parameters: Mapping[str, Any]) -> Column:
    scale = int(parameters["scale"])
    if abs(scale) > _MOST_ZEROS:
        raise Unsupported(f"a decimal has a scale beyond {_MOST_ZEROS}")

    def convert(value: str) -> str:
        number = int.from_bytes(base64.b64decode(value, validate=True), signed=True)
        # Arithmetic would round to 28 digits.
        digits = tuple(int(digit) for digit in str(abs(number)))
        return f"{Decimal((int(number < 0), digits, -scale)):f}"

    return Column("decimal", _only(str, convert))


_PLAIN: Mapping[str, Column] = {
    "boolean": Column("boolean", _only(bool)),
    "int8": Column("int8", _only(int)),
    "int16": Column("int16", _only(int)),
    "int32": Column("int32", _only(int)),
    "int64": Column("int64", _only(int)),
    "float": Column("float32", _float),
    "double": Column("float64", _float),
    "bytes": Column("bytes", _only(str)),
    # Texts, decimals, dates and local times are all strings, so their type is unknown.
    "string": Column(None, _only(str)),
}

_NAMED: Mapping[str, Column] = {
    "io.debezium.data.Json": Column("json", _only(str)),
    "io.debezium.data.Uuid": Column("uuid", _only(str)),
    "io.debezium.data.Enum": Column("enum", _only(str)),
    "io.debezium.data.EnumSet": Column("set", _only(str)),
    "io.debezium.time.ZonedTimestamp": Column("timestamptz", _only(str, _instant)),
    "io.debezium.time.Date": Column(
        "date", _only(int, lambda days: (_EPOCH + timedelta(days=days)).date().isoformat())
    ),
    "io.debezium.time.Timestamp": Column("timestamp", _only(int, lambda millis: _time(millis * 1000))),
    "io.debezium.time.MicroTimestamp": Column("timestamp", _only(int, _time)),
    "io.debezium.time.Year": Column("int32", _only(int)),
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
