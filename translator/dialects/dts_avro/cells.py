"""Read the cells of an image: find the end of each value, and return its content (§1.3)."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from translator.dialects._avro_primitives import (
    Damage,
    int_end,
    read_index,
    read_int,
    read_long,
    read_text,
    sized_end,
    sized_start,
)
from translator.dialects.dts_avro.record import (
    BINARY_GEOMETRY,
    BINARY_OBJECT,
    BRANCHES,
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
    Image,
)

_End: TypeAlias = Callable[[bytes, int], int]
Payload: TypeAlias = Mapping[str, Any]


# -- the ends of payloads


def _null(data: bytes, at: int) -> int:
    return at


def _integer(data: bytes, at: int) -> int:
    length = data[at + 1]
    if data[at] < 0x80 and not length & 0x81:
        return at + 2 + (length >> 1)
    return sized_end(data, int_end(data, at))


def _two_sized(data: bytes, at: int) -> int:
    return sized_end(data, sized_end(data, at))


def _decimal(data: bytes, at: int) -> int:
    return int_end(data, int_end(data, sized_end(data, at)))


def _float(data: bytes, at: int) -> int:
    return int_end(data, int_end(data, at + 8))


# Seconds of any size and micros with up to 28 bits; or seven fields, each of them null or an int with up to 28 bits.
_usual_timestamp = re.compile(rb"[\x80-\xff]{0,7}[\0-\x7f][\x80-\xff]{0,3}[\0-\x7f]").match
_usual_date_time = re.compile(rb"(?:\0|\x02[\x80-\xff]{0,3}[\0-\x7f]){7}").match


def _timestamp(data: bytes, at: int) -> int:
    usual = _usual_timestamp(data, at)
    return usual.end() if usual else int_end(data, read_long(data, at)[1])


def _date_time(data: bytes, at: int) -> int:
    usual = _usual_date_time(data, at)
    return usual.end() if usual else _read_date_time(data, at)[1]


def _zoned(data: bytes, at: int) -> int:
    return sized_end(data, _date_time(data, at))


def _empty(data: bytes, at: int) -> int:
    if data[at] >= 0x80:
        raise _Longer
    return _read_symbol(data, at)[1]


def _no_branch(data: bytes, at: int) -> int:
    raise Damage("union index")


class _Longer(Exception):
    """Read an index that takes more bytes than necessary. Avro allows this, although no writer does it."""


def _long_index(data: bytes, at: int) -> int:
    raise _Longer


_ENDS_BY_BRANCH: Mapping[int, _End] = {
    NULL: _null,
    INTEGER: _integer,
    CHARACTER: _two_sized,
    DECIMAL: _decimal,
    FLOAT: _float,
    TIMESTAMP: _timestamp,
    DATE_TIME: _date_time,
    TIMESTAMP_WITH_TIME_ZONE: _zoned,
    BINARY_GEOMETRY: _two_sized,
    TEXT_GEOMETRY: _two_sized,
    BINARY_OBJECT: _two_sized,
    TEXT_OBJECT: _two_sized,
    EMPTY_OBJECT: _empty,
}
_ENDS: Sequence[_End] = [_ENDS_BY_BRANCH.get(byte, _no_branch if byte < 0x80 else _long_index) for byte in range(256)]


# -- the cells in a block

_WITH_TEXT = frozenset(BRANCHES) - {NULL, FLOAT, TIMESTAMP, DATE_TIME, EMPTY_OBJECT}
"""Branches with a string, which must be UTF-8."""


def read_cells(count: int, data: bytes, at: int) -> tuple[Image, int]:
    """Read `count` cells. Returns the cells and their end."""
    ends = _ENDS
    cells: Image = []
    append = cells.append
    for _ in range(count):
        branch = data[at]
        try:
            end = ends[branch](data, at + 1)
            cell = data[at:end]
        except _Longer:
            cell, end = _shortest(data, at)
            branch = cell[0]
        if branch in _WITH_TEXT and not cell.isascii():
            check_text(cell)
        append(cell)
        at = end
    return cells, at


def read_cells_like(like: Image, data: bytes, at: int) -> tuple[Image, list[int], int]:
    """Read as many cells as `like` has. Returns the cells, the indexes of cells that differ from `like`, and the end.

    If a cell has the same bytes as the one at the same index, the object is reused. This is fast. The bytes of a value
    determine its end, and the value need not be converted again.
    """
    cells = like.copy()
    others: list[int] = []
    for index, same in enumerate(like):
        if data.startswith(same, at):
            at += len(same)
        else:
            (cells[index],), at = read_cells(1, data, at)
            others.append(index)
    return cells, others, at


def _shortest(data: bytes, at: int) -> tuple[Cell, int]:
    """Return the cell with one-byte indexes, and its original end."""
    index, start = read_index(data, at, len(BRANCHES))
    if 2 * index == EMPTY_OBJECT:
        ordinal, end = _read_symbol(data, start)
        return bytes([EMPTY_OBJECT, 2 * ordinal]), end
    end = _ENDS[2 * index](data, start)
    return bytes([2 * index]) + data[start:end], end


_UTF8 = (b"\x04\x0eutf8mb4", b"\x04\x08utf8")


def check_text(cell: Cell) -> None:
    """Raise UnicodeDecodeError if a string in the cell is not UTF-8. The bytes in a Character are not a string."""
    if not cell.isascii() and not cell.startswith(_UTF8):
        payload(cell)


# -- what a cell contains

_Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]


def payload(cell: Cell) -> Payload:
    """Return the payload's fields by name. A nested DateTime's fields are a mapping of their own."""
    return _read_fields(_FIELDS[cell[0]], cell, 1)[0]


def _read_fields(fields: Mapping[str, _Reader], data: bytes, at: int) -> tuple[Payload, int]:
    found = {}
    for name, read in fields.items():
        found[name], at = read(data, at)
    return found, at


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    start, end = sized_start(data, at)
    return data[start:end], end


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    (number,) = struct.unpack_from("<d", data, at)
    return number, at + 8


def _read_component(data: bytes, at: int) -> tuple[int | None, int]:
    index, at = read_index(data, at, 2)
    return read_int(data, at) if index else (None, at)


_COMPONENTS = dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "millis"), _read_component)


def _read_date_time(data: bytes, at: int) -> tuple[Payload, int]:
    return _read_fields(_COMPONENTS, data, at)


def _read_symbol(data: bytes, at: int) -> tuple[int, int]:
    return read_index(data, at, 2)


_SIZED_TEXT: Mapping[str, _Reader] = {"type": read_text, "value": read_text}
_SIZED_BYTES: Mapping[str, _Reader] = {"type": read_text, "value": _read_bytes}
_FIELDS: Mapping[int, Mapping[str, _Reader]] = {
    NULL: {},
    INTEGER: {"precision": read_int, "value": read_text},
    CHARACTER: {"charset": read_text, "value": _read_bytes},
    DECIMAL: {"value": read_text, "precision": read_int, "scale": read_int},
    FLOAT: {"value": _read_double, "precision": read_int, "scale": read_int},
    TIMESTAMP: {"timestamp": read_long, "millis": read_int},
    DATE_TIME: _COMPONENTS,
    TIMESTAMP_WITH_TIME_ZONE: {"value": _read_date_time, "timezone": read_text},
    BINARY_GEOMETRY: _SIZED_BYTES,
    TEXT_GEOMETRY: _SIZED_TEXT,
    BINARY_OBJECT: _SIZED_BYTES,
    TEXT_OBJECT: _SIZED_TEXT,
    EMPTY_OBJECT: {"symbol": _read_symbol},
}
