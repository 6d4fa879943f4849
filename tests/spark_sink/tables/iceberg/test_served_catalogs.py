"""Iceberg tables in catalog servers: the sink finds, creates and maintains its tables there by name."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from dev.environments import NotInstalledError
from dev.iceberg import duckdb_reader
from dev.iceberg.rest_catalog import TOKEN, RestCatalogServer
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import FatalError
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.spark.session import sibling
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.protocols import MirrorTable
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.conftest import rest_access
from tests.spark_sink.lake import MergingLake
from tests.spark_sink.records import refusal

NAME = "shop_sales.orders"
ICEBERG = TableRules(formats={"*": Format.ICEBERG})


@pytest.fixture
def lake(merging_lake: MergingLake, rest_server: RestCatalogServer) -> Iterator[MergingLake]:
    merging_lake.catalog = rest_access(rest_server.url)
    merging_lake.use(ICEBERG)
    yield merging_lake
    others = load_catalog("any", type="rest", uri=rest_server.url, token=TOKEN)
    for namespace in others.list_namespaces():
        for table in others.list_tables(namespace):
            others.drop_table(table)


def test_a_table_from_its_beginning_to_its_maintenance(lake: MergingLake, rest_server: RestCatalogServer) -> None:
    """The table is created, changed, widened and compacted in the catalog. Spark and pyiceberg read the same rows by
    name, and the sink's warehouse contains nothing of it. A repeated batch is not written again.
    """
    old = lake.announce(schema_of({"id": "int32", "a": "string"}))
    lake.apply(0, [change("c", {"id": id}, {"a": "x"}, pos=id, schema=old) for id in (1, 2, 3)])
    between = datetime.now(UTC)
    new = lake.announce(schema_of({"id": "int64", "a": "string", "b": "int32"}))
    batch = [
        change("u", {"id": 1}, {"b": 7}, pos=4, full=False, schema=new),
        change("d", {"id": 2}, pos=5, schema=new),
        change("u", {"id": 2**40}, {"a": "moved"}, key_old={"id": 3}, pos=6, full=False, schema=new),
    ]
    lake.apply(1, batch)
    rows = [{"id": 1, "a": "x", "b": 7}, {"id": 2**40, "a": "moved", "b": None}]
    assert rows == lake.rows()
    present = lake.read().select("id", "a", "b").orderBy("id")
    assert rows == [row.asDict() for row in present.collect()]
    assert not Path(lake.path()).exists()
    (report,) = lake.apply(1, batch)
    assert (1, 0) == (report.counters.skipped, report.counters.commits)
    for number in range(2, 4):
        lake.apply(number, [change("u", {"id": 1}, {"b": number}, pos=10 + number, full=False, schema=new)])
    held = lake.version()
    assert f"compact {NAME}, vacuum {NAME}" == lake.command("maintain").result
    (report,) = lake.apply(3, [change("u", {"id": 1}, {"b": 3}, pos=13, full=False, schema=new)])
    assert 1 == report.counters.skipped
    assert [3, None] == [row["b"] for row in lake.rows()]
    assert 3 in lake.stored(version=held).column("b").to_pylist()
    then = lake.tables.as_of(NAME, between)
    assert isinstance(then, MirrorTable)
    assert {(1,), (2,), (3,)} == set(then.written())
    others = load_catalog("any", type="rest", uri=rest_server.url, token=TOKEN)
    found = others.load_table("shop_sales.orders").scan().to_arrow()
    assert lake.rows() == sorted(found.select(["id", "a", "b"]).to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.faults  # slow
def test_duckdb(lake: MergingLake, rest_server: RestCatalogServer) -> None:
    """DuckDB reads the same rows from the catalog, with deletion vectors applied, now and at a cut."""
    lake.announce(schema_of({"id": "int64", "a": "string", "n": "decimal(10,2)"}))
    lake.apply(0, [change("c", {"id": id}, {"a": f"a {id}", "n": f"{id}.50"}, pos=id) for id in range(1, 201)])
    cut = lake.version()
    lake.apply(1, [change("d", {"id": id}, pos=1000 + id) for id in range(1, 201, 3)])
    lake.apply(2, [change("u", {"id": id}, {"a": None}, full=False, pos=2000 + id) for id in range(2, 201, 3)])
    assert {"PUFFIN"} == {file["file_format"] for file in lake.iceberg().inspect.delete_files().to_pylist()}
    query = "SELECT id, a, n::text FROM lake.shop_sales.orders {} ORDER BY id"
    try:
        now, then = (
            duckdb_reader.answer(rest_server.url, TOKEN, query.format(at)) for at in ("", f"AT (VERSION => {cut})")
        )
    except NotInstalledError as error:
        pytest.skip(f"{error}; DuckDB on Iceberg tables is NOT SHOWN")
    rows = sorted((row["id"], row["a"], str(row["n"])) for row in lake.rows())
    assert rows == [tuple(row) for row in now]
    assert [[id, f"a {id}", f"{id}.50"] for id in range(1, 201)] == then


@pytest.mark.faults  # slow
def test_histories_and_changelogs(lake: MergingLake) -> None:
    lake.use(TableRules(formats={"*": Format.ICEBERG}, modes={"*.orders": Mode.HISTORY, "*.log": Mode.CHANGELOG}))
    for table in ("orders", "log"):
        lake.announce(schema_of({"id": "int64", "a": "string"}, table=table))
    for number, a in enumerate("xyz"):
        events = [change("u", {"id": 1}, {"a": a}, pos=number + 1, table=table) for table in ("orders", "log")]
        lake.apply(number, events)
        lake.apply(number, events)
    by_table = {table: lake.stored(f"shop_sales.{table}").column("a").to_pylist() for table in ("orders", "log")}
    assert {"orders": ["x", "y", "z"], "log": ["x", "y", "z"]} == {
        table: sorted(values) for table, values in by_table.items()
    }


def test_names(lake: MergingLake) -> None:
    """The folders of a name are namespaces, and a name without one is in `default`. Lookups ignore case."""
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    for batch, name in enumerate(("a.b.c", "plain", "Mixed.Case")):
        lake.use(ICEBERG, {"shop/sales//orders": name})
        lake.apply(batch, [change("c", {"id": batch}, {"a": "x"}, pos=batch + 1)])
        assert [batch] == [row["id"] for row in lake.rows(name)]
        assert lake.tables.exists(name)
    catalog = lake.tables.iceberg_catalog
    assert ("cdc_iceberg", "default", "plain") == catalog.path("plain")
    assert ("Mixed.Case", "plain") == (catalog.spelled("mixed.CASE"), catalog.spelled("PLAIN"))
    assert catalog.spelled("mixed.none") is None
    assert catalog.spelled("none.case") is None


def test_a_table_of_the_other_format(lake: MergingLake) -> None:
    """Each format is searched where its tables are."""
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1)])
    lake.use(TableRules())
    (report,) = lake.apply(1, [change("c", {"id": 2}, {"a": "x"}, pos=2)])
    assert "has format iceberg" in refusal(report)


def test_it_travels(lake: MergingLake) -> None:
    """Workers get the catalog's settings without a connection. Its text shows no secret."""
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1)])
    assert lake.tables.exists(NAME)
    sent: FormatTables = pickle.loads(pickle.dumps(lake.tables))
    assert TOKEN not in repr(sent)
    assert sent.exists(NAME)


