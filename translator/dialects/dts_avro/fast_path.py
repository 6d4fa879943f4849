"""Convert the most common cells from bytes to canonical values in a single step.

These are shortcuts for speed. Each shortcut checks that the bytes are where the usual encoding has them. Any other
encoding, and any error, takes the plain path (`values`). Property tests check that both give the same result.
"""

from __future__ import annotations

import struct
from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from translator.dialects.dts_avro import charsets, fast_times
from translator.dialects.dts_avro.kinds import TELLING, guarded
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
from translator.values import converter
from translator.values.numbers import INTEGER_BOUNDS


@lru_cache(maxsize=1024)
def cell_readers(canonical_type: str, reading: Reading, *, open_kind: bool = False) -> Sequence[CellReader]:
    """Return the readers for a column's cells, by the cell's first byte. EmptyObject must not occur.

    `open_kind`: only a value can show whether the column is text or bytes. A value that contradicts the assumed type
    raises Contrary.
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

_MAX_DIGITS = 20
"""Values with this many digits are left to the plain path. With a precision of more than one byte, the length would be
among the digits. A value might then look like a number although more digits follow.
"""


def _bounded(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """02, precision, length, digits."""
    low, high = INTEGER_BOUNDS[canonical_type]

    def read(cell: Cell) -> Scalar:
        digits = cell[3:]
        if len(digits) < _MAX_DIGITS and (digits.isdigit() or (digits[:1] == b"-" and digits[1:].isdigit())):
            number = int(digits)
            if low <= number <= high:
                return number
        return plain(cell)

    return read


def _digits(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """Return a reader that returns the text itself, if the text has no unnecessary zero."""

    def read(cell: Cell) -> Scalar:
        digits = cell[3:]
        if len(digits) < _MAX_DIGITS and digits.isdigit() and (digits[0] != _ZERO or len(digits) == 1):
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
    """16, length, type, length, text. The reader has already verified that strings are UTF-8."""

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
    """Return the second text or bytes, after a length of one or two bytes. None for longer lengths."""
    at = 2 + (cell[1] >> 1)
    if cell[1] >= 0x80:
        return None
    if cell[at] >= 0x80:
        at += 1
    return cell[at + 1 :] if cell[at] < 0x80 else None


# -- the tables

Rule: TypeAlias = Callable[[str, Reading, CellReader], CellReader]

TEXT_TYPES = ("string", "enum", "set", "json", "uuid", "interval", "unknown")

_RULES: Mapping[tuple[int, str], Rule] = {
    **{(INTEGER, type_): _bounded for type_ in INTEGER_BOUNDS if type_ != "uint64"},
    **{(INTEGER, type_): _digits for type_ in ("uint64", "decimal", "string", "unknown")},
    **{(CHARACTER, type_): _character for type_ in TEXT_TYPES},
    (CHARACTER, "bytes"): _bytes,
    **{(TEXT_OBJECT, type_): _text for type_ in TEXT_TYPES},
    **{(TEXT_GEOMETRY, type_): _text for type_ in ("string", "unknown")},
    (BINARY_OBJECT, "bytes"): _bytes,
    (BINARY_OBJECT, "unknown"): _bytes,
    (FLOAT, "float32"): _float,
    (FLOAT, "float64"): _float,
    (DATE_TIME, "date"): fast_times.read_date,
    (DATE_TIME, "time"): fast_times.read_time,
    (DATE_TIME, "timestamp"): fast_times.read_local,
    (DATE_TIME, "unknown"): fast_times.read_local,
    (TIMESTAMP, "timestamptz"): fast_times.read_instant,
    (TIMESTAMP, "unknown"): fast_times.read_instant,
    (TIMESTAMP_WITH_TIME_ZONE, "timestamptz"): fast_times.read_zoned,
}
_RULES_FOR_ALL_TYPES: Mapping[int, Rule] = {DECIMAL: _decimal}
"""The conditions under which a type's converter returns the cell unchanged."""
