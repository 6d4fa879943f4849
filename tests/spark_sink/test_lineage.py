"""The lineage of a sink: a job for each table, and the events of real runs."""

from __future__ import annotations

import json
import signal
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from pydantic import SecretStr, ValidationError

from cdc_core.kafka_settings import Kafka
from cdc_core.lineage import Dataset, JobDatasets, Lineage, LineageReports
from cdc_core.table_id import TableId
from dev.servers.broker import Broker
from spark_sink import lineage as lineage_module
from spark_sink.apply.existing_tables import check_tables
from spark_sink.config.iceberg_catalog import CatalogType, IcebergCatalog
from spark_sink.config.settings import Settings
from spark_sink.config.table_rules import TableRules
from spark_sink.lineage import SinkLineage, catalog_name
from spark_sink.schema.evolution import COPY, AddColumns, Create, TableColumn, TableShape
from spark_sink.schema.table_naming import shadow_of
from spark_sink.schema.table_spec import Format
from spark_sink.tables.formats import FormatDdl, FormatTables
from spark_sink.tables.iceberg.served_catalog import ServedCatalog
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake
from tests.spark_sink.local import local_ddl
from tests.spark_sink.local_iceberg import LocalCreation, LocalIcebergLake
from tests.spark_sink.sink_process import PATIENCE_SECONDS, Sink, wait
from translator.config.settings import Settings as TranslatorSettings
from translator.message import Counted
from translator.service.lineage import ServiceLineage
from translator.service.metrics import BatchAccount

TOPIC = "cdc.canonical"
NAMESPACE = "kafka://b:9092"
ORDERS = schema_of({"id": "int64", "name": "string"})
WIDER = schema_of({"id": "int64", "name": "string", "note": "string"})
CUSTOMERS = schema_of({"id": "int64"}, table="customers")
NAME = "shop_sales.orders"
TABLE = TableId("shop", "sales", None, "orders")


class Kept(LineageReports):
    """Keeps what is reported."""

    def __init__(self) -> None:
        receiver = Lineage(to="file:///nowhere")
        super().__init__(receiver, Kafka(bootstrap_servers="b:9092"), "p", lambda *_, **__: None, lambda: None)
        self.reported: list[str] = []
        self.described: dict[str, Callable[[], JobDatasets | None]] = {}

    def report(self, name: str, describe: Callable[[], JobDatasets | None], parent: str | None = None) -> None:
        assert (name == "sink") == (parent is None)
        self.reported.append(name)
        self.described[name] = describe

    def job(self, table: str = NAME) -> JobDatasets | None:
        return self.described[f"sink.{table}"]()

    def output(self, table: str = NAME) -> Dataset:
        found = self.job(table)
        assert found is not None
        (output,) = found.outputs
        return output


def _lineage(lake: Lake, **tables: Any) -> tuple[SinkLineage, Kept]:
    given = {
        "pipeline": "sink",
        "kafka": {"bootstrap_servers": "b:9092,c:9092"},
        "tables": {"warehouse": str(lake.warehouse), **tables},
        "checkpoint": "/nowhere",
    }
    kept = Kept()
    return SinkLineage(Settings.model_validate(given), lake.tables, lake.schemas.catalog, kept), kept


def _report(lake: Lake, lineage: SinkLineage, *names: str) -> None:
    lineage.begin(check_tables(names or (NAME,), lake.tables, lake.rules))


def _fill(lake: Lake, **event: Any) -> None:
    lake.announce(ORDERS)
    lake.apply(1, [change("c", {"id": 1}, {"name": "secret"}, pos=1, schema=ORDERS, **event)])


def test_a_table(lake: Lake) -> None:
    """The job reads the topic and writes the table, with its types. The sink's own columns have no source."""
    _fill(lake)
    lineage, kept = _lineage(lake)
    _report(lake, lineage)
    assert ["sink", f"sink.{NAME}"] == kept.reported
    assert JobDatasets((), ()) == kept.described["sink"]()
    job, output = kept.job(), kept.output()
    assert job is not None
    assert (Dataset(NAMESPACE, TOPIC),) == job.inputs
    assert ("file", lake.path()) == (output.namespace, output.name)
    types = {field.name: field.type for field in output.fields}
    assert {"id": "bigint", "name": "string", "_cdc_pos": "string"}.items() <= types.items()
    assert ["id", "name"] == [*output.sources]
    (source,) = output.sources["name"]
    assert (NAMESPACE, TOPIC, "sales.orders.name", None) == (
        *(source.namespace, source.dataset, source.field),
        source.mask,
    )
    assert output.other_name is None


