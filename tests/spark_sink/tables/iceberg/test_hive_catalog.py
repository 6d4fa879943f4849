"""Iceberg tables in a real Hive metastore, built from the jars that PySpark ships."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dev.iceberg.hive_metastore import HiveMetastore
from spark_sink.commands import cli
from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType, IcebergCatalog
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import FatalError, Refused
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.tables.formats import FormatTables, ask_catalog
from spark_sink.tables.iceberg import hive_catalog
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, MergingLake

ORDERS, LOG = "shop_sales.orders", "shop_sales.log"
RULES = TableRules(formats={"*": Format.ICEBERG}, modes={"*.log": Mode.CHANGELOG})

# Nobody answers there, so the next one is tried.
NOBODY = "thrift://127.0.0.1:1"


@pytest.fixture(scope="module")
def metastore() -> Iterator[HiveMetastore]:
    with HiveMetastore() as running:
        yield running


def access(uri: str, warehouse: Path) -> CatalogAccess:
    return IcebergCatalog(type=CatalogType.HIVE, uri=uri).access(str(warehouse), {}, {})


@pytest.mark.faults  # slow
def test_from_the_probe_to_maintenance(merging_lake: MergingLake, metastore: HiveMetastore, tmp_path: Path) -> None:
    """The metastore keeps what the sink relies on. A mirror and a changelog are created, changed, widened and
    compacted. A repeated batch is not written again, and other threads and the commands find the tables.
    """
    lake = merging_lake
    lake.catalog = access(metastore.url, lake.warehouse)
    lake.use(RULES)
    ask_catalog(lake.spark, lake.tables)
    assert CatalogTraits(3, True, True) == lake.tables.catalog_traits
    lake.use(RULES)
    assert not lake.tables.exists(ORDERS)
    for table in ("orders", "log"):
        lake.announce(schema_of({"id": "int32", "a": "string", "d": "decimal(9,2)"}, table=table))
    lake.apply(0, [change("c", {"id": id}, {"a": "x"}, pos=id, table="orders") for id in (1, 2, 3)])
    wider = schema_of({"id": "int64", "b": "int32", "a": "string", "d": "decimal(12,2)"}, table="orders")
    lake.announce(wider)
    batch = [
        change("u", {"id": 1}, {"b": 7}, pos=4, full=False, schema=wider),
        change("d", {"id": 2}, pos=5, schema=wider),
        *(change("u", {"id": 1}, {"a": a}, pos=6 + number, table="log") for number, a in enumerate("xyz")),
    ]
    lake.apply(1, batch)
    assert [0, 0] == [report.counters.commits for report in lake.apply(1, batch)]
    rows = [{"id": 1, "a": "x", "b": 7, "d": None}, {"id": 3, "a": "x", "b": None, "d": None}]
    assert rows == lake.rows()
    present = lake.read().select("id", "a", "b", "d").orderBy("id")
    assert rows == [row.asDict() for row in present.collect()]
    assert ["x", "y", "z"] == sorted(lake.stored(LOG).column("a").to_pylist())
    assert (lake.warehouse / "shop_sales.db" / "orders" / "metadata").is_dir()
    for number in (2, 3):
        lake.apply(number, [change("u", {"id": 1}, {"b": number}, pos=20 + number, full=False, schema=wider)])
    held = lake.version()
    assert f"compact {ORDERS}, vacuum {ORDERS}" == lake.command("maintain").result
    assert [3, None] == [row["b"] for row in lake.rows()]
    assert 3 in lake.stored(version=held).column("b").to_pylist()
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lake.tables.exists, [ORDERS, "shop_sales.none", LOG, "none.orders"] * 10)
    assert [True, False, True, False] * 10 == list(found)
    spelled = map(lake.tables.iceberg_catalog.spelled, ("Shop_Sales.ORDERS", "shop_sales.none", "none.orders"))
    assert ["Shop_Sales.ORDERS", None, None] == list(spelled)

    config = _config(lake, f"{NOBODY},{metastore.url}", tmp_path)
    assert held == json.loads(_told(config, "cut"))["tables"][ORDERS]
    stands = {table["table"]: table["version"] for table in json.loads(_told(config, "status", "--json"))["tables"]}
    assert {ORDERS: held, LOG: lake.version(LOG)} == stands
    assert "`lake`.`shop_sales`.`orders`" in _told(config, "view", ORDERS, "--from", "lake.shop_sales.orders")


def _config(lake: Lake, uri: str, folder: Path) -> Path:
    settings = {
        "pipeline": "test",
        "kafka": {"bootstrap_servers": "nobody:1"},
        "input": {"topic": "canonical"},
        "tables": {
            "warehouse": str(lake.warehouse),
            "formats": {"*": "iceberg"},
            "modes": {"*.log": "changelog"},
            "iceberg_catalog": {"type": "hive", "uri": uri},
        },
        "checkpoint": "/nowhere",
    }
    written = folder / "sink.yaml"
    written.write_text(yaml.safe_dump(settings))
    return written


def _told(config: Path, command: str, *asked: str) -> str:
    ran = CliRunner().invoke(cli, [command, "-c", str(config), *asked])
    assert 0 == ran.exit_code, ran.output
    return ran.stdout


def test_names(tmp_path: Path) -> None:
    """A table name that Hive does not support is rejected with advice before the table is created."""
    catalog = FormatTables(str(tmp_path), catalog=access(NOBODY, tmp_path)).iceberg_catalog
    assert [("cdc_iceberg", "shop_sales")] == catalog.namespaces("shop_sales.Orders_1")
    assert [("cdc_iceberg", "default")] == catalog.namespaces("orders")
    for name in ("a.b.orders", "shop_sales.my-orders", "shop_sales.~4e2d~", "shop_sales.größe"):
        with pytest.raises(Refused, match=f"does not accept the table name {name}: .* tables.rename"):
            catalog.namespaces(name)


def test_a_metastore_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The metastore is retried. Then one line reports it, and no other line is logged."""
    monkeypatch.setattr(hive_catalog, "_WAITS", (0.0, 0.01))
    tables = FormatTables(str(tmp_path), formats={"*": Format.ICEBERG}, catalog=access(NOBODY, tmp_path))
    with pytest.raises(FatalError) as away:
        tables.open(ORDERS)
    assert f"a request to the Iceberg catalog ({NOBODY}) failed: TTransportException" in str(away.value)
    assert "\n" not in str(away.value)
    assert logging.getLogger("thrift.transport.TSocket").handlers
    assert ("", "") == capfd.readouterr()
