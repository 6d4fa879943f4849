"""Compare types by their names at the source, to find out whether one type can store every value of another unchanged.

The answer shows whether a statement that changed the type of a column also changed values in existing rows. If a type
is unknown, the values are assumed to have changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_TYPE = re.compile(r"\s*([a-z][a-z0-9_ ]*)(?:\((.*)\)([a-z ]*))?\Z", re.IGNORECASE | re.DOTALL)
_LABEL = re.compile(r"'((?:[^']|'')*)'")

# The number of bits, including the sign. DTS for MySQL uses these upper-case names. PostgreSQL's int8 has 64 bits.
_DTS_INTEGERS: Mapping[str, int] = {"INT8": 8, "INT16": 16, "INT24": 24, "INT32": 32, "INT64": 64}
_INTEGERS: Mapping[str, int] = {
    **dict.fromkeys(("tinyint", "int1", "bool", "boolean"), 8),
    **dict.fromkeys(("smallint", "int2"), 16),
    **dict.fromkeys(("mediumint", "int3", "middleint"), 24),
    **dict.fromkeys(("int", "integer", "int4"), 32),
    **dict.fromkeys(("bigint", "int8"), 64),
}
_DIGITS: Mapping[int, int] = {8: 3, 16: 5, 24: 8, 32: 10, 64: 20}
_DECIMALS = frozenset({"decimal", "dec", "numeric", "fixed", "number"})
_FLOATS: Mapping[str, int] = {
    **dict.fromkeys(("float", "real", "float4", "binary_float"), 1),
    **dict.fromkeys(("double", "double precision", "float8", "binary_double"), 2),
}
_VARYING = frozenset({"varchar", "varchar2", "nvarchar", "nvarchar2", "character varying"})
_FIXED = frozenset({"char", "nchar", "character"})
_TEXTS: Mapping[str, float] = {
    "tinytext": 255,
    "text": 65_535,
    "mediumtext": 2**24 - 1,
    "longtext": 2**32 - 1,
    "clob": float("inf"),
    "nclob": float("inf"),
}
_BYTES_A_CHARACTER = 4
_TIMES = frozenset({"datetime", "datetime2", "timestamp", "time"})


class _Native(NamedTuple):
    """A type, parsed into its parts. The name is in lower case, except for DTS integers."""

    name: str
    numbers: tuple[int, ...]
    labels: tuple[str, ...]
    unsigned: bool
    text: str


def holds_native(new: str, old: str | None) -> bool:
    """Return whether values of the type `old` are unchanged in the type `new`. Return False if this is unknown."""
    wanted, before = _taken_apart(new), None if old is None else _taken_apart(old)
    if wanted is None or before is None:
        return False
    if wanted.text == before.text:
        return True
    return any(rule(wanted, before) for rule in (_integers, _decimals, _floats, _texts, _times, _labels))


def _taken_apart(text: str) -> _Native | None:
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    name = match[1].strip()
    name = name if name in _DTS_INTEGERS else name.lower()
    inside, behind = match[2] or "", (match[3] or "").lower().split()
    words = name.split()
    attributes = {*behind, *words}
    plain = " ".join(word for word in words if word not in ("unsigned", "zerofill"))
    numbers = tuple(int(part) for part in inside.split(",") if part.strip().isdecimal() and len(part) < 12)
    labels = tuple(_LABEL.findall(inside))
    unsigned = not attributes.isdisjoint({"unsigned", "zerofill"})
    normal = " ".join([plain, ",".join(labels) if labels else inside.replace(" ", ""), *sorted(behind)])
    return _Native(plain, numbers, labels, unsigned, normal)


def _bits(native: _Native) -> int | None:
    return _DTS_INTEGERS.get(native.name) or _INTEGERS.get(native.name)


def _integers(new: _Native, old: _Native) -> bool:
    to, since = _bits(new), _bits(old)
    if to is None or since is None:
        return False
    if old.name in _DTS_INTEGERS:
        return (
            to >= since and not new.unsigned
        )  # the sign is unknown; a wider or equal signed type can represent all values
    return to >= since if new.unsigned == old.unsigned else to > since and old.unsigned


def _decimals(new: _Native, old: _Native) -> bool:
    if new.name not in _DECIMALS:
        return False
    precision, scale = (*new.numbers, 0, 0)[:2] if new.numbers else (float("inf"), float("inf"))
    if (bits := _bits(old)) is not None:
        return precision - scale >= _DIGITS[bits] or not new.numbers
    if old.name not in _DECIMALS:
        return False
    if not new.numbers:
        return True
    before, fraction = (*old.numbers, 0, 0)[:2]
    return bool(old.numbers) and scale >= fraction and precision - scale >= before - fraction


def _floats(new: _Native, old: _Native) -> bool:
    to, since = _FLOATS.get(new.name), _FLOATS.get(old.name)
    return to is not None and since is not None and to >= since and not new.numbers


def _texts(new: _Native, old: _Native) -> bool:
    """Return whether the new text type can store every value of the old one. Lengths are in characters, but MySQL's
    large text types count bytes. Fixed-length text is padded or stripped, so only a longer type is safe.
    """
    if new.name in _FIXED:
        return old.name in _FIXED and bool(new.numbers and old.numbers) and new.numbers[0] >= old.numbers[0]
    if old.name in _TEXTS:
        return _TEXTS.get(new.name, 0) >= _TEXTS[old.name]
    if old.name not in _VARYING | _FIXED:
        return False
    length = old.numbers[0] if old.numbers else None
    if new.name in _TEXTS:
        return length is not None and _TEXTS[new.name] >= length * _BYTES_A_CHARACTER
    if new.name not in _VARYING:
        return False
    return not new.numbers or (length is not None and new.numbers[0] >= length)


def _times(new: _Native, old: _Native) -> bool:
    if new.name != old.name or new.name not in _TIMES:
        return False
    return (*new.numbers, 0)[0] >= (*old.numbers, 0)[0]


def _labels(new: _Native, old: _Native) -> bool:
    return new.name == old.name and new.name in ("enum", "set") and bool(old.labels) and {*old.labels} <= {*new.labels}
