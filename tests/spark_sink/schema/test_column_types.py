"""Canonical types to column types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_sink.schema.column_types import (
    arrow_type,
    has_statistics,
    holds,
    iceberg_widens,
    is_known,
    sql_type,
    sql_type_of_delta,
    widens,
)

CANONICAL = [
    "boolean",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "decimal(10,2)",
    "decimal",
    "float32",
    "float64",
    "string",
    "bytes",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "json",
    "uuid",
    "enum",
    "set",
    "geometry",
    "unknown",
]


@pytest.mark.parametrize(
    ("canonical", "sql"),
    [
        ("int8", "tinyint"),
        ("uint8", "smallint"),
        ("uint16", "int"),
        ("uint32", "bigint"),
        ("uint64", "decimal(20,0)"),
        ("decimal(38,38)", "decimal(38,38)"),
        ("decimal(39,2)", "string"),
        ("decimal(5,-2)", "string"),
        ("decimal(5,7)", "string"),
        ("decimal", "string"),
        ("timestamp", "timestamp_ntz"),
        ("timestamptz", "timestamp"),
        ("geometry", "binary"),
        ("time", "string"),
        ("of a later release", "string"),
    ],
)
def test_types(canonical: str, sql: str) -> None:
    """A canonical type gets the smallest column type that holds every value, or text if none does."""
    assert sql == sql_type(canonical)


@pytest.mark.parametrize("canonical", CANONICAL)
def test_every_type_can_be_written(canonical: str) -> None:
    """Every canonical type gets a column that events can be written to."""
    sql = sql_type(canonical)
    assert is_known(sql)
    assert isinstance(arrow_type(sql), pa.DataType)


def test_types_of_the_log() -> None:
    """The types of the Delta log are SQL types. An unknown type is kept and cannot be written."""
    assert ["bigint", "decimal(18,4)", "map<string>"] == [
        sql_type_of_delta(word) for word in ("long", "decimal(18,4)", "map<string>")
    ]
    assert not is_known("map<string>")


def test_no_statistics_where_they_lie() -> None:
    """Decimals and floats have no statistics, because their minimum and maximum in the log are inexact."""
    assert [True, False, False, False] == [has_statistics(t) for t in ("bigint", "decimal(20,0)", "double", "float")]


@pytest.mark.parametrize("canonical", CANONICAL)
def test_what_a_column_holds(canonical: str) -> None:
    """A column holds its own type. Text holds everything but bytes. Only a time column and text hold a time."""
    sql = sql_type(canonical)
    assert holds(sql, sql)
    assert holds("string", sql) == (sql != "binary")
    assert not holds("timestamp", sql) or sql == "timestamp"


@pytest.mark.parametrize(
    ("sql", "other"),
    [
        ("bigint", "int"),
        ("decimal(20,0)", "bigint"),
        ("decimal(12,2)", "int"),
        ("decimal(12,3)", "decimal(10,2)"),
        ("double", "int"),
    ],
)
def test_holding_has_one_direction(sql: str, other: str) -> None:
    """A wider type holds a narrower one, but not the reverse."""
    assert (True, False) == (holds(sql, other), holds(other, sql))


@pytest.mark.parametrize(
    ("sql", "other"),
    [("double", "bigint"), ("decimal(18,0)", "bigint"), ("decimal(10,4)", "decimal(8,1)"), ("bigint", "decimal(4,0)")],
)
def test_what_a_column_does_not_hold(sql: str, other: str) -> None:
    """No digit can be lost, before or after the decimal point."""
    assert not holds(sql, other)


@pytest.mark.parametrize(
    ("sql", "wanted", "can"),
    [
        ("tinyint", "smallint", True),
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("int", "double", True),
        ("bigint", "double", False),
        ("float", "double", True),
        ("smallint", "decimal(10,0)", True),
        ("smallint", "decimal(9,0)", False),
        ("int", "decimal(12,3)", False),
        ("bigint", "decimal(20,0)", True),
        ("bigint", "decimal(19,0)", False),
        ("decimal(10,2)", "decimal(12,4)", True),
        ("decimal(10,2)", "decimal(11,4)", False),
        ("decimal(10,2)", "string", False),
        ("date", "timestamp_ntz", False),
    ],
)
def test_types_that_delta_widens(sql: str, wanted: str, can: bool) -> None:
    """The table of docs/sink-design.md §5.1. A date is not widened, because its events would not read as times."""
    assert can == widens(sql, wanted)


@pytest.mark.parametrize(
    ("sql", "wanted", "can"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("double", "float", False),
        ("int", "double", False),
        ("decimal(9,2)", "decimal(12,2)", True),
        ("decimal(12,2)", "decimal(9,2)", False),
        ("decimal(9,2)", "decimal(9,2)", False),
        ("decimal(9,2)", "decimal(12,3)", False),
    ],
)
def test_types_that_iceberg_widens(sql: str, wanted: str, can: bool) -> None:
    """Iceberg changes no scale."""
    assert can == iceberg_widens(sql, wanted)
