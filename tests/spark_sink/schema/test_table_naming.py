"""The name of the table for a source table."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cdc_core.table_id import TableId
from spark_sink.schema.table_naming import TablePattern

DEFAULT = TablePattern.parse("{source}_{db}_{schema}.{table}")


@pytest.mark.parametrize(
    ("table", "target"),
    [
        (TableId("s", "db", None, "t"), "s_db.t"),
        (TableId("s", "db", "dbo", "t"), "s_db_dbo.t"),
        (TableId("s", None, None, "t"), "s.t"),
        (TableId("s", "db", None, "订单"), "s_db.订单"),
        (TableId("s", "db", None, "../../etc"), "s_db.~2e~~2e~~2f~~2e~~2e~~2f~etc"),
        (TableId("s", "a.b", None, "c~d e"), "s_a~2e~b.c~7e~d~20~e"),
    ],
)
def test_targets(table: TableId, target: str) -> None:
    """A missing part is omitted with the text before it. A name can neither leave its folder nor imitate another."""
    assert target == DEFAULT.target(table)


@pytest.mark.parametrize(
    "text",
    [
        "{source}",
        "{table}{tabel}",
        "{table}.parquet",
        "../{table}",
        "a/{table}",
        "_cdc.{table}",
        "a..{table}",
        "{table!r}",
    ],
)
def test_patterns_that_are_none(text: str) -> None:
    """A pattern uses known parts, and cannot point outside the warehouse or at control tables."""
    with pytest.raises(ValueError, match=r"part|pattern|text"):
        TablePattern.parse(text)


def test_tasks_meet_where_names_do(spark: SparkSession) -> None:
    """Tasks group tables by name without case, including renamed tables and any characters."""
    renamed = {"s/db//a": "x.One", "s/db//it's (?) *": "x.two", "*/\\d.//t": "x.three", "???/db//订*": "x.four"}
    pattern = TablePattern.parse("{source}_{db}.{table}", renamed)
    tables = [
        *(TableId("s", "db", None, name) for name in ("a", "A", "a\n", "it's (1) x", "it's (12) x", "订单")),
        TableId("s", "\\d.", None, "t"),
        TableId("s", "1x", None, "t"),
        TableId("abc", "db", None, "订单"),
        TableId("s", None, None, "t"),
    ]
    frame = spark.createDataFrame(tables, "source string, db string, schema string, table string")
    routes = [row[0] for row in frame.selectExpr(pattern.route_sql()).collect()]
    named = [pattern.target(table) for table in tables]
    assert ["x.One", "s_db.A", "x.two", "x.three", "x.four"] == [named[i] for i in (0, 1, 3, 6, 8)]
    plain = [i for i, name in enumerate(named) if "~" not in name]
    assert [named[i].lower() for i in plain] == [routes[i] for i in plain]
    assert not {routes[i] for i in range(len(tables)) if i not in plain} & {name.lower() for name in renamed.values()}


def test_tasks_meet_without_the_first_folder(spark: SparkSession) -> None:
    """If a source has no value for the first folder, its table can have the same name as a renamed table."""
    pattern = TablePattern.parse("{schema}.{table}", {"s/db//a": "t"})
    tables = [TableId("s", "db", None, "t"), TableId("s", "db", None, "a"), TableId("s", "db", "x", "t")]
    frame = spark.createDataFrame(tables, "source string, db string, schema string, table string")
    routes = [row[0] for row in frame.selectExpr(pattern.route_sql()).collect()]
    assert ["t", "t", "x.t"] == routes == [pattern.target(table) for table in tables]
