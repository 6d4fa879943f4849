"""The view for readers: engines run the statement that `spark-sink view` prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from cdc_core.table_id import TableId
from spark_sink.commands import main
from spark_sink.errors import ConfigError
from spark_sink.schema.business_view import ReaderEngine, create_view
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_spec import Mode
from spark_sink.tables.delta.ddl import table_properties
from spark_sink.tables.meta_columns import OWN_COLUMNS
from tests.spark_sink.local import local_ddl

NAME = "shop_sales.orders"
VIEW = "business"


def _shape(mode: Mode) -> TableShape:
    columns = [
        TableColumn("id", "bigint"),
        TableColumn('n"1"', "tinyint"),
        TableColumn("a`b", "int"),
        TableColumn("n__v2", "bigint", 'n"1"'),
        TableColumn("a__v2", "string", "a`b"),
    ]
    return TableShape(TableId("shop", "sales", None, "orders"), tuple(columns), ("id",), mode)


def _write(folder: Path, mode: Mode) -> Path:
    """Write a table of three rows, one of which is deleted."""
    own, present, gone = {
        Mode.MIRROR: (
            "_cdc_deleted_at",
            pa.scalar(None, pa.timestamp("us", "UTC")),
            pa.scalar(0, pa.timestamp("us", "UTC")),
        ),
        Mode.HISTORY: ("_cdc_current", pa.scalar(True), pa.scalar(False)),
    }[mode]
    local_ddl(folder).create(NAME, _shape(mode))
    table = DeltaTable(folder / "shop_sales" / "orders")
    rows = {
        "id": pa.array([1, 2, 3]),
        'n"1"': pa.array([None, 2, 3], pa.int8()),
        "a`b": pa.array([None, 2, None], pa.int32()),
        "n__v2": pa.array([2**62, None, None], pa.int64()),
        "a__v2": pa.array(["x", None, None]),
        own: pa.array([present.as_py(), gone.as_py(), present.as_py()], present.type),
    }
    write_deltalake(table, pa.table(rows), mode="append", schema_mode="merge")
    assert own in OWN_COLUMNS[mode]
    assert table_properties(_shape(mode)).keys() <= table.metadata().configuration.keys()
    return folder / "shop_sales" / "orders"


def _check(columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Check that readers see each source column once, and only existing rows."""
    assert ["id", 'n"1"', "a`b"] == columns
    assert [(1, 2**62, "x"), (3, 3, None)] == sorted(rows)


_MODES = pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])


@_MODES
def test_view_of_spark(spark: SparkSession, tmp_path: Path, mode: Mode) -> None:
    """Spark runs the statement."""
    path = _write(tmp_path, mode)
    spark.sql(create_view(ReaderEngine.SPARK, VIEW, _shape(mode), str(path)).removesuffix(";"))
    try:
        seen = spark.table(VIEW)
        _check(seen.columns, [tuple(row) for row in seen.collect()])
    finally:
        spark.sql(f"DROP VIEW {VIEW}")


@_MODES
def test_view_of_duckdb(tmp_path: Path, mode: Mode) -> None:
    """DuckDB runs the statement."""
    path = _write(tmp_path, mode)
    with duckdb.connect() as connection:
        # DuckDB's reader of Delta tables is an extension that must be downloaded. Arrow returns the same rows.
        connection.register("stored", DeltaTable(path).to_pyarrow_table())
        connection.execute(create_view(ReaderEngine.DUCKDB, VIEW, _shape(mode), str(path), "stored"))
        found = connection.execute(f"SELECT * FROM {VIEW}")
        _check([column[0] for column in found.description or ()], found.fetchall())


_LIVE = (TableColumn("_cdc_deleted_at", "timestamp"),)

