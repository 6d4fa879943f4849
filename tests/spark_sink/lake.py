"""A warehouse under test: apply batches and read tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import Table
from pyspark.sql import DataFrame, SparkSession

from cdc_core.envelope import ChangeEvent, TableSchema
from spark_sink.apply.driver import Applier, TaskRunner
from spark_sink.apply.spark_runner import SparkRunner
from spark_sink.config.iceberg_catalog import CatalogAccess
from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.batches import ControlTables
from spark_sink.control_tables.requests import Request, Requests
from spark_sink.metrics import Metrics
from spark_sink.operations.actions import Actions
from spark_sink.operations.erase import Erase
from spark_sink.operations.maintenance import Maintenance
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.layout import FileLayouts
from spark_sink.schema.table_naming import TablePattern
from spark_sink.schema.table_spec import Format, Formats
from spark_sink.spark.session import sibling
from spark_sink.table_report import TableReport
from spark_sink.tables.formats import (
    FormatErasure,
    FormatMaintenance,
    FormatRelayout,
    FormatTables,
    spark_ddl,
    spark_writer,
)
from spark_sink.tables.iceberg.catalogs import quoted
from spark_sink.tables.iceberg.spark_catalog import java_table
from spark_sink.tables.protocols import TableDdl
from spark_sink.tables.shadows import Shadows
from spark_sink.tables.spark_operations import OrderRunner
from tests.spark_sink.changes import record
from tests.spark_sink.commit_markers import commit_markers, of_snapshots
from tests.spark_sink.local import LocalRunner, NoOrders, local_ddl

PATTERN = "{source}_{db}_{schema}.{table}"


class FixedSchemas:
    """A catalog that the test fills."""

    def __init__(self) -> None:
        self.catalog = SchemaCatalog()

    def refresh(self) -> SchemaCatalog:
        return self.catalog


class Topic:
    """A canonical topic of one partition, from which batches come and ranges can be read again."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._events: list[ChangeEvent | bytes] = []
        # The first offset that the topic still has.
        self.first = 0
        lake.topic = self

    def apply(self, batch: int, events: Sequence[ChangeEvent | bytes]) -> list[TableReport]:
        """Write events to the topic and apply them as a batch."""
        begin = len(self._events)
        self._events += events
        return self._lake.applier(self.read({0: begin}, {0: len(self._events)}), batch)

    def begins(self) -> Mapping[int, int]:
        return {0: self.first}

    def read(self, begin: Mapping[int, int], end: Mapping[int, int]) -> Any:
        assert begin[0] >= self.first
        return self._lake.records(self._events[begin[0] : end[0]], begin[0])


