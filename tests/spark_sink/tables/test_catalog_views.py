"""The views that the sink keeps, in a real Hive metastore and a real REST catalog, as Spark reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dev.iceberg.hive_metastore import HiveMetastore
from dev.iceberg.rest_catalog import RestCatalogServer
from tests.spark_sink.sink_process import PATIENCE_SECONDS

ROOT = Path(__file__).parents[3]

_SCRIPT = """
import json, sys
from pathlib import Path
import yaml
from click.testing import CliRunner
from dev.jars import spark_jars
from dev.servers.small_spark import SMALL_SPARK
from spark_sink.commands import cli
from spark_sink.config.iceberg_catalog import CatalogType, IcebergCatalog
from spark_sink.config.settings import Spark
from spark_sink.config.table_rules import TableRules
from spark_sink.metrics import Metrics
from spark_sink.operations.registration import Registration
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.spark import session as spark_session
from spark_sink.spark.session import sibling
from spark_sink.tables.catalog_views import CatalogViews
from spark_sink.tables.delta.registration import SparkCatalog
from spark_sink.tables.spark_views import ViewingCatalog
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import MergingLake

warehouse, metastore = Path(sys.argv[1]), sys.argv[2]
conf = {
    **SMALL_SPARK,
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.uris": metastore,
}
settings = Spark(master="local[1]", memory="1g", jars=tuple(map(str, spark_jars())), conf=conf)
spark = spark_session.build("views", settings, str(warehouse))
lake = MergingLake(spark, warehouse)
iceberg = IcebergCatalog(type=CatalogType.HIVE, uri=metastore)
lake.catalog = iceberg.access(str(warehouse), {}, {})
formats = {"*.berg": Format.ICEBERG}
lake.use(TableRules(formats=formats, modes={"*.log": Mode.CHANGELOG, "*.versions": Mode.HISTORY}))
clock, metrics, views = [0.0], Metrics(0), CatalogViews("spark_catalog", "_live")
tables = SparkCatalog(spark, str(warehouse), "spark_catalog", lambda name: not name.endswith(".berg"))
catalog = ViewingCatalog(spark, lake.tables, tables, dict.fromkeys(Format, views))
kept = Registration(catalog, lake.control.batches, metrics, lake.ddl.changed, lambda: clock[0])
reader = sibling(spark, lake.tables.iceberg_catalog.spark)
said = {}


def seen(table):
    read = reader.table(f"shop_sales_live.{table}")
    columns = [f"{name} {type}" for name, type in read.dtypes]
    return columns, sorted([str(cell) for cell in row] for row in read.collect())


NAMES = ("orders", "berg", "versions", "log")
OLD = {"id": "int64", "Size (cm)": "int32", "n": "int32", "N": "string"}
NEW = {**OLD, "n": "decimal(12,2)", "added": "string"}
for name in NAMES:
    lake.announce(schema_of(OLD, table=name))
row = {"Size (cm)": 5, "n": 7, "N": "other"}
reports = lake.apply(0, [change("c", {"id": id}, row, pos=id, table=name) for name in NAMES for id in (1, 2, 3)])
kept.applied(reports)
said["before"] = {name: seen(name) for name in NAMES[:3]}

batch = []
for name in NAMES:
    newer = schema_of(NEW, table=name)
    lake.announce(newer)
    batch += [
        change("d", {"id": 1}, pos=4, table=name),
        change("u", {"id": 2}, {**row, "n": "1.25", "added": "x"}, pos=5, table=name, schema=newer),
    ]
spark.sql("DROP VIEW shop_sales_live.orders")
spark.sql("CREATE TABLE shop_sales_live.orders USING delta AS SELECT 1 AS of_somebody_else")
reports = lake.apply(1, batch)
said["outcomes"] = sorted({type(report.outcome).__name__ for report in reports})
kept.applied(reports)
said["refused"] = metrics.registry.get_sample_value("cdc_sink_registration_failures_total")
said["not replaced"] = seen("orders")
spark.sql("DROP TABLE shop_sales_live.orders")
clock[0] += 3600
kept.applied([])
said["after"] = {name: seen(name) for name in NAMES[:3]}
said["listed"] = sorted(row.viewName for row in spark.sql("SHOW VIEWS IN shop_sales_live").collect())
said["plain"] = sorted(row.id for row in spark.sql("SELECT * FROM shop_sales.orders").collect())

