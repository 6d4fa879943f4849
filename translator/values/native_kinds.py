"""List the kinds of cells that the native path can read itself, by the converter that each kind replaces.

A kind accepts some of its converter's formats, and writes the same result. The converter handles all other formats.
Converters that are not listed here are always called. `tests/translator/native/test_cells.py` compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from translator.values import converter
from translator.values.numbers import INTEGER_BOUNDS
from translator.values.scalar import Converter

NativeKind: TypeAlias = tuple[str, int, int]
"""A kind as named in `_native/src/cells.rs`, with up to two numbers that it requires."""

PYTHON: NativeKind = ("python", 0, 0)
"""The kind for cells that only their converter can read."""

_TEXT: NativeKind = ("text", 0, 0)
_MAX_HOURS = 99
"""Maximum exponent that is read natively: two digits."""

_KINDS: Mapping[str, NativeKind] = {
    **{name: ("integer", *bounds) for name, bounds in INTEGER_BOUNDS.items() if name != "uint64"},
    "uint64": ("uint64", 0, 0),
    "decimal": ("number", 0, 0),
    "float32": ("float32", 0, 0),
    "float64": ("float64", 0, 0),
    "boolean": ("boolean", 0, 0),
    "date": ("date", 0, 0),
    "time": ("time", _MAX_HOURS, 0),
    "timestamp": ("timestamp", 0, 0),
    "timestamptz": ("timestamptz", 0, 0),
    "string": _TEXT,
    "unknown": ("unknown", 0, 0),
    **dict.fromkeys(("uuid", "interval", "enum", "set"), ("verbatim", 0, 0)),
    "json": ("json", 0, 0),
    "bytes": ("bytes", 0, 0),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)\Z")


def native_kind(canonical_type: str, convert: Converter | None) -> NativeKind:
    """Return the kind for a column's cells.

    Args:
        convert: the cell converter, or None if cells are copied unchanged.
    """
    if convert is None:
        return _TEXT
    # A dialect can use a special converter for a type, so the type alone is not enough.
    if convert is not converter(canonical_type):
        return PYTHON
    match = _DECIMAL.match(canonical_type)
    if match is None:
        return _KINDS.get(canonical_type, PYTHON)
    precision, scale = int(match[1]), int(match[2])
    return ("decimal", precision - scale, scale) if precision >= scale else PYTHON


def with_fraction(kind: NativeKind, digits: int) -> NativeKind:
    """Return the kind for cells in which the fraction of a second is a number instead of text, with at most `digits`
    digits.
    """
    name, first, _ = kind
    if name == "time":
        return name, first, digits
    return (name, digits, 0) if name in ("timestamp", "timestamptz") else kind


def integers_within(low: int, high: int) -> NativeKind:
    """Return the kind for integers whose bounds match no canonical type."""
    return "integer", low, high
