"""Register tables in a real Hive metastore in a separate process, and find them there by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spark_sink.control_tables.requests import State
from spark_sink.operations.maintenance import ALL_TABLES
from spark_sink.tables.registration import CatalogName
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake
from tests.spark_sink.sink_process import PATIENCE_SECONDS

ROOT = Path(__file__).parents[3]

_SCRIPT = """
import json, sys
from dev.jars import spark_jars
from dev.servers.small_spark import SMALL_SPARK
from spark_sink.spark import session as spark_session
from spark_sink.config.settings import Spark
from spark_sink.control_tables.batches import BatchTable
from spark_sink.errors import ConfigError
from spark_sink.metrics import Metrics
from spark_sink.operations.registration import Registration
from spark_sink.tables.delta.registration import SparkCatalog

warehouse, elsewhere, metastore = sys.argv[1:]
conf = {
    **SMALL_SPARK,
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={metastore};create=true",
}
settings = Spark(master="local[1]", memory="1g", jars=tuple(map(str, spark_jars())), conf=conf)
spark = spark_session.build("registration", settings, warehouse)
clock = [0.0]
catalog, metrics = SparkCatalog(spark, warehouse, "spark_catalog", lambda name: name != "shop_sales.berg"), Metrics(0)
registration = Registration(catalog, BatchTable(warehouse, "test", "", "canonical"), metrics, clock=lambda: clock[0])
said = {}

def refused():
    return metrics.registry.get_sample_value("cdc_sink_registration_failures_total")

registration.applied([])
said["rows"] = [row.id for row in spark.sql("SELECT id FROM shop_sales.orders ORDER BY id").collect()]
said["again"] = registration.by_hand(["shop_sales.orders"])
said["other format"] = registration.by_hand(["shop_sales.berg"]), spark.catalog.tableExists("shop_sales.berg")
# Another warehouse has a table of that name: it is not taken for ours.
other = SparkCatalog(spark, elsewhere, "spark_catalog", lambda _: True)
late = Registration(other, BatchTable(elsewhere, "test", "", "canonical"), metrics, clock=lambda: clock[0])
late.applied([])
said["refused"] = refused()
spark.sql("DROP TABLE shop_sales.orders")
late.applied([])
said["too early"] = spark.catalog.tableExists("shop_sales.orders")
clock[0] += 3600
late.applied([])
said["later"] = [row.id for row in spark.sql("SELECT id FROM shop_sales.orders").collect()]
said["why"] = registration.by_hand(["shop_sales.orders"])[1]
print(json.dumps(said))
"""


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("shop_sales.orders", ("shop_sales", "orders")),
        ("orders", ("default", "orders")),
        ("lake.shop.orders", ("lake_shop", "orders")),
    ],
)
def test_names(name: str, known: tuple[str, str]) -> None:
    """A catalog has schemas and tables but no nested folders."""
    assert known == CatalogName.of(name)


def test_no_catalog(lake: Lake) -> None:
    """An unconfigured catalog is reported."""
    asked = lake.command("register", ALL_TABLES)
    assert (State.FAILED, True) == (asked.state, "has no catalog" in (asked.error or ""))


@pytest.mark.integration
@pytest.mark.faults
def test_a_metastore(tmp_path: Path) -> None:
    """Existing tables are registered once, with the first batch, but not those of another format. A name that belongs
    to another table is rejected and reported. Later it is retried, and the table gets it.
    """
    lakes = {name: Lake(tmp_path / name) for name in ("warehouse", "elsewhere")}
    orders = schema_of({"id": "int64"})
    for number, lake in enumerate(lakes.values()):
        lake.announce(orders)
        lake.apply(0, [change("c", {"id": number}, {}, pos=1, schema=orders)])
    folders = [str(lake.warehouse) for lake in lakes.values()]
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{_SCRIPT}", *folders, "metastore"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        cwd=tmp_path,
    )
    assert 0 == ended.returncode, ended.stderr[-3000:]
    said = json.loads(ended.stdout.splitlines()[-1])
    assert [0] == said["rows"]
    assert [[], {}] == said["again"]
    assert [[[], {}], False] == said["other format"]
    assert 1.0 == said["refused"]
    assert said["too early"] is False
    assert [1] == said["later"]
    assert said["why"]["shop_sales.orders"].startswith("shop_sales.orders already exists with another location, file:")