def test_the_graph_is_connected(lake: Lake) -> None:
    """Each column comes from a column that the translator reports in the same topic."""
    _fill(lake)
    lineage, kept = _lineage(lake)
    _report(lake, lineage)
    settings = {
        "group": "g",
        "kafka": Kafka(bootstrap_servers="b:9092,c:9092"),
        "sources": [{"name": "shop", "dialect": "canal", "topics": ("raw",), "options": {"profile": "oss"}}],
        "lineage": Lineage(to="file:///nowhere"),
    }
    reports: dict[str, Callable[[], JobDatasets]] = {}
    upstream = Kept()
    upstream.report = lambda name, describe, parent=None: reports.update({name: describe})  # type: ignore[method-assign]
    translator = ServiceLineage(TranslatorSettings.model_validate(settings), upstream)
    translator.topic_added("raw", "shop")
    batch = BatchAccount("shop", "raw", 0)
    batch.changes[Counted("sales", None, "orders", "c")] += 1
    translator.acknowledged(batch)
    translator.announced(msgspec.json.encode(ORDERS))
    (canonical,) = reports["g.raw"]().outputs
    job = kept.job()
    assert job is not None
    (topic,) = job.inputs
    assert (canonical.namespace, canonical.name) == (topic.namespace, topic.name)
    assert canonical.sources.keys() == {one.field for found in job.outputs[0].sources.values() for one in found}


def test_a_new_version_of_a_column(lake: Lake) -> None:
    """A column with a suffix comes from the column with the plain name."""
    number = lake.announce(schema_of({"id": "int64", "name": "int64"}))
    lake.apply(1, [change("c", {"id": 1}, {"name": 7}, pos=1, schema=number)])
    lake.announce(ORDERS)
    lake.apply(2, [change("c", {"id": 2}, {"name": "a"}, pos=2, schema=ORDERS)])
    lineage, kept = _lineage(lake)
    _report(lake, lineage)
    found = {name: [one.field for one in sources] for name, sources in kept.output().sources.items()}
    assert {"id", "name", "name__v2"} == found.keys()
    assert ["sales.orders.name"] == found["name__v2"]


def test_a_shared_table(lake: Lake) -> None:
    """A column has a source in each source table. The column with the source table's name has none."""
    name, shared = "shop.orders", {"shop.orders": ("shop/*//orders",)}
    rename = {"shop/*//orders": name}
    lake.use(TableRules(shared=shared), rename)
    lake.announce(ORDERS)
    other = msgspec.structs.replace(ORDERS, db="archive")
    lake.announce(other)
    lake.announce(CUSTOMERS)
    lake.apply(1, [change("c", {"id": 1}, {"name": "a"}, pos=1, schema=ORDERS)])
    lineage, kept = _lineage(lake, shared=shared, rename=rename)
    _report(lake, lineage, name)
    sources = kept.output(name).sources
    assert {"id", "name"} == sources.keys()
    assert {"sales.orders.name", "archive.orders.name"} == {one.field for one in sources["name"]}


def test_tables_that_are_not_written(lake: Lake) -> None:
    """A table that does not exist is not reported. A table that is excluded, has another name now, or is a copy has no
    events.
    """
    _fill(lake)
    lineage, kept = _lineage(lake)
    _report(lake, lineage, "shop_sales.missing")
    assert ["sink"] == kept.reported
    for tables in ({"exclude": ("shop/*",)}, {"rename": {"shop/sales//orders": "elsewhere"}}):
        lineage, kept = _lineage(lake, **tables)
        _report(lake, lineage)
        assert kept.job() is None
    lineage, kept = _lineage(lake)
    lineage.changed(NAME, Create(TableShape(TABLE, (TableColumn("id", "bigint"),), ("id",), built=f"{COPY}1")))
    assert kept.job() is None


