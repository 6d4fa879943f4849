"""Convert a cell to a canonical scalar. The column's type determines the encoding, and the branch shows how the value
was sent.

Every branch has a plain interpretation (`_PLAIN`), whose result is passed to the converter for the column's type. Pairs
of branch and type that have a special meaning, or need no further check, are listed in `_PAIRS`. `fast_path` reads the
most common cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from translator.dialects.dts_avro import charsets, times
from translator.dialects.dts_avro.cells import Payload, payload
from translator.dialects.dts_avro.record import (
    BINARY_GEOMETRY,
    BINARY_OBJECT,
    CHARACTER,
    DATE_TIME,
    DECIMAL,
    FLOAT,
    INTEGER,
    TEXT_GEOMETRY,
    TEXT_OBJECT,
    TIMESTAMP,
    TIMESTAMP_WITH_TIME_ZONE,
    Cell,
)
from translator.dialects.dts_avro.wkb import wkb
from translator.message import Scalar
from translator.values import Assumed, Unrepresentable, converter
from translator.values.scalar import raw_text

CellReader: TypeAlias = Callable[[Cell], Scalar]
_PayloadReader: TypeAlias = Callable[["Reading", Payload], Any]


class Reading(Struct, frozen=True):
    """A source's settings for reading its values."""

    mysql: bool
    """True if the source uses MySQL's charset names and MySQL's zero TIMESTAMP."""
    digits: int
    """The number of digits in `DateTime.millis`: 6 for micros, 9 for nanos (§4.4)."""
    declared_unit: bool = False
    """True if the operator configured the unit. If false, values that cannot be micros are read as nanos (§11)."""
    timestamp_digits: int = 6
    """The number of digits in `Timestamp.millis`, which contains micros for every source."""


FRACTION_AS_NANOS = "FRACTION_AS_NANOS"
"""Note on a column whose fraction is too large for the micros that were expected from the source."""


def plain_readers(canonical_type: str, reading: Reading) -> dict[int, CellReader]:
    """Return a column's cell readers, by branch: all except null and EmptyObject, which are not values."""
    readers = {branch: _cell_reader(_reader(branch, canonical_type), reading) for branch in _PLAIN}
    if reading.declared_unit:
        return readers
    nanos = msgspec.structs.replace(reading, digits=9, timestamp_digits=9)
    doubtful = [TIMESTAMP] if reading.digits == nanos.digits else [TIMESTAMP, DATE_TIME, TIMESTAMP_WITH_TIME_ZONE]
    as_nanos = {branch: _cell_reader(_reader(branch, canonical_type), nanos) for branch in doubtful}
    return readers | {branch: _unless_nanos(readers[branch], as_nanos[branch]) for branch in doubtful}


def _unless_nanos(read: CellReader, read_as_nanos: CellReader) -> CellReader:
    """Return a reader that takes fractions of 1,000,000 or more as nanos, because they cannot be micros."""

    def read_cell(cell: Cell) -> Scalar:
        parts = payload(cell)
        fraction = parts.get("value", parts)["millis"]
        if fraction is not None and 10**6 <= abs(fraction) < 10**9:
            raise Assumed(read_as_nanos(cell), FRACTION_AS_NANOS)
        return read(cell)

    return read_cell


def _cell_reader(read: _PayloadReader, reading: Reading) -> CellReader:
    def read_cell(cell: Cell) -> Scalar:
        result: Scalar = read(reading, payload(cell))
        return result

    return read_cell


def _reader(branch: int, canonical_type: str) -> _PayloadReader:
    special = _PAIRS.get((branch, canonical_type))
    if special is not None:
        return special
    plain, convert = _PLAIN[branch], converter(canonical_type)
    return lambda reading, payload: convert(plain(reading, payload))


# -- plain interpretations

_INTEGER_TEXT = re.compile(r"-?[0-9]{1,2000}\Z")


def _integer(reading: Reading, payload: Payload) -> int:
    text = payload["value"]
    if not _INTEGER_TEXT.match(text):
        raise Unrepresentable("NOT_AN_INTEGER", text)
    return int(text)


def _value(reading: Reading, payload: Payload) -> Any:
    return payload["value"]