config = warehouse / "sink.yaml"
chosen = {
    "warehouse": str(warehouse),
    "formats": {"*.berg": "iceberg"},
    "iceberg_catalog": {"type": "hive", "uri": metastore},
}
config.write_text(yaml.safe_dump({
    "pipeline": "test",
    "kafka": {"bootstrap_servers": "nobody:1"},
    "input": {"topic": "canonical"},
    "tables": chosen,
    "catalog": {"name": "spark_catalog", "views": "_live"},
    "checkpoint": "/nowhere",
}))
said["printed"] = {}
for name in NAMES[:2]:
    ran = CliRunner().invoke(cli, ["view", f"shop_sales.{name}", "-c", str(config)])
    shape = lake.tables.shape(f"shop_sales.{name}")
    ours = views.statement(f"shop_sales.{name}", shape, lake.tables)
    said["printed"][name] = ran.output == ours + chr(10), [line for line in ours.splitlines() if "FROM" in line]
print(json.dumps(said))
"""

_INSIDE = """
import json, sys
from pathlib import Path
from dev.iceberg.rest_catalog import TOKEN
from dev.jars import spark_jars
from dev.servers.small_spark import SMALL_SPARK
from spark_sink.config.iceberg_catalog import CatalogType, IcebergCatalog
from spark_sink.config.settings import Spark
from spark_sink.config.table_rules import TableRules
from spark_sink.metrics import Metrics
from spark_sink.operations.registration import Registration
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.spark import session as spark_session
from spark_sink.tables.catalog_views import CatalogViews
from spark_sink.tables.spark_views import readers_catalog
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import MergingLake

warehouse, url = Path(sys.argv[1]), sys.argv[2]
token = {"token": TOKEN}
catalog = IcebergCatalog(type=CatalogType.REST, name="ours", uri=url, properties=token, views="_live")
# The reader knows the catalog by another name, and has the Iceberg extensions, which read views.
reader = IcebergCatalog(type=CatalogType.REST, name="theirs", uri=url, properties=token)
extensions = "io.delta.sql.DeltaSparkSessionExtension,org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
conf = {**SMALL_SPARK, "spark.sql.extensions": extensions, **reader.access(str(warehouse), {}, {}).spark}
settings = Spark(master="local[1]", memory="1g", jars=tuple(map(str, spark_jars())), conf=conf)
spark = spark_session.build("views", settings, str(warehouse), iceberg=True)
lake = MergingLake(spark, warehouse)
lake.catalog = catalog.access(str(warehouse), {}, {})
rules = TableRules(formats={"*": Format.ICEBERG}, modes={"*.log": Mode.CHANGELOG})
rename = {"shop/sales//nested": "a.b.t", "shop/sales//flat": "a_b.t", "shop/sales//taken": "shop_sales_live.orders"}
lake.use(rules, rename)
metrics, views = Metrics(0), {Format.ICEBERG: CatalogViews("ours", "_live")}
kept = Registration(
    readers_catalog(spark, lake.tables, None, views), lake.control.batches, metrics, lake.ddl.changed
)
said = []


def see():
    found = spark.table("theirs.shop_sales_live.orders")
    columns = [f"{name} {type}" for name, type in found.dtypes]
    said.append([columns, sorted([str(cell) for cell in row] for row in found.collect())])


OLD = {"id": "int64", "Size (cm)": "int32", "n": "int32"}
NEW = {**OLD, "n": "decimal(12,2)"}
for name in ("orders", "log"):
    lake.announce(schema_of(OLD, table=name))
