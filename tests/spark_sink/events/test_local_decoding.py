"""Decoding gives the same records with Spark, as in production, and without it, as in most tests."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_sink.events.source import decoded
from spark_sink.schema.table_naming import TablePattern
from tests.spark_sink.changes import change, record, statement
from tests.spark_sink.events.test_source import EVENTS, FIRST_BYTES, framed
from tests.spark_sink.local import decode

PATTERN = TablePattern.parse("{source}_{db}_{schema}.{table}", {"shop/*//odd": "elsewhere.Orders"})
WITHHOLDING = [
    change("c", {"id": 1}, {}, pos=1, full=False, unavailable=["a"]),
    change("u", {"id": 1}, {}, pos=1, full=False, unavailable=["a"], changed=["b", "a"]),
    change("u", {"id": 1}, {"b": 1}, pos=1, full=False, unavailable=["a"], changed=["b"]),
    change("u", {"id": 1}, {'a"\u00e9': None}, pos=1, full=False, issues=['a"\u00e9']),
    change("u", {"id": 1}, None, pos=1, unavailable=["b"]),
    change("c", {"id": 1}, {"a": 1}, pos=1, unavailable=[]),
]
STATEMENTS = [
    statement("TABLE_DROPPED", pos=1),
    statement('DEFAULT_FILLED=\u00e9"\\:string', "OTHER", pos=1, after={"\u00e9": "x/\u2028"}),
    statement("TABLE_DROPPED", pos=1, table=None),
    change(None, None, pos=1, kind="schema"),
    change("c", {"id": 1}, {}, pos=1, notes=["BEFORE_MERGED"]),
]
ROUTES = [change("c", {"id": 1}, {}, pos=1, table=table) for table in ("odd", "ODD", "a.b", "\u00c9t\u00e9", "")]
VALUES = [
    *(record(event) for event in [*EVENTS, *WITHHOLDING, *STATEMENTS, *ROUTES]),
    *(framed(event, 7) for event in EVENTS[:3]),
    *(value for value, _ in FIRST_BYTES.values()),
]


@pytest.mark.parametrize("carried", [None, [], ["shop_sales.orders"]])
def test_rows_are_alike(spark: SparkSession, carried: list[str] | None) -> None:
    """Every column matches except the bucket, by which Spark distributes tables over tasks."""
    records = pa.table(
        {
            "partition": pa.array([0] * len(VALUES), pa.int32()),
            "offset": pa.array(range(len(VALUES)), pa.int64()),
            "value": pa.array(VALUES, pa.binary()),
        }
    )
    there = decoded(spark.createDataFrame(records), PATTERN.route_sql(), carried=carried).orderBy("offset").toArrow()
    here = decode(records, PATTERN, carried=carried)
    assert there.column_names == here.column_names
    assert there.drop_columns("bucket").to_pylist() == here.drop_columns("bucket").to_pylist()
    types = {name: there.schema.field(name).type for name in there.column_names}
    assert types == {name: here.schema.field(name).type for name in here.column_names}