VALUES = {
    "a name that Delta Lake does not accept": ([TableColumn("a~20~b", "int", "a b")], ['"a~20~b" AS "a b"']),
    "names that differ only in case": (
        [TableColumn("Id", "int"), TableColumn("id__v2", "string", "id"), TableColumn("id__v2__v2", "int", "id__v2")],
        ['"Id"', '"id__v2"', '"id__v2__v2"'],
    ),
    "integers": (
        [TableColumn("n", "int"), TableColumn("n__v2", "bigint", "n")],
        ['coalesce(CAST("n" AS BIGINT), CAST("n__v2" AS BIGINT)) AS "n"'],
    ),
    "an integer and a decimal": (
        [TableColumn("n", "bigint"), TableColumn("n__v2", "decimal(9,4)", "n")],
        ['coalesce(CAST("n" AS DECIMAL(23,4)), CAST("n__v2" AS DECIMAL(23,4))) AS "n"'],
    ),
    "decimals": (
        [TableColumn("n", "decimal(9,4)"), TableColumn("n__v2", "decimal(12,2)", "n")],
        ['coalesce(CAST("n" AS DECIMAL(14,4)), CAST("n__v2" AS DECIMAL(14,4))) AS "n"'],
    ),
    "decimals with too many digits together": (
        [TableColumn("n", "decimal(38,0)"), TableColumn("n__v2", "decimal(38,10)", "n")],
        ['coalesce(CAST("n" AS VARCHAR), CAST("n__v2" AS VARCHAR)) AS "n"'],
    ),
    "an integer and a double": (
        [TableColumn("n", "int"), TableColumn("n__v2", "double", "n")],
        ['coalesce(CAST("n" AS DOUBLE), CAST("n__v2" AS DOUBLE)) AS "n"'],
    ),
    "a number that a double does not represent": (
        [TableColumn("n", "bigint"), TableColumn("n__v2", "double", "n")],
        ['coalesce(CAST("n" AS VARCHAR), CAST("n__v2" AS VARCHAR)) AS "n"'],
    ),
}


@pytest.mark.parametrize("case", VALUES)
def test_columns(case: str) -> None:
    """A column has its name at the source, and its versions are one exact number where possible."""
    columns, expected = VALUES[case]
    shape = TableShape(TableId("shop", "sales", None, "orders"), tuple(columns), (columns[0].name,), lacks=_LIVE)
    lines = create_view(ReaderEngine.DUCKDB, "v", shape, "/lake").splitlines()
    assert ['CREATE OR REPLACE VIEW "v" AS', "SELECT"] == lines[:2]
    assert expected == [line.strip().removesuffix(",") for line in lines[2:-1]]
    assert "FROM delta_scan('/lake');" == lines[-1]


def test_engines_name_tables_their_way() -> None:
    """The statement refers to tables by folder or by name, quoted as each engine does."""
    shape = _shape(Mode.MIRROR)

    def lines(engine: ReaderEngine, table: str | None = None) -> Sequence[str]:
        return create_view(engine, "c.v", shape, "/lake/it's/`t`", table).splitlines()

    assert ["CREATE OR REPLACE VIEW `c`.`v` AS", "FROM delta.`/lake/it's/``t```"] == [
        lines(ReaderEngine.SPARK)[0],
        lines(ReaderEngine.SPARK)[-2],
    ]
    assert "FROM delta_scan('/lake/it''s/`t`')" == lines(ReaderEngine.DUCKDB)[-2]
    assert 'FROM "delta"."shop"."orders"' == lines(ReaderEngine.TRINO, "delta.shop.orders")[-2]
    with pytest.raises(ConfigError, match=r"trino reads this table by name"):
        lines(ReaderEngine.TRINO)
    with pytest.raises(
        ConfigError,
        match=r"^a table with mode changelog contains events instead of rows; views are only possible for mirror",
    ):
        create_view(ReaderEngine.SPARK, "v", _shape(Mode.CHANGELOG), "/lake")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([NAME, "--for", "duckdb", "--name", "v"], 0, 'CREATE OR REPLACE VIEW "v" AS\n'),
        ([NAME], 0, "CREATE OR REPLACE VIEW `shop_sales_orders` AS\n"),
        ([NAME, "--for", "trino"], 2, "spark-sink: trino reads this table by name; pa"),
        (["shop_sales.orderz"], 2, "spark-sink: table 'shop_sales.orderz' does not ex"),
    ],
    ids=["for duckdb", "for spark", "without its name", "no such table"],
)
def test_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    """The command line prints the statement for a table of the warehouse."""
    _write(tmp_path, Mode.MIRROR)
    settings = {"pipeline": "p", "kafka": {"bootstrap_servers": "b:1"}, "tables": {"warehouse": str(tmp_path)}}
    file = tmp_path / "sink.yaml"
    file.write_text(yaml.safe_dump(settings | {"checkpoint": "c"}))
    monkeypatch.setattr(sys, "argv", ["spark-sink", "view", *arguments, "-c", str(file)])
    with pytest.raises(SystemExit) as ended:
        main()
    found = capsys.readouterr()
    assert (code, said) == (int(ended.value.code or 0), (found.out + found.err)[: len(said)])
