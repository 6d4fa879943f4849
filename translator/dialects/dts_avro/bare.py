"""Convert bare values, which the groups in `patterns` capture instead of cells. Most take one call into C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from translator.dialects.dts_avro.fast_path import TEXT_TYPES
from translator.dialects.dts_avro.patterns import MANY, OTHER_CHARSET
from translator.dialects.dts_avro.record import CHARACTER, DECIMAL, INTEGER, Cell
from translator.dialects.dts_avro.values import CellReader
from translator.values import Unrepresentable
from translator.values.numbers import INTEGER_BOUNDS


def bare_reader(kind: int, canonical_type: str, readers: Sequence[CellReader]) -> CellReader:
    """Return the reader for a column's bare values. `readers` are its cell readers.

    The returned reader raises UnicodeDecodeError, and any error that cell readers raise. In that case, the cell must be
    read.
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
    """Skip a length of one or two bytes, and return the text after it."""
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
    (INTEGER, "int64"): int,  # the pattern enforces the bounds
    **{(INTEGER, type_): bytes.decode for type_ in ("decimal", "string", "unknown")},
    **{(DECIMAL, type_): bytes.decode for type_ in ("decimal", "string", "unknown")},
    **{(CHARACTER, type_): _sized_text for type_ in TEXT_TYPES},
}

_CELL_OF: Mapping[int, Callable[[bytes], Cell]] = {
    INTEGER: lambda bare: bytes([INTEGER, 0, 2 * len(bare)]) + bare,
    DECIMAL: lambda bare: bytes([DECIMAL, 2 * len(bare)]) + bare + bytes(2),
    CHARACTER: lambda bare: b"\x04\x0eutf8mb4" + bare,
}
"""Return a cell with that value. A bare value lacks the precision, the scale and the name of the character set, but
none of these affects the value.
"""
