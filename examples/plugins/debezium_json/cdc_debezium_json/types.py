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
_DIGITS = re.compile(r"-?[0-9]{1,4}")
_ZONED = re.compile(
    r"(?P<seconds>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<fraction>\.\d{1,9})?(?P<offset>Z|[+-]\d\d:\d\d)", re.ASCII
)


class Unsupported(ValueError):
    """The schema has a type that this dialect does not read. The text contains no values."""


class ColumnType(Struct, frozen=True):
    """A column's canonical type, and how to convert and check its values."""

    type: str
    convert: Callable[[Any], object]


def _only(kind: type, convert: Callable[[Any], object] = lambda value: value) -> Callable[[Any], object]:
    """Return a conversion that rejects values of another JSON type."""

    def checked(value: object) -> object:
        if type(value) is not kind:
            raise TypeError
        return convert(value)

    return checked


def _integer(bits: int) -> Callable[[Any], object]:
    def ranged(value: int) -> int:
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError
        return value

    return _only(int, ranged)


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


def _duration(micros: int) -> str:
    """Return a time, which can be negative and exceed 24 hours."""
    seconds, fraction = divmod(abs(micros), 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        text += f".{fraction:06}".rstrip("0")
    return f"-{text}" if micros < 0 else text


def _base64(text: str) -> str:
    base64.b64decode(text, validate=True)
    return text


def _geometry(value: Mapping[str, Any]) -> str:
    """Return the well-known binary in base64. The SRID and the coordinates of a point are separate fields."""
    return _base64(value["wkb"])


def _instant(text: str) -> str:
    """Return a time with an offset in UTC. Its fraction can have nine digits, more than a datetime keeps."""
    found = _ZONED.fullmatch(text)
    if found is None:
        raise ValueError
    utc = datetime.fromisoformat(found["seconds"] + found["offset"]).astimezone(UTC).replace(tzinfo=None)
    fraction = (found["fraction"] or "").rstrip("0.")
    return f"{utc.isoformat()}{fraction}Z"


def _whole(parameters: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """Return a whole number, which Kafka Connect writes as text. Other numbers can be too large to convert."""
    text = parameters[name]
    if not isinstance(text, str) or not _DIGITS.fullmatch(text) or not least <= int(text) <= most:
        raise Unsupported(f"the parameter {name} of a column is not a whole number from {least} to {most}")
    return int(text)


def _bits(parameters: Mapping[str, Any]) -> ColumnType:
    length = _whole(parameters, "length", 1, 64)
    bits = next(bits for bits in (8, 16, 32, 64) if length <= bits)

    def convert(value: str) -> object:
        number = int.from_bytes(base64.b64decode(value, validate=True), "little")
        if number >= 2**length:
            raise ValueError
        return str(number) if bits == 64 else number

    return ColumnType(f"uint{bits}", _only(str, convert))


def _decimal(parameters: Mapping[str, Any]) -> ColumnType:
    scale = _whole(parameters, "scale", -_MOST_ZEROS, _MOST_ZEROS)

    def convert(value: str) -> str:
        number = int.from_bytes(base64.b64decode(value, validate=True), signed=True)
        # Arithmetic would round to 28 digits.
        digits = tuple(int(digit) for digit in str(abs(number)))
        return f"{Decimal((int(number < 0), digits, -scale)):f}"

    if "connect.decimal.precision" not in parameters or scale < 0:
        return ColumnType("decimal", _only(str, convert))
    precision = _whole(parameters, "connect.decimal.precision", max(1, scale), _MOST_ZEROS)
    return ColumnType(f"decimal({precision},{scale})", _only(str, convert))


_PLAIN: Mapping[str, ColumnType] = {
    "boolean": ColumnType("boolean", _only(bool)),
    **{f"int{bits}": ColumnType(f"int{bits}", _integer(bits)) for bits in (8, 16, 32, 64)},
    "float": ColumnType("float32", _float),
    "double": ColumnType("float64", _float),
    "bytes": ColumnType("bytes", _only(str, _base64)),
    "string": ColumnType("string", _only(str)),
}

_NAMED: Mapping[str, ColumnType] = {
    "io.debezium.data.Json": ColumnType("json", _only(str)),
    "io.debezium.data.Uuid": ColumnType("uuid", _only(str)),
    "io.debezium.data.Enum": ColumnType("enum", _only(str)),
    "io.debezium.data.EnumSet": ColumnType("set", _only(str)),
    "io.debezium.time.ZonedTimestamp": ColumnType("timestamptz", _only(str, _instant)),
    "io.debezium.time.Date": ColumnType(
        "date", _only(int, lambda days: (_EPOCH + timedelta(days=days)).date().isoformat())
    ),
    "io.debezium.time.Timestamp": ColumnType("timestamp", _only(int, lambda millis: _time(millis * 1000))),
    "io.debezium.time.MicroTimestamp": ColumnType("timestamp", _only(int, _time)),
    "io.debezium.time.Time": ColumnType("time", _only(int, lambda millis: _duration(millis * 1000))),
    "io.debezium.time.MicroTime": ColumnType("time", _only(int, _duration)),
    "io.debezium.time.Year": ColumnType("int32", _integer(32)),
    **dict.fromkeys(
        ("io.debezium.data.geometry.Point", "io.debezium.data.geometry.Geometry"),
        ColumnType("geometry", _only(dict, _geometry)),
    ),
}

_PARAMETERS: Mapping[str, Callable[[Mapping[str, Any]], ColumnType]] = {
    "org.apache.kafka.connect.data.Decimal": _decimal,
    "io.debezium.data.Bits": _bits,
}
"""Types that depend on the schema's parameters."""


def columns_of(schema: object) -> Mapping[str, ColumnType]:
    """Return the columns of both images, or none if the record has no schema.

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


def _column(column: Mapping[str, Any]) -> ColumnType:
    name, kind = column.get("name"), column["type"]
    if name is not None and name in _PARAMETERS:
        return _PARAMETERS[name](column["parameters"])
    known: Mapping[str, ColumnType] = _PLAIN if name is None else _NAMED
    if (name or kind) not in known:
        raise Unsupported("a column has a type other than " + ", ".join([*_PLAIN, *_NAMED, *_PARAMETERS]))
    return known[name or kind]
