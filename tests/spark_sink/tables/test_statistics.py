"""Statistics in the Delta log never hide a row, although deltalake's can be wrong for decimals, floats and times."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any

from deltalake import DeltaTable, QueryBuilder
from pyspark.sql.functions import col, lit

from tests.spark_sink.changes import change
from tests.spark_sink.lake import MergingLake
from tests.spark_sink.pairs import TABLES, announce, both, rules

COLUMNS = {
    "id": "uint64",
    "flag": "boolean",
    "tiny": "int8",
    "small": "int16",
    "whole": "int32",
    "big": "int64",
    "amount": "decimal(18,4)",
    "wide": "decimal(38,10)",
    "real": "float32",
    "double": "float64",
    "name": "string",
    "raw": "bytes",
    "day": "date",
    "clock": "time",
    "local": "timestamp",
    "zoned": "timestamptz",
    "doc": "json",
}


def _sample(n: int) -> dict[str, object]:
    """Return values that differ by row but so little that statistics would round them."""
    return {
        "flag": n % 2 == 0,
        "tiny": n,
        "small": n,
        "whole": -n,
        "big": 2**62 + n,
        "amount": f"12345678901234.{5670 + n}",
        "wide": f"1234567890123456789012345678.{1234567800 + n}",
        "real": 0.1 + n,
        "double": n / 3,
        "name": "名" * 40 + str(n),
        "raw": base64.b64encode(bytes([n, 255])).decode(),
        "day": f"1969-12-{n + 1:02d}",
        "clock": f"00:00:{n:02d}.5",
        "local": f"1969-12-31T23:59:59.{999000 + n:06d}",
        "zoned": f"1969-12-31T23:59:59.{999500 + n:06d}Z",
        "doc": '{"n":' + str(n) + "}",
    }


def test_a_filter_on_every_column_finds_the_row(merging_lake: MergingLake) -> None:
    """A filter on any column returns the row with Spark and deltalake, after appends and merges of both engines."""
    merging_lake.use(rules())
    announce(merging_lake, COLUMNS)
    top = 2**64 - 1
    events = [change("c", {"id": str(top - n)}, _sample(n), pos=n) for n in range(12)]
    merging_lake.apply(0, both(events[:6]))
    merging_lake.apply(1, both([*events[6:], change("u", {"id": str(top)}, {"name": "patched"}, pos=90, full=False)]))
    for table in TABLES:
        stored = {row["id"]: row for row in merging_lake.rows(f"shop_sales.{table}")}
        assert 12 == len(stored)
        _check_filters(merging_lake, f"shop_sales.{table}", top - 3, stored[Decimal(top - 3)])


def _check_filters(merging_lake: MergingLake, table: str, id: int, wanted: dict[str, Any]) -> None:
    assert (Decimal("12345678901234.5673"), date(1969, 12, 4)) == (wanted["amount"], wanted["day"])
    assert datetime(1969, 12, 31, 23, 59, 59, 999503, tzinfo=UTC) == wanted["zoned"]
    read = merging_lake.spark.read.format("delta").load(merging_lake.path(table))
    columns = {field.name: field.dataType.simpleString() for field in read.schema}
    # One statement filters on every column, so that a row hidden by any of them is missing.
    found = read.where(reduce(and_, (col(name) == lit(wanted[name]).cast(columns[name]) for name in COLUMNS)))
    assert [id] == [row.id for row in found.select("id").collect()]
    builder = QueryBuilder().register("t", DeltaTable(merging_lake.path(table)))
    seen = set()
    for name in COLUMNS:
        sql = f'SELECT id FROM t WHERE "{name}" = {_literal(wanted[name], columns[name])}'
        if id in builder.execute(sql).read_all().column("id").to_pylist():
            seen.add(name)
    assert set(COLUMNS) == seen


def _literal(value: object, sql: str) -> str:
    """Return a value as a DataFusion literal with the type of its column."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return f"arrow_cast('{value}', '{_ARROW_NAMES.get(sql.split('(')[0]) or DECIMALS[sql]}')"


_ARROW_NAMES = {
    "boolean": "Boolean",
    "tinyint": "Int8",
    "smallint": "Int16",
    "int": "Int32",
    "bigint": "Int64",
    "float": "Float32",
    "double": "Float64",
    "string": "Utf8",
    "date": "Date32",
    "timestamp_ntz": "Timestamp(Microsecond, None)",
    "timestamp": 'Timestamp(Microsecond, Some("UTC"))',
}
DECIMALS = {
    "decimal(20,0)": "Decimal128(20, 0)",
    "decimal(18,4)": "Decimal128(18, 4)",
    "decimal(38,10)": "Decimal128(38, 10)",
}
