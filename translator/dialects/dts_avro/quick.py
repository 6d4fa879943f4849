"""The cells that nearly all columns have, from their bytes to the canonical value in one step.

Short cuts for speed: each looks at the bytes where they must lie if the cell is spelled the usual way. What is spelled
otherwise, or is wrong, goes the plain way (`values`), which has the words for it. Property tests hold that both give
the same.
"""

from __future__ import annotations

import struct
from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import TypeAlias

from translator.dialects.dts_avro import charsets, times
from translator.dialects.dts_avro.kinds import TELLING, guarded
from translator.dialects.dts_avro.patterns import MANY, OTHER_CHARSET
from translator.dialects.dts_avro.primitives import int_end, read_int, read_long, read_text
from translator.dialects.dts_avro.record import (
    BINARY_OBJECT,
    CHARACTER,
    DATE_TIME,
    DECIMAL,
    EMPTY_OBJECT,
    FLOAT,
    INTEGER,
    NULL,
    TEXT_GEOMETRY,
    TEXT_OBJECT,
    TIMESTAMP,
    TIMESTAMP_WITH_TIME_ZONE,
    Cell,
)
from translator.dialects.dts_avro.values import CellReader, Reading, plain_readers
from translator.message import Scalar
from translator.values import Unrepresentable, converter, date_text
from translator.values.numbers import INTEGER_BOUNDS


@lru_cache(maxsize=1024)
def cell_readers(canonical_type: str, reading: Reading, *, open_kind: bool = False) -> Sequence[CellReader]:
    """The readers of a column's cells, at the index of a cell's first byte. EmptyObject must not come.

    `open_kind`: the column is text or bytes until a value tells; one of the other kind raises Contrary.
    """
    plain = plain_readers(canonical_type, reading)
    if open_kind:
        plain |= {branch: guarded(plain[branch], canonical_type) for branch in TELLING}
    readers: list[CellReader] = [_not_a_value] * (EMPTY_OBJECT + 1)
    readers[NULL] = _null
    for branch, read in plain.items():
        rule = _RULES.get((branch, canonical_type)) or _RULES_FOR_ALL_TYPES.get(branch)
        sure = not open_kind or (branch, canonical_type) != (CHARACTER, "bytes")
        readers[branch] = rule(canonical_type, reading, read) if rule is not None and sure else read
    return readers


def _null(cell: Cell) -> None:
    return None


def _not_a_value(cell: Cell) -> Scalar:
    raise ValueError("no branch with a value")


# -- numbers