def test_credentials(spark: SparkSession, tmp_path: Path, rest_server: RestCatalogServer) -> None:
    """Both clients obtain a token with them, and readers obtain a new one when theirs is rejected."""
    tokens = f"{rest_server.url}/v1/oauth/tokens"
    catalog = rest_access(rest_server.url, {"credential": f"sink:{TOKEN}", "oauth2-server-uri": tokens})
    assert sibling(spark, catalog.spark).sql(f"SHOW NAMESPACES IN {catalog.name}").collect() is not None
    tables = FormatTables(str(tmp_path), formats={"*": Format.ICEBERG}, catalog=catalog)
    assert not tables.exists(NAME)
    assert requests.delete(tokens, timeout=60).ok
    assert not tables.exists(NAME)
    wrong = rest_access(rest_server.url, {"credential": "sink:wrong-secret", "oauth2-server-uri": tokens})
    with pytest.raises(FatalError) as refused:
        FormatTables(str(tmp_path), formats={"*": Format.ICEBERG}, catalog=wrong).open(NAME)
    assert "OAuthError: invalid_client" in str(refused.value)
    assert "wrong-secret" not in str(refused.value)


def test_a_catalog_that_refuses(tmp_path: Path, rest_server: RestCatalogServer) -> None:
    """One line reports the catalog and the reason, without the token."""
    tables = FormatTables(
        str(tmp_path), formats={"*": Format.ICEBERG}, catalog=rest_access(rest_server.url, {"token": "wrong-token"})
    )
    with pytest.raises(FatalError) as refused:
        tables.open(NAME)
    said = str(refused.value)
    assert f"a request to the Iceberg catalog ({rest_server.url}) failed: UnauthorizedError" in said
    assert "wrong-token" not in said
    assert "\n" not in said
