"""Iceberg tables in a catalog in a real PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from dev.iceberg.postgres import DATABASE, USER, Postgres
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import FatalError
from spark_sink.schema.table_spec import Format
from spark_sink.tables.formats import FormatTables, ask_catalog
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import MergingLake
from tests.spark_sink.tables.iceberg.conftest import jdbc_access

NAME = "shop_sales.orders"
ICEBERG = TableRules(formats={"*": Format.ICEBERG})


def test_a_table(merging_lake: MergingLake, database: Postgres) -> None:
    """An unused database has no table and is not an error. Tables are in the same place as without a catalog, and
    others find them by the catalog's name. A second catalog name has its own tables.
    """
    lake = merging_lake
    lake.catalog = jdbc_access(database, str(lake.warehouse), "lake")
    lake.use(ICEBERG)
    assert not lake.tables.exists(NAME)
    ask_catalog(lake.spark, lake.tables)
    lake.use(ICEBERG)
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": id}, {"a": "x"}, pos=id) for id in (1, 2, 3)])
    batch = [change("u", {"id": 1}, {"a": "y"}, pos=4), change("d", {"id": 2}, pos=5)]
    lake.apply(1, batch)
    rows = [{"id": 1, "a": "y"}, {"id": 3, "a": "x"}]
    assert rows == lake.rows()
    present = lake.read().select("id", "a").orderBy("id")
    assert rows == [row.asDict() for row in present.collect()]
    assert Path(lake.path(), "metadata").is_dir()
    (report,) = lake.apply(1, batch)
    assert (1, 0) == (report.counters.skipped, report.counters.commits)
    assert lake.tables.iceberg_catalog.spelled("SHOP_sales.Orders") == NAME
    uri = f"postgresql+psycopg2://{USER}:cdc%20password%2Fof%20the%20tests@127.0.0.1:{database.port}/{DATABASE}"
    others = load_catalog("lake", type="sql", uri=uri, init_catalog_tables="false")
    assert 2 == others.load_table(NAME).scan().to_arrow().num_rows
    assert [] == others.list_tables("_cdc")
    beside = FormatTables(str(lake.warehouse), catalog=jdbc_access(database, str(lake.warehouse), "beside"))
    assert not beside.iceberg_catalog.exists(NAME)


def test_a_database_that_refuses(tmp_path: Path, database: Postgres) -> None:
    """One line reports the database and the reason, without the password."""
    access = jdbc_access(database, str(tmp_path), "lake", "wrong secret")
    tables = FormatTables(str(tmp_path), formats={"*": Format.ICEBERG}, catalog=access)
    with pytest.raises(FatalError) as refused:
        tables.open(NAME)
    said = str(refused.value)
    assert f"a request to the Iceberg catalog ({database.jdbc}) failed" in said
    assert "password authentication failed" in said
    assert "secret" not in said
    assert "wrong" not in repr(tables)