def test_an_iceberg_table(tmp_path: Path) -> None:
    """The catalog has the location. A change to a table's columns is reported, and a shadow is not."""
    lake = LocalIcebergLake(tmp_path / "warehouse")
    _fill(lake)
    lineage, kept = _lineage(lake)
    _report(lake, lineage)
    output = kept.output()
    assert ("file", str(lake.warehouse / "shop_sales" / "orders")) == (output.namespace, output.name)
    assert {"id": "bigint", "name": "string"}.items() <= {one.name: one.type for one in output.fields}.items()
    ddl = FormatDdl(lake.tables, local_ddl(lake.warehouse), LocalCreation(lake.tables))
    ddl.listen(lineage.changed)
    ddl.add_columns(NAME, [TableColumn("note", "string"), TableColumn("count", "int")])
    ddl.widen(NAME, [TableColumn("count", "bigint")])
    shape = TableShape(TABLE, (TableColumn("id", "bigint"),), ("id",))
    ddl.create("shop_sales.copies", shape)
    ddl.create(shadow_of(NAME), shape)
    assert [f"sink.{NAME}"] * 3 + ["sink.shop_sales.copies"] == kept.reported[1:]
    assert {one.name for one in kept.output().fields} == set(lake.iceberg().schema().as_arrow().names)
    assert {"note": "string", "count": "bigint"}.items() <= {one.name: one.type for one in kept.output().fields}.items()
    assert {"note", "count"} <= kept.output().sources.keys()


def test_a_column_of_the_sink_that_was_missing(lake: Lake) -> None:
    """A table from an earlier release gets such a column, which has no source."""
    columns = (TableColumn("id", "bigint"),)
    missing = TableColumn("_cdc_updated_at", "timestamp")
    lineage, kept = _lineage(lake)
    lineage.changed(NAME, Create(TableShape(TABLE, columns, ("id",), lacks=(missing,))))
    assert missing.name not in [one.name for one in kept.output().fields]
    lineage.changed(NAME, AddColumns((missing,)))
    assert missing.name == kept.output().fields[-1].name
    assert {"id"} == kept.output().sources.keys()


def test_names_in_catalogs() -> None:
    """A catalog's name for a table has the catalog's address, without parameters."""

    def found(**catalog: Any) -> tuple[str, str] | None:
        access = IcebergCatalog.model_validate(catalog).access("/lake", {}, {})
        return catalog_name(access, ServedCatalog(access).path("shop.orders"))

    secret = {"properties": {"credential": "hunter2", "jdbc.password": "hunter2"}}
    assert ("https://c:8181/api", "shop.orders") == found(type=CatalogType.REST, uri="https://c:8181/api", **secret)
    assert ("hive://m:9083", "shop.orders") == found(type=CatalogType.HIVE, uri="thrift://m:9083,thrift://n:9083")
    jdbc = "jdbc:postgresql://db:5432/lake?sslmode=require"
    assert ("postgresql://db:5432/lake", "shop.orders") == found(type=CatalogType.JDBC, uri=jdbc, **secret)
    assert found(type=CatalogType.OTHER, properties={"type": "glue"}) is None


@pytest.mark.parametrize("topic", [TOPIC, f"{TOPIC}.schemas"])
def test_a_topic_that_the_sink_reads(topic: str) -> None:
    """Lineage events in an input topic would be read as changes or schemas."""
    given = {"pipeline": "sink", "kafka": {"bootstrap_servers": "b:9092"}, "checkpoint": "/nowhere"}
    with pytest.raises(ValidationError, match="already an input"):
        Settings.model_validate({**given, "tables": {"warehouse": "/lake"}, "lineage": {"to": f"kafka:{topic}"}})


