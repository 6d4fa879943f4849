"""Map canonical types to Delta column types and Arrow types (docs/sink/types.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

# uint64 is decimal(20,0), because neither a bigint nor a double can represent all of its values.
_BY_CANONICAL: Mapping[str, str] = {
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float32": "float",
    "float64": "double",
    "bytes": "binary",
    "geometry": "binary",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}

_ARROW: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

# Types whose names in the Delta log differ from their names in SQL.
_BY_DELTA: Mapping[str, str] = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_BY_SQL: Mapping[str, str] = {sql: delta for delta, sql in _BY_DELTA.items()}

_DECIMAL = re.compile(r"decimal\((\d+), ?(-?\d+)\)")

# The minimum and maximum of columns with these types are unreliable. In the log, decimals are float64 (if deltalake
# writes them) and times are in milliseconds, and both are inexact. The log also sorts NaN differently from readers. A
# filter could skip the file that contains the row.
_NO_STATISTICS = ("decimal", "float", "double", "binary", "boolean", "timestamp")


def sql_type(canonical: str) -> str:
    """Return the Spark SQL type that a column gets for its canonical type.

    Values that no column can store exactly are stored as text, as in the event. So are values whose types come from
    later releases.
    """
    decimal = _DECIMAL.fullmatch(canonical)
    if decimal:
        precision, scale = int(decimal[1]), int(decimal[2])
        return f"decimal({precision},{scale})" if 1 <= precision <= 38 and 0 <= scale <= precision else "string"
    return _BY_CANONICAL.get(canonical, "string")


TIMES = frozenset({"timestamp", "timestamptz"})
"""Canonical types for points in time. Table columns store them in microseconds."""

# SQL Server's `datetime2` and `datetimeoffset` have seven digits by default.
_FINE = re.compile(r"(?i)(datetime2|datetimeoffset)|.*\(([7-9])\).*")


def is_finer_than_microseconds(native: str | None) -> bool:
    """Return whether the source declares a time column with more than six fraction digits."""
    return native is not None and _FINE.fullmatch(native.strip()) is not None


# The number of digits before the decimal point in the greatest value.
_DIGITS: Mapping[str, int] = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}

# For each type except decimals, the types whose values it can store without changing the values' text.
_HOLDS: Mapping[str, frozenset[str]] = {
    "smallint": frozenset({"tinyint"}),
    "int": frozenset({"tinyint", "smallint"}),
    "bigint": frozenset({"tinyint", "smallint", "int"}),
    "double": frozenset({"float", "tinyint", "smallint", "int"}),
}


def holds(sql: str, other: str) -> bool:
    """Return whether a column with the type `sql` can store every value of the type `other` exactly.

    A text column can store everything that events contain as text. It cannot store bytes, because their base64 form
    would look like text.
    """
    if sql == other or other in _HOLDS.get(sql, ()):
        return True
    if sql == "string":
        return other != "binary"
    ours = _DECIMAL.fullmatch(sql)
    if not ours:
        return False
    precision, scale = int(ours[1]), int(ours[2])
    theirs = _DECIMAL.fullmatch(other)
    if theirs:
        return scale >= int(theirs[2]) and precision - scale >= int(theirs[1]) - int(theirs[2])
    return other in _DIGITS and precision - scale >= _DIGITS[other]


def is_narrower(sql: str, other: str) -> bool:
    """Return whether all values of the type `sql` are also values of the type `other`, and whether each value of
    `other` can be tested against `sql`. Both conditions are met only by numeric types. A float accepts every double,
    but rounds it.
    """
    return (sql in _DIGITS or _DECIMAL.fullmatch(sql) is not None) and other != "string" and holds(other, sql)


# The number of digits before the decimal point that Delta's type widening requires in a decimal that replaces an
# integer type.
_WIDENED_DIGITS: Mapping[str, int] = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}


def widens(sql: str, wanted: str) -> bool:
    """Return whether Delta Lake can change a column in place from `sql` to `wanted` (docs/sink-design.md §5.1)."""
    if wanted == "string" or not holds(wanted, sql):
        return False
    decimal = _DECIMAL.fullmatch(wanted)
    if decimal and sql in _WIDENED_DIGITS:
        return int(decimal[1]) - int(decimal[2]) >= _WIDENED_DIGITS[sql]
    return True


# The type changes that Iceberg can make in place. In addition, it can increase a decimal's precision.
_ICEBERG_WIDENS = frozenset({("int", "bigint"), ("float", "double")})


def iceberg_widens(sql: str, wanted: str) -> bool:
    """Return whether Iceberg can change a column in place from `sql` to `wanted`."""
    ours, theirs = _DECIMAL.fullmatch(wanted), _DECIMAL.fullmatch(sql)
    if ours and theirs:
        return ours[2] == theirs[2] and int(ours[1]) > int(theirs[1])
    return (sql, wanted) in _ICEBERG_WIDENS


def sql_type_of_delta(delta: str) -> str:
    """Convert a type from the Delta log to Spark SQL. A type that no event can have is returned unchanged."""
    decimal = _DECIMAL.fullmatch(delta)
    if decimal:
        return f"decimal({decimal[1]},{decimal[2]})"
    return _BY_DELTA.get(delta, delta)


def delta_type(sql: str) -> str:
    """Return the name that the Delta log uses for an event column's Spark SQL type."""
    return _BY_SQL.get(sql, sql)


def arrow_type(sql: str) -> pa.DataType:
    """Return the Arrow type for a Spark SQL type that `sql_type` returns."""
    decimal = _DECIMAL.fullmatch(sql)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _ARROW[sql]


def is_known(sql: str) -> bool:
    """Return whether events can be written to a column with this type."""
    return sql in _ARROW or _DECIMAL.fullmatch(sql) is not None


def has_statistics(sql: str) -> bool:
    """Return whether the Delta log has a reliable minimum and maximum for a column of this type."""
    return is_known(sql) and not sql.startswith(_NO_STATISTICS)