def _bounded(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """02, precision, length, digits."""
    low, high = INTEGER_BOUNDS[canonical_type]

    def read(cell: Cell) -> Scalar:
        digits = cell[3:]
        if cell[1] < 0x80 and len(digits) < 20 and (digits.isdigit() or (digits[:1] == b"-" and digits[1:].isdigit())):
            number = int(digits)
            if low <= number <= high:
                return number
        return plain(cell)

    return read


def _digits(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """Its own text, when it has no needless zero."""

    def read(cell: Cell) -> Scalar:
        digits = cell[3:]
        if cell[1] < 0x80 and digits.isdigit() and len(digits) < 20 and (digits[0] != _ZERO or len(digits) == 1):
            return digits.decode()
        return plain(cell)

    return read


_ZERO = ord("0")


def _decimal(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """06, length, text, precision, scale."""
    convert = converter(canonical_type)

    def read(cell: Cell) -> Scalar:
        length = cell[1]
        return convert(cell[2 : 2 + (length >> 1)].decode()) if length < 0x80 else plain(cell)

    return read


_double = struct.Struct("<d").unpack_from


def _float(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    convert = converter(canonical_type)
    return lambda cell: convert(_double(cell, 1)[0])


# -- text and bytes


def _character(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """04, length, charset, length, text."""
    decoder = _mysql_decoder if reading.mysql else _other_decoder

    def read(cell: Cell) -> Scalar:
        at = 2 + (cell[1] >> 1)
        decode = decoder(cell[2:at]) if cell[1] < 0x80 else None
        if decode is None:
            return plain(cell)
        if cell[at] >= 0x80:
            at += 1
        try:
            return decode(cell[at + 1 :]) if cell[at] < 0x80 else plain(cell)
        except UnicodeDecodeError:
            return plain(cell)

    return read


@lru_cache(maxsize=256)
def _mysql_decoder(charset: bytes) -> charsets.Decoder | None:
    return charsets.MYSQL.get(charset.decode().lower())


@lru_cache(maxsize=256)
def _other_decoder(charset: bytes) -> charsets.Decoder | None:
    return charsets.OTHERS.get(charset.decode().lower())


def _text(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """16, length, type, length, text. Strings were UTF-8 when the record was read."""

    def read(cell: Cell) -> Scalar:
        found = _second(cell)
        return plain(cell) if found is None else found.decode()

    return read


def _bytes(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    def read(cell: Cell) -> Scalar:
        found = _second(cell)
        return plain(cell) if found is None else b2a_base64(found, newline=False).decode()

    return read


def _second(cell: Cell) -> bytes | None:
    """The second text or bytes, behind a length of one or two bytes; None where lengths are longer."""
    at = 2 + (cell[1] >> 1)
    if cell[1] >= 0x80:
        return None
    if cell[at] >= 0x80:
        at += 1
    return cell[at + 1 :] if cell[at] < 0x80 else None


# -- times: each component behind the byte 02 of its union, the year in two bytes, the others in one

_THREE_THERE = b"\2\2\2"
_NO_CLOCK = b"\0\0\0\0"
_NO_FRACTION = (b"\2\0", b"\0")
# Two digits by the byte of the number, which is zigzag.
_SECONDS: Mapping[int, str] = {2 * number: f"{number:02d}" for number in range(60)}
_MINUTES: Mapping[int, str] = {byte: f"{digits}:" for byte, digits in _SECONDS.items()}
_HOURS: Mapping[int, str] = {2 * number: f"{number:02d}:" for number in range(24)}


class _Days(dict[bytes, str]):
    """Dates by the seven bytes of year, month and day, each computed once. KeyError: another spelling, or no date."""

    def __missing__(self, parts: bytes) -> str:
        if parts[:1] + parts[3::2] != _THREE_THERE or parts[1] < 0x80 or max(parts[2::2]) >= 0x80:
            raise KeyError
        year, month, day = (read_int(parts, at)[0] for at in (1, 4, 6))
        try:
            text = date_text(year, month, day, None)
        except Unrepresentable:
            raise KeyError from None
        if len(self) >= _MAX_DAYS:
            self.clear()
        self[parts] = text
        return text


_MAX_DAYS = 8192
_DAYS = _Days()


def _fraction(digits: int) -> Callable[[bytes], str | None]:
    """From the bytes of the last component: `.f…`, nothing for zero, None for what must be looked at."""
    text = f".%0{digits}d"
    limit = 10**digits

    def read(parts: bytes) -> str | None:
        if parts in _NO_FRACTION:
            return ""
        if parts[0] != _THERE:
            return None
        if len(parts) == _MICROS_BYTES:  # of most numbers of micros
            number = parts[1] & 0x7F | (parts[2] & 0x7F) << 7 | parts[3] << 14
            number = -number if number & 1 else number >> 1
        else:
            number, _ = read_int(parts, 1)
        return text % number if 0 < number < limit else None

    return read


_THERE = 2
_MICROS_BYTES = 4


def _date(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    def read(cell: Cell) -> Scalar:
        if cell[8:] == _NO_CLOCK:
            try:
                return _DAYS[cell[1:8]]
            except KeyError:
                pass
        return plain(cell)

    return read


def _local(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    fraction_of = _fraction(reading.digits)

    def read(cell: Cell) -> Scalar:
        if cell[8:14:2] == _THREE_THERE:
            try:
                text = f"{_DAYS[cell[1:8]]}T{_HOURS[cell[9]]}{_MINUTES[cell[11]]}{_SECONDS[cell[13]]}"
            except KeyError:
                return plain(cell)
            fraction = fraction_of(cell[14:])
            if fraction is not None:
                return text + fraction
        return plain(cell)

    return read


def _time(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """A time of day that is not negative: MySQL's may be, and longer than a day."""
    fraction_of = _fraction(reading.digits)

    def read(cell: Cell) -> Scalar:
        if cell[1:4] == b"\0\0\0" and cell[4:10:2] == _THREE_THERE:
            try:
                text = f"{_HOURS[cell[5]]}{_MINUTES[cell[7]]}{_SECONDS[cell[9]]}"
            except KeyError:
                return plain(cell)
            fraction = fraction_of(cell[10:])
            if fraction is not None:
                return text + fraction
        return plain(cell)

    return read


def _zoned(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """The bytes of a local time, and the zone behind them."""
    fraction_of = _fraction(reading.digits)

    def read(cell: Cell) -> Scalar:
        try:
            text = f"{_DAYS[cell[1:8]]}T{_HOURS[cell[9]]}{_MINUTES[cell[11]]}{_SECONDS[cell[13]]}"
        except (KeyError, IndexError):
            return plain(cell)
        if cell[8:14:2] != _THREE_THERE:
            return plain(cell)
        end = int_end(cell, 15) if cell[14] else 15
        fraction = fraction_of(cell[14:end])
        ahead = None if fraction is None else _ahead(cell[end:])
        if ahead is None:
            return plain(cell)
        if not ahead:
            return f"{text}{fraction}Z"
        try:
            return f"{(datetime.fromisoformat(text) - ahead).isoformat()}{fraction}Z"
        except OverflowError:
            return plain(cell)

    return read


@lru_cache(maxsize=1024)
def _ahead(zone: bytes) -> timedelta | None:
    """How far a zone is ahead of UTC at all times; None for one that changes, or that nobody knows."""
    name, end = read_text(zone, 0)
    try:
        found = times.zone_of(name) if end == len(zone) else None
    except ValueError:
        return None
    return found.utcoffset(None) if isinstance(found, timezone) else None


def _instant(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """10, seconds, micros."""

    def read(cell: Cell) -> Scalar:
        seconds, at = read_long(cell, 1)
        micros, _ = read_int(cell, at)
        if not 0 < seconds < _YEAR_10000 or not 0 <= micros < 10**6:
            return plain(cell)
        days, seconds = divmod(seconds, 86_400)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        tail = f".{micros:06d}Z" if micros else "Z"
        return f"{_date_of(days)}T{hours:02d}:{minutes:02d}:{seconds:02d}{tail}"

    return read


_YEAR_10000 = 253_402_300_800


@lru_cache(maxsize=8192)
def _date_of(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


# -- the tables

Rule: TypeAlias = Callable[[str, Reading, CellReader], CellReader]

_TEXT_TYPES = ("string", "enum", "set", "json", "uuid", "interval", "unknown")

_RULES: Mapping[tuple[int, str], Rule] = {
    **{(INTEGER, type_): _bounded for type_ in INTEGER_BOUNDS if type_ != "uint64"},
    **{(INTEGER, type_): _digits for type_ in ("uint64", "decimal", "string", "unknown")},
    **{(CHARACTER, type_): _character for type_ in _TEXT_TYPES},
    (CHARACTER, "bytes"): _bytes,
    **{(TEXT_OBJECT, type_): _text for type_ in _TEXT_TYPES},
    **{(TEXT_GEOMETRY, type_): _text for type_ in ("string", "unknown")},
    (BINARY_OBJECT, "bytes"): _bytes,
    (BINARY_OBJECT, "unknown"): _bytes,
    (FLOAT, "float32"): _float,
    (FLOAT, "float64"): _float,
    (DATE_TIME, "date"): _date,
    (DATE_TIME, "time"): _time,
    (DATE_TIME, "timestamp"): _local,
    (DATE_TIME, "unknown"): _local,
    (TIMESTAMP, "timestamptz"): _instant,
    (TIMESTAMP, "unknown"): _instant,
    (TIMESTAMP_WITH_TIME_ZONE, "timestamptz"): _zoned,
}
_RULES_FOR_ALL_TYPES: Mapping[int, Rule] = {DECIMAL: _decimal}
"""Where the type's converter takes what stands in the cell."""


# -- bare values: what the groups of `patterns` hold, in place of cells


def bare_reader(kind: int, canonical_type: str, readers: Sequence[CellReader]) -> CellReader:
    """The reader of a column's bare values; `readers` are those of its cells.

    Raises (the reader): UnicodeDecodeError, beside what readers of cells raise; then the cell must be read.
    """
    found = _BARE_READERS.get((kind, canonical_type))
    if found is not None:
        return found
    if kind in _CELL_OF:
        cell_of, read = _CELL_OF[kind], readers[kind]
        return lambda bare: read(cell_of(bare))
    if kind == MANY:
        return lambda cell: readers[cell[0]](cell)
    return readers[CHARACTER if kind == OTHER_CHARSET else kind]


def _sized_text(bare: bytes) -> str:
    """Behind a length of one or two bytes."""
    return bare[1:].decode() if bare[0] < 0x80 else bare[2:].decode()


def _within(low: int, high: int) -> CellReader:
    def read(bare: bytes) -> int:
        number = int(bare)
        if low <= number <= high:
            return number
        raise Unrepresentable("OUT_OF_RANGE", bare)

    return read


_BARE_READERS: Mapping[tuple[int, str], CellReader] = {
    **{(INTEGER, type_): _within(*bounds) for type_, bounds in INTEGER_BOUNDS.items() if type_ != "uint64"},
    (INTEGER, "int64"): int,  # the pattern holds the bounds
    **{(INTEGER, type_): bytes.decode for type_ in ("decimal", "string", "unknown")},
    **{(DECIMAL, type_): bytes.decode for type_ in ("decimal", "string", "unknown")},
    **{(CHARACTER, type_): _sized_text for type_ in _TEXT_TYPES},
}

_CELL_OF: Mapping[int, Callable[[bytes], Cell]] = {
    INTEGER: lambda bare: bytes([INTEGER, 0, 2 * len(bare)]) + bare,
    DECIMAL: lambda bare: bytes([DECIMAL, 2 * len(bare)]) + bare + bytes(2),
    CHARACTER: lambda bare: b"\x04\x0eutf8mb4" + bare,
}
"""A cell of that value: what a bare value has lost (precision, scale, which name of UTF-8) changes no value."""