class Lake:
    """The sink in this process, without Spark."""

    session: SparkSession | None = None
    topic_name = "canonical"

    def __init__(self, warehouse: Path) -> None:
        # For tables without a rule.
        self.formats: Formats = {}
        self.layouts: FileLayouts = {}
        # For Iceberg tables. None keeps them in folders.
        self.catalog: CatalogAccess | None = None
        # The catalog of another lake, by warehouse.
        self.catalog_of: Callable[[Path], CatalogAccess | None] = lambda _: None
        self.rules = TableRules()
        self.rename: Mapping[str, str] = {}
        # The source for rebuilding tables, if the test has one.
        self.topic: Topic | None = None
        self.warehouse = warehouse
        self.schemas = FixedSchemas()
        self.ddl = self._ddl()
        self.ddl.create_quarantine()
        self.applier = self.new_applier("checkpoint-1")
        self.control.create()

    def new_applier(self, checkpoint: str) -> Applier[Any]:
        app, self.metrics = f"test/{checkpoint}", Metrics(tables=0)
        pattern = TablePattern.parse(PATTERN, self.rename)
        self.tables = self._tables(app)
        self.control = ControlTables(str(self.warehouse), "test", checkpoint, self.topic_name)
        return Applier(
            self.schemas,
            self.tables,
            self.ddl,
            pattern,
            app,
            self.rules,
            self.control,
            self.metrics,
            self._runner(),
            self._writer(),
        )

    def _tables(self, app: str) -> FormatTables:
        rules = self.rules
        found = FormatTables(str(self.warehouse), app, rules.engines, rules.formats, rules.buckets, self.catalog)
        return replace(found, layouts=rules.layouts)

    def _ddl(self) -> TableDdl:
        return local_ddl(self.warehouse, self.rules.layouts)

    def _runner(self) -> TaskRunner[Any]:
        return LocalRunner()

    def _writer(self) -> OrderRunner:
        return NoOrders()

    def beside(self, warehouse: Path) -> Lake:
        """Create another lake like this one."""
        return Lake(warehouse)

    def use(self, rules: TableRules, rename: Mapping[str, str] | None = None) -> None:
        """Switch to these rules and table names."""
        formats, layouts = {**self.formats, **rules.formats}, {**self.layouts, **rules.layouts}
        self.rules, self.rename = replace(rules, formats=formats, layouts=layouts), rename or {}
        self.ddl = self._ddl()
        self.applier = self.new_applier("checkpoint-1")

    def requests(self, limit: int = 1_000_000) -> Requests:
        """What executes commands, replaying about so many events at a time."""
        return Requests(self.control.requests, self.actions(limit).by_name())

    def actions(self, limit: int = 1_000_000) -> Actions:
        """Return the implementation of the commands."""
        maintenance = self.maintenance()
        layouts, erase, shadows = None, None, None
        if self.session is not None:
            layouts, files = FormatRelayout(self.session, self.tables), FormatErasure(self.session, self.tables)
            erase = Erase(str(self.warehouse), self.tables, self.control, self.applier.pattern, files)
            shadows = Shadows(self.session, self.tables, self.ddl)
        parts = (self.applier, self.tables, self.control, Metrics(0), limit, maintenance)
        return Actions(*parts, topic=self.topic, layouts=layouts, erase=erase, shadows=shadows)

    def maintenance(self, rules: MaintenanceRules | None = None, clock: Callable[[], float] = time.time) -> Maintenance:
        """Return the maintenance that compacts files."""
        files = FormatMaintenance(self.tables, self.session)
        return Maintenance(files, self.control, rules or MaintenanceRules(), self.metrics, clock)

    def command(self, command: str, table: str = "shop_sales.orders", argument: str | None = None) -> Request:
        """Give a command, have it executed, and see how it stands."""
        id = self.control.requests.ask(command, table, argument)
        self.requests().run()
        return next(request for request in self.control.requests.requests() if request.id == id)

    def announce(self, schema: TableSchema) -> TableSchema:
        self.schemas.catalog.add(schema)
        return schema

    def apply(self, batch: int, events: Sequence[ChangeEvent | bytes]) -> list[TableReport]:
        return self.applier(self.records(events), batch)

    def records(self, events: Sequence[ChangeEvent | bytes], first: int = 0) -> Any:
        """Return events or raw values as the Kafka source delivers them: partition 0, offsets from the first."""
        values = [event if isinstance(event, bytes) else record(event) for event in events]
        columns = {
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(first, first + len(values)), pa.int64()),
            "value": pa.array(values, pa.binary()),
        }
        # Shuffled, because the offset defines the order.
        order = sorted(range(len(values)), key=lambda i: (i * 7919) % 104729)
        return self.frame(pa.table(columns).take(order))

    def frame(self, records: pa.Table) -> Any:
        """Return records as this lake's batches contain them."""
        return records

    def path(self, table: str = "shop_sales.orders") -> str:
        return str(self.warehouse.joinpath(*table.split(".")))

    def rows(self, table: str = "shop_sales.orders") -> list[dict[str, Any]]:
        """Return the table as its readers see it, without our own columns and ordered by its first column."""
        read = self.stored(table)
        if self.rules.soft_deletes:
            read = read.filter(pc.is_null(read.column("_cdc_deleted_at")))
        plain = read.drop_columns([name for name in read.column_names if name.startswith("_cdc_")])
        return sorted(plain.to_pylist(), key=lambda row: str(next(iter(row.values()))))

    def stored(self, table: str = "shop_sales.orders", version: int | None = None) -> pa.Table:
        """Return the whole table as read without Spark, at its current or at a given version."""
        if self.tables.format(table) is Format.DELTA:
            opened = DeltaTable(self.path(table), version=version)
            if "deletionVectors" not in (opened.protocol().reader_features or ()):
                return opened.to_pyarrow_table()
            found = QueryBuilder().register("stored", opened).execute("SELECT * FROM stored")
            return pa.RecordBatchReader.from_stream(found).read_all().cast(pa.schema(opened.schema().to_arrow()))
        return self.iceberg(table).scan(snapshot_id=version).to_arrow()

    def iceberg(self, table: str = "shop_sales.orders") -> Table:
        """Return an Iceberg table from its catalog."""
        found = self.tables.iceberg_catalog.load(table)
        assert found is not None
        return found

    def commit_markers(self, table: str = "shop_sales.orders") -> list[tuple[str, int]]:
        """Return the app and version of each commit with a marker, in order."""
        if self.tables.format(table) is Format.DELTA:
            return commit_markers(Path(self.path(table)))
        return list(of_snapshots(self.iceberg(table).metadata))

    def version(self, table: str = "shop_sales.orders") -> int:
        if self.tables.format(table) is Format.DELTA:
            return DeltaTable(self.path(table)).version()
        opened = self.tables.open(table)
        assert opened is not None
        return opened.version

    def quarantine(self) -> list[tuple[str, int, str | None]]:
        """Return the reason, offset and event id of quarantined events, by offset."""
        read = DeltaTable(self.path("_cdc.quarantine")).to_pyarrow_table()
        found = (read.column(name).to_pylist() for name in ("reason", "kafka_offset", "event_id"))
        return sorted(zip(*found, strict=True), key=lambda row: row[1])

    def parked(self) -> list[tuple[str, int]]:
        """Return the reason and offset of waiting events, in order."""
        read = DeltaTable(self.path("_cdc.parked")).to_pyarrow_table()
        rows = sorted(read.to_pylist(), key=lambda row: (row["turn"], row["kafka_offset"] or 0))
        return [(row["reason"], row["kafka_offset"]) for row in rows]


