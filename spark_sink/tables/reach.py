"""Compute the range of keys to look up, so that a reader can skip files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.model.event import Key

# The maximum number of values that a reader compares one by one with a file's statistics. Iceberg's reader has the same
# maximum.
FEW = 200

# Types that have the same literals in both engines, and that have exact statistics.
BOUNDED = frozenset({"tinyint", "smallint", "int", "bigint", "string"})


class KeyRange(NamedTuple):
    """The values of a key column in some rows. If there are only a few values, `values` has all of them."""

    least: Any
    greatest: Any
    values: frozenset[Any] | None = None


# A range of values for each key column.
Reach = Mapping[str, KeyRange]

# The smallest and greatest value to look up in each key column.
Bounds = Mapping[str, tuple[str | int, str | int]]

# All values to look up in key columns that have few values.
Values = dict[str, tuple[str | int, ...]]


def reach_of(keys: Collection[Key], names: Collection[str]) -> Reach:
    """Return the reach for some keys with these column names."""
    values = {name: {key[i] for key in keys} for i, name in enumerate(names)}
    return {name: KeyRange(min(found), max(found), _few(found)) for name, found in values.items()}


def range_of(values: pa.Array) -> KeyRange:
    found = pc.min_max(values).as_py()
    return KeyRange(found["min"], found["max"], _few(values.drop_null().to_pylist()) if len(values) <= FEW else None)


def bounds_of(reach: Reach, types: Mapping[str, str]) -> Bounds:
    """Return the bounds of the reach in the key columns with numbers or strings."""
    return {name: (range.least, range.greatest) for name, range in reach.items() if types[name] in BOUNDED}


def values_of(reach: Reach, types: Mapping[str, str]) -> Values:
    """Return the values of the key columns with numbers or strings that have few distinct values."""
    found = {name: range.values for name, range in reach.items() if types[name] in BOUNDED}
    return {name: tuple(sorted(values)) for name, values in found.items() if values is not None}


def _few(values: Collection[Any]) -> frozenset[Any] | None:
    return frozenset(values) if len(values) <= FEW else None
