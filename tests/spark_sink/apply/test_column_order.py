"""The sink's own columns are the last columns of a table, also after columns are added."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import duckdb
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from spark_sink.config.table_rules import TableRules
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.spark.session import sibling
from spark_sink.tables.iceberg.catalogs import quoted
from spark_sink.tables.meta_columns import OWN_COLUMNS
from spark_sink.tables.table_properties import COLUMNS_PROPERTY
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, MergingLake, read_by_spark

OLD = {"id": "int64", "a": "string"}
NEW = {"id": "int64", "b": "timestamp", "a": "string", "c": "decimal(9,2)"}
ROW = {"b": "2026-01-02T03:04:05", "c": "1.50"}

MODES = pytest.mark.parametrize("mode", Mode)


def _grown(lake: Lake, mode: Mode) -> None:
    """Add two columns to a table in the middle of a stream."""
    lake.use(replace(lake.rules, modes={"*": mode}))
    lake.announce(schema_of(OLD))
    lake.apply(0, [change("c", {"id": id}, {"a": "x"}, pos=id) for id in (1, 2)])
    newer = lake.announce(schema_of(NEW))
    lake.apply(1, [change("u", {"id": 1}, {"a": "y", **ROW}, pos=3, schema=newer)])
    lake.apply(2, [change("u", {"id": 2}, {"a": "z", **ROW}, pos=4, schema=newer)])


def _check(names: list[str], mode: Mode) -> None:
    own = [name for name in names if name.startswith("_cdc_")]
    assert ["id", "a", "b", "c", *own] == names
    assert set(own) <= OWN_COLUMNS[mode].keys()


@MODES
def test_readers_without_spark(each_lake_of_rows: Lake, mode: Mode) -> None:
    """deltalake, pyiceberg and DuckDB, for tables that deltalake, pyiceberg and Spark extend."""
    lake = each_lake_of_rows
    _grown(lake, mode)
    stored = lake.stored()
    _check(stored.column_names, mode)
    with duckdb.connect() as connection:
        connection.register("orders", stored)
        read = connection.execute("SELECT * FROM orders ORDER BY id, a")
        _check([column[0] for column in read.description or ()], mode)
        assert [(1, "y"), (2, "z")] == [row[:2] for row in read.fetchall() if row[2] is not None]


def test_an_append_only_table(lake: Lake) -> None:
    """Such a table rejects the write that puts new columns in front of the sink's own."""
    lake.use(TableRules(modes={"*": Mode.CHANGELOG}))
    lake.announce(schema_of({"id": "int64"}))
    lake.apply(0, [change("c", {"id": 1}, {}, pos=1)])
    table = DeltaTable(lake.path())
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    newer = lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(1, [change("c", {"id": 2}, {"a": "x"}, pos=2, schema=newer)])
    assert [] == lake.parked()
    assert [(1, None), (2, "x")] == [(row["id"], row["a"]) for row in lake.rows()]


@MODES
@pytest.mark.parametrize(
    ("format", "engine"), [(Format.DELTA, Engine.FUSED), (Format.DELTA, Engine.SPARK), (Format.ICEBERG, Engine.SPARK)]
)
def test_spark(merging_lake: MergingLake, format: Format, engine: Engine, mode: Mode) -> None:
    """Spark, for tables that either engine extends."""
    lake = merging_lake
    lake.formats = {"*": format}
    lake.use(TableRules(formats=lake.formats, engines=EngineRules({"*": engine})))
    _grown(lake, mode)
    _check(read_by_spark(lake.spark, lake).columns, mode)


@pytest.mark.parametrize("engine", [Engine.FUSED, Engine.SPARK])
def test_own_columns_in_the_middle(merging_lake: MergingLake, engine: Engine) -> None:
    """Earlier releases added columns at the end. With the next added column, the sink's own columns become the last
    ones.
    """
    lake = merging_lake
    lake.use(TableRules(engines=EngineRules({"*": engine})))
    lake.announce(schema_of(OLD))
    lake.apply(0, [change("c", {"id": id}, {"a": "x"}, pos=id) for id in (1, 2)])
    DeltaTable(lake.path()).alter.add_columns([Field("b", PrimitiveType("timestamp_ntz"))])
    columns = {COLUMNS_PROPERTY: json.dumps(["id", "a", "b"])}
    DeltaTable(lake.path()).alter.set_table_properties(columns, raise_if_not_exists=False)
    newer = lake.announce(schema_of(NEW))
    lake.apply(1, [change("u", {"id": 1}, {"a": "y", **ROW}, pos=3, schema=newer)])
    _check(lake.stored().column_names, Mode.MIRROR)
    assert [("x", None), ("y", Decimal("1.50"))] == sorted((row["a"], row["c"]) for row in lake.rows())


def test_a_column_of_others(merging_lake: MergingLake) -> None:
    """It can have any name, and comes before the sink's own columns as well."""
    lake = merging_lake
    lake.formats = {"*": Format.ICEBERG}
    lake.use(TableRules())
    lake.announce(schema_of(OLD))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1)])
    catalog = lake.tables.iceberg_catalog
    table = quoted(catalog, "shop_sales.orders")
    sibling(lake.spark, catalog.spark).sql(f"ALTER TABLE {table} ADD COLUMNS (`the``irs` string)")
    newer = lake.announce(schema_of(NEW))
    lake.apply(1, [change("u", {"id": 1}, {"a": "y", **ROW}, pos=3, schema=newer)])
    names = lake.stored().column_names
    assert ["id", "a", "the`irs", "b", "c", "_cdc_scope"] == names[:6]