def _character(reading: Reading, payload: Payload) -> str | bytes:
    charset, data = payload["charset"].lower(), payload["value"]
    if charset == charsets.BINARY:
        return bytes(data)
    decode = (charsets.MYSQL if reading.mysql else charsets.OTHERS).get(charset)
    if decode is None:
        raise Unrepresentable("UNKNOWN_CHARSET", _with_charset(payload))
    try:
        return decode(data)
    except UnicodeDecodeError:
        raise Unrepresentable("UNDECODABLE", _with_charset(payload)) from None


def _with_charset(payload: Payload) -> str:
    """Return `charset:base64`, from which the text can be decoded if the charset is known."""
    return f"{payload['charset']}:{raw_text(payload['value'])}"


def _timestamp(reading: Reading, payload: Payload) -> str:
    return times.timestamp_text(payload, reading.timestamp_digits, zero_is_no_date=reading.mysql)


def _by_digits(read: Callable[[Payload, int], str]) -> _PayloadReader:
    return lambda reading, payload: read(payload, reading.digits)


_date_time = _by_digits(times.natural_text)
_zoned = _by_digits(times.zoned_text)

_PLAIN: Mapping[int, _PayloadReader] = {
    INTEGER: _integer,
    CHARACTER: _character,
    DECIMAL: _value,
    FLOAT: _value,
    TIMESTAMP: _timestamp,
    DATE_TIME: _date_time,
    TIMESTAMP_WITH_TIME_ZONE: _zoned,
    BINARY_GEOMETRY: _value,
    TEXT_GEOMETRY: _value,
    BINARY_OBJECT: _value,
    TEXT_OBJECT: _value,
}

# -- pairs with a special meaning

_base64 = converter("bytes")
_float64 = converter("float64")


def _bytes(reading: Reading, payload: Payload) -> Scalar:
    return _base64(payload["value"])


def _undeclared_character(reading: Reading, payload: Payload) -> Scalar:
    text = _character(reading, payload)
    return text if isinstance(text, str) else _base64(text)


def _float_text(reading: Reading, payload: Payload) -> str:
    return str(_float64(payload["value"]))


def _utf8_json(reading: Reading, payload: Payload) -> str:
    """Read jsonb, which PostgreSQL sends as the bytes of UTF-8 text (§4.5)."""
    try:
        return str(payload["value"], "utf-8")
    except UnicodeDecodeError:
        raise Unrepresentable("UNDECODABLE", payload["value"]) from None


def _label_missing(reading: Reading, payload: Payload) -> Scalar:
    """Report an issue. In a column with labels, a number would be the index of the label, not the label itself."""
    raise Unrepresentable("LABEL_MISSING", payload["value"])


def _geometry(reading: Reading, payload: Payload) -> Scalar:
    return _base64(wkb(payload["value"]))


_PAIRS: Mapping[tuple[int, str], _PayloadReader] = {
    **{(TEXT_OBJECT, type_): _value for type_ in ("string", "json", "enum", "set", "uuid", "interval", "unknown")},
    (INTEGER, "enum"): _label_missing,
    (INTEGER, "set"): _label_missing,
    (CHARACTER, "bytes"): _bytes,  # as sent, because a column declared as bytes has no charset
    (CHARACTER, "unknown"): _undeclared_character,
    (FLOAT, "string"): _float_text,
    (FLOAT, "unknown"): _float_text,
    (TIMESTAMP, "timestamptz"): _timestamp,
    (DATE_TIME, "date"): _by_digits(times.date_of),
    (DATE_TIME, "time"): _by_digits(times.time_of),
    (DATE_TIME, "timestamp"): _by_digits(times.local_of),
    (DATE_TIME, "interval"): _by_digits(times.interval_of),
    (DATE_TIME, "unknown"): _date_time,
    (TIMESTAMP_WITH_TIME_ZONE, "timestamptz"): _by_digits(times.utc_of),
    (BINARY_OBJECT, "json"): _utf8_json,
    (BINARY_OBJECT, "unknown"): _bytes,
    (BINARY_GEOMETRY, "geometry"): _geometry,
    (BINARY_GEOMETRY, "unknown"): _bytes,
}
