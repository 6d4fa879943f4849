"""Describe the sink to an OpenLineage receiver: one job for the sink and, within it, one job for each table.

The job of a table has one input and one output. Its events therefore stay small and complete, whichever tables get
rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import msgspec
import structlog

from cdc_core.lineage import (
    ColumnSource,
    Dataset,
    Field,
    JobDatasets,
    LineageReports,
    kafka_namespace,
    storage_dataset,
)
from cdc_core.table_id import TableId, joined_name
from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType
from spark_sink.config.settings import Settings
from spark_sink.events.shared_tables import SEVERAL, is_same, owner_of, target_of
from spark_sink.metrics import Metrics
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.evolution import AddColumns, Create, Step, TableShape, Widen
from spark_sink.schema.table_spec import SOURCE
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.meta_columns import new_columns
from spark_sink.tables.table_properties import is_of_source

log = structlog.get_logger()

_TABLES = 1000
"""Maximum number of tables with a job, because table names come from events."""

_THREADS = 16  # they wait for the catalog


def lineage_of(
    settings: Settings, tables: FormatTables, schemas: SchemaCatalog, metrics: Metrics
) -> SinkLineage | None:
    """Return the lineage of a sink, or None if it is not configured."""
    if settings.lineage is None:
        return None
    failed = metrics.lineage_failed
    reports = LineageReports(settings.lineage, settings.kafka, "cdc-spark-sink", log.warning, failed)
    return SinkLineage(settings, tables, schemas, reports)


class SinkLineage:
    """The jobs of this process. A table is reported once it exists, and again when its columns change.

    Args:
        schemas: the known schemas, which grow while the sink runs.
    """

    def __init__(
        self, settings: Settings, tables: FormatTables, schemas: SchemaCatalog, reports: LineageReports
    ) -> None:
        self._pipeline = settings.pipeline
        self._topic = Dataset(kafka_namespace(settings.kafka.bootstrap_servers), settings.input.topic)
        self._pattern, self._rules = settings.tables.pattern, settings.tables.rules
        self._catalog = settings.iceberg_catalog
        self._tables = tables
        self._schemas = schemas
        self._known: dict[str, tuple[TableShape, str]] = {}  # with the location
        self.reports = reports
        reports.report(self._pipeline, lambda: JobDatasets((), ()))

    def begin(self, shapes: Mapping[str, TableShape]) -> None:
        """Report the tables that exist when the sink starts."""
        with ThreadPoolExecutor(_THREADS) as pool:
            # The list waits for every result.
            list(pool.map(self.changed, sorted(shapes), (Create(shapes[name]) for name in sorted(shapes))))

    def changed(self, name: str, step: Step) -> None:
        """Report a table that was created, or whose columns were changed. Any thread can call this."""
        with suppress(Exception):  # such as a catalog that does not respond: the table is not reported
            known = self._known.get(name)
            if known is None and len(self._known) >= _TABLES:
                return
            if isinstance(step, Create):
                location = self._tables.location(name) if known is None else known[1]
                found = None if location is None else (step.shape, location)
            else:
                found = None if known is None else (_after(known[0], step), known[1])
            if found is not None:
                self._known[name] = found
                self.reports.report(f"{self._pipeline}.{name}", partial(self._job, name), self._pipeline)

    def _job(self, name: str) -> JobDatasets | None:
        """Return what the job of a table reads and writes, or None if the sink does not write the table.

        Another thread calls this. It must not read the table, because the process would crash if it ended in the
        meantime.
        """
        shape, location = self._known[name]
        if shape.is_copy or self._rules.excludes(shape.table):
            return None
        if target_of(shape.table, self._pattern).lower() != name.lower():
            return None  # the configuration has another name for the source table
        fields = tuple(Field(column, sql) for column, sql in new_columns(shape).items())
        other = None if self._catalog is None else catalog_name(self._catalog, self._tables.catalog_path(name))
        table = Dataset(*storage_dataset(location), fields, self._sources(shape), other)
        return JobDatasets((self._topic,), (table,))

    def _sources(self, shape: TableShape) -> dict[str, tuple[ColumnSource, ...]]:
        """Return the columns in the topic from which each column comes. The sink's own columns have none."""
        names = [joined_name(part.db, part.schema, part.table) for part in self._parts(shape.table)]
        return {
            column.name: tuple(
                ColumnSource(self._topic.namespace, self._topic.name, f"{name}.{column.sent_as}") for name in names
            )
            for column in shape.columns
            if names and is_of_source(column.name) and column.name != SOURCE
        }

    def _parts(self, table: TableId) -> list[TableId]:
        """Return the source tables whose rows are in a table."""
        if table.source != SEVERAL:
            return [table]
        every = (one for one in self._schemas.tables() if not self._rules.excludes(one))
        return [one for one in every if is_same(owner_of(one, self._pattern, self._rules), table)]


def _after(shape: TableShape, step: AddColumns | Widen) -> TableShape:
    """Return a table's shape after its columns were changed."""
    given = {column.name: column for column in step.columns}
    columns = {**{column.name: column for column in shape.columns}, **given}
    own = tuple(column for name, column in columns.items() if is_of_source(name))
    lacks = tuple(column for column in shape.lacks if column.name not in given)
    return msgspec.structs.replace(shape, columns=own, lacks=lacks)


def catalog_name(catalog: CatalogAccess, path: tuple[str, ...] | None) -> tuple[str, str] | None:
    """Return the address of a catalog and the name of a table in it. Return None if the table is not in the catalog, or
    if the address is unknown.

    Args:
        path: the catalog's name, the namespaces and the table.
    """
    if path is None or catalog.type is CatalogType.OTHER:
        return None
    address = catalog.address.split(",")[0].removeprefix("jdbc:").partition("?")[0]
    if catalog.type is CatalogType.HIVE:
        address = address.replace("thrift://", "hive://")
    return address, ".".join(path[1:])