row = {"Size (cm)": 5, "n": 7}
kept.applied(
    lake.apply(0, [change("c", {"id": id}, row, pos=id, table=name) for name in ("orders", "log") for id in (1, 2)])
)
see()
newer = schema_of(NEW, table="orders")
lake.announce(newer)
batch = [
    change("d", {"id": 1}, pos=4, table="orders"),
    change("u", {"id": 2}, {**row, "n": "1.25"}, pos=5, table="orders", schema=newer),
]
kept.applied(lake.apply(1, batch))
see()
said.append(sorted(row.viewName for row in spark.sql("SHOW VIEWS IN theirs.shop_sales_live").collect()))

for name in ("nested", "flat"):
    lake.announce(schema_of(OLD, table=name))
same = ((8, "nested"), (9, "flat"))
kept.applied(lake.apply(2, [change("c", {"id": id}, row, pos=id, table=name) for id, name in same]))
refused = metrics.registry.get_sample_value("cdc_sink_registration_failures_total")
said.append([refused, [found.id for found in spark.table("theirs.a_b_live.t").collect()]])

lake.announce(schema_of(OLD, table="taken"))
(report,) = lake.apply(3, [change("c", {"id": 10}, row, pos=10, table="taken")])
said.append(report.outcome.refusal)
print(json.dumps(said))
"""


@pytest.mark.integration
@pytest.mark.faults  # slow
def test_views_in_a_metastore(tmp_path: Path) -> None:
    """Delta and Iceberg tables have a view with the names at the source, live rows only, and one number per row for a
    column with two versions. A changelog has none. The view is replaced when columns are added. If the catalog rejects
    it, the batch is not affected, and the view is replaced later. `spark-sink view` prints the same statement.
    """
    with HiveMetastore() as metastore:
        (tmp_path / "warehouse").mkdir()
        said = _run(_SCRIPT, tmp_path, metastore.url)
    names = ["orders", "berg", "versions"]
    columns = ["id bigint", "Size (cm) int", "n int", "N__v2 string"]
    rows = [[str(id), "5", "7", "other"] for id in (1, 2, 3)]
    assert {name: [columns, rows] for name in names} == said["before"]
    assert ["Done"] == said["outcomes"]
    assert (1.0, [["of_somebody_else int"], [["1"]]]) == (said["refused"], said["not replaced"])
    columns = ["id bigint", "Size (cm) int", "n decimal(12,2)", "N__v2 string", "added string"]
    rows = [["2", "5", "1.25", "other", "x"], ["3", "5", "7.00", "other", "None"]]
    assert {name: [columns, rows] for name in names} == said["after"]
    assert sorted(names) == said["listed"]
    assert [2, 3] == said["plain"]
    assert {
        "orders": [True, ["FROM `spark_catalog`.`shop_sales`.`orders`;"]],
        "berg": [True, ["FROM `cdc_iceberg`.`shop_sales`.`berg`;"]],
    } == said["printed"]


@pytest.mark.integration
@pytest.mark.faults  # slow
def test_views_in_an_iceberg_catalog(tmp_path: Path) -> None:
    """A REST catalog has the views of its tables, for a reader who knows the catalog by another name. They are replaced
    when columns change. A changelog has none. If two tables have a view with the same name, the second one is rejected.
    A table with the name of a view is parked.
    """
    (tmp_path / "warehouse").mkdir()
    with RestCatalogServer(warehouse=str(tmp_path / "warehouse")) as catalog:
        before, after, listed, same_name, taken = _run(_INSIDE, tmp_path, catalog.url)
    assert [["id bigint", "Size (cm) int", "n int"], [["1", "5", "7"], ["2", "5", "7"]]] == before
    assert [["id bigint", "Size (cm) int", "n decimal(12,2)"], [["2", "5", "1.25"]]] == after
    assert ["orders"] == listed
    assert [1.0, [8]] == same_name
    assert "it has a view with this name" in taken


def _run(script: str, folder: Path, url: str) -> Any:
    """Run a script with a warehouse and a catalog, and return its last line."""
    ended = subprocess.run(
        [
            *(sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{script}"),
            *(str(folder / "warehouse"), url),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        cwd=folder,
    )
    assert 0 == ended.returncode, ended.stderr[-3000:]
    return json.loads(ended.stdout.splitlines()[-1])