class MergingLake(Lake):
    """The sink without Spark, except for the tables that Spark writes."""

    def __init__(self, spark: SparkSession, warehouse: Path) -> None:
        self.spark = self.session = spark
        super().__init__(warehouse)

    def _ddl(self) -> TableDdl:
        return spark_ddl(self.spark, self._tables(""))

    def _writer(self) -> OrderRunner:
        return spark_writer(self.spark, self.tables)

    def beside(self, warehouse: Path) -> MergingLake:
        made = type(self)(self.spark, warehouse)
        made.formats, made.layouts = self.formats, self.layouts
        made.catalog_of, made.catalog = self.catalog_of, self.catalog_of(warehouse)
        made.use(TableRules())
        return made

    def read(self, table: str = "shop_sales.orders") -> DataFrame:
        """Return the table as read by Spark."""
        return read_by_spark(self.spark, self, table)


class SparkLake(MergingLake):
    """The sink on real Spark."""

    def _runner(self) -> TaskRunner[Any]:
        return SparkRunner(self.spark)

    def frame(self, records: pa.Table) -> DataFrame:
        return self.spark.createDataFrame(records)


def read_by_spark(spark: SparkSession, lake: Lake, table: str = "shop_sales.orders") -> DataFrame:
    """Return a table as read by Spark, whoever writes it."""
    if lake.tables.format(table) is Format.DELTA:
        return spark.read.format("delta").load(lake.path(table))
    catalog = lake.tables.iceberg_catalog
    return sibling(spark, catalog.spark).table(quoted(catalog, table))


def rewrite_as_others(
    spark: SparkSession, lake: Lake, table: str = "shop_sales.orders", *, expires: bool = False
) -> None:
    """Compact an Iceberg table as another program would, in a snapshot without a marker.

    Args:
        expires: whether it expires all other snapshots too.
    """
    catalog = lake.tables.iceberg_catalog
    session = sibling(spark, catalog.spark)
    actions: Any = session._jvm.org.apache.iceberg.spark.actions.SparkActions  # type: ignore[union-attr]
    others = actions.get(session._jsparkSession)
    others.rewriteDataFiles(java_table(session, catalog, table)).option("rewrite-all", "true").execute()
    if expires:
        now = int(time.time() * 1000)
        others.expireSnapshots(java_table(session, catalog, table)).expireOlderThan(now).retainLast(1).execute()