def test_the_number_of_tables_is_limited(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog is not asked about the other tables, because the sink waits for the answer."""
    asked, location = [], FormatTables.location
    monkeypatch.setattr(FormatTables, "location", lambda self, name: asked.append(name) or location(self, name))
    monkeypatch.setattr(lineage_module, "_TABLES", 2)
    lineage, kept = _lineage(lake)
    shape = TableShape(TABLE, (TableColumn("id", "bigint"),), ("id",))
    for name in ("a", "b", "c", "a"):
        lineage.changed(name, Create(shape))
    lineage.changed("c", AddColumns(shape.columns))
    assert ["sink", "sink.a", "sink.b", "sink.a"] == kept.reported
    assert ["a", "b"] == asked


def test_a_catalog_that_does_not_respond(lake: Lake) -> None:
    """A table whose location is unknown is not reported, and nothing fails."""
    properties = {"type": SecretStr("sql"), "uri": SecretStr("sqlite:////nowhere/catalog.db")}
    access = IcebergCatalog(type=CatalogType.OTHER, properties=properties).access("/lake", {}, {})
    lake.tables = replace(lake.tables, catalog=access, formats={"*": Format.ICEBERG})
    lineage, kept = _lineage(lake)
    lineage.changed(NAME, Create(TableShape(TABLE, (TableColumn("id", "bigint"),), ("id",))))
    assert ["sink"] == kept.reported


class _Run:
    """A sink that reports to a file."""

    def __init__(self, broker: Broker, folder: Path, topic: str) -> None:
        self.sink = Sink(broker, folder, topic)
        self.path = folder / "lineage.jsonl"
        self.sink.settings["lineage"] = {"to": f"file://{self.path}"}
        self.sink.settings["tables"]["modes"] = {"*.customers": "changelog"}
        self.sink.write_config()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def kinds(self, job: str) -> list[str]:
        return [one["eventType"] for one in self.events() if one["job"]["name"] == job]

    def columns(self, job: str) -> list[str]:
        """Return the columns in the newest event of a job."""
        newest = [one for one in self.events() if one["job"]["name"] == job][-1]
        return [field["name"] for field in newest["outputs"][0]["facets"]["schema"]["fields"]]


JOBS = ("test", "test.shop_sales.orders", "test.shop_sales.customers")


@pytest.mark.integration
def test_runs(broker: Broker, tmp_path: Path) -> None:
    """A run reports its tables, a new column, and that a signal stopped it. The next run reports the existing tables,
    and its completion.
    """
    run = _Run(broker, tmp_path, "lineage-runs")
    sink, (whole, orders, customers) = run.sink, JOBS
    events = [
        change("c", {"id": 1}, {"name": "hunter2"}, pos=1, schema=ORDERS),
        change("c", {"id": 1}, {}, pos=2, schema=CUSTOMERS, table="customers"),
    ]
    sink.send([ORDERS, CUSTOMERS], events)
    process = sink.start()
    wait(lambda: all(["START"] == run.kinds(job) for job in JOBS), process)
    assert {"id", "_cdc_id", "_cdc_op"} <= set(run.columns(customers))
    sink.send([WIDER], [change("c", {"id": 2}, {"name": "a", "note": "b"}, pos=3, schema=WIDER)])
    wait(lambda: ["START", "RUNNING"] == run.kinds(orders), process)
    assert "note" in run.columns(orders)
    process.send_signal(signal.SIGTERM)
    assert 0 == process.wait(PATIENCE_SECONDS), sink.text()[-3000:]
    assert [["START", "ABORT"], ["START", "RUNNING", "ABORT"]] == [run.kinds(job) for job in (whole, orders)]
    assert "note" in run.columns(orders)
    assert 3 == len({one["run"]["runId"] for one in run.events()})
    assert "hunter2" not in run.path.read_text()
    run.path.unlink()
    assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()[-3000:]
    assert {job: ["START", "COMPLETE"] for job in JOBS} == {job: run.kinds(job) for job in JOBS}
    (outer,) = {one["run"]["runId"] for one in run.events() if one["job"]["name"] == whole}
    parents = Counter(one["run"]["facets"].get("parent", {}).get("run", {}).get("runId") for one in run.events())
    assert {None: 2, outer: 4} == parents


@pytest.mark.integration
def test_a_run_that_fails(broker: Broker, tmp_path: Path) -> None:
    run = _Run(broker, tmp_path, "lineage-fails")
    run.sink.send([ORDERS], [change("c", {"id": 1}, {"name": "a"}, pos=1, schema=ORDERS)])
    process = run.sink.start()
    wait(lambda: bool(run.kinds(JOBS[1])), process)
    schemas = f"{run.sink.topic}.schemas"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_partitions([NewPartitions(schemas, 2)])[schemas].result(PATIENCE_SECONDS)
    run.sink.send([], [change("c", {"id": 2}, {"name": "b"}, pos=2, schema=ORDERS)])
    assert 2 == process.wait(PATIENCE_SECONDS), run.sink.text()[-3000:]
    assert [["START", "FAIL"]] * 2 == [run.kinds(job) for job in JOBS[:2]]


@pytest.mark.integration
def test_a_receiver_that_hangs(broker: Broker, tmp_path: Path) -> None:
    """The run succeeds, and the log has one line about the receiver."""
    sink = Sink(broker, tmp_path, "lineage-hangs")
    sink.send([ORDERS], [change("c", {"id": 1}, {"name": "a"}, pos=1, schema=ORDERS)])
    with socket.create_server(("127.0.0.1", 0)) as hangs:  # the kernel accepts connections, and nothing answers
        sink.settings["lineage"] = {"to": f"http://127.0.0.1:{hangs.getsockname()[1]}/api/v1/lineage"}
        sink.write_config()
        assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()[-3000:]
    assert [(1, "a")] == sink.rows()
    said = [line for line in sink.log() if line["event"].startswith("lineage")]
    assert ["lineage receiver failed"] == [line["event"] for line in said]
