"""Select the table format. The rest of the sink refers to tables by name, through this module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from deltalake.exceptions import DeltaError

from spark_sink.config.iceberg_catalog import whole_place
from spark_sink.errors import ConfigError, FatalError, Refused
from spark_sink.events.erased_keys import RowKey
from spark_sink.schema.engine_choice import EngineRules
from spark_sink.schema.evolution import AddColumns, Create, Step, TableColumn, TableShape, Widen
from spark_sink.schema.layout import NO_LAYOUT, FileLayouts, differences, layout_for
from spark_sink.schema.table_naming import RESERVED, shown_name
from spark_sink.schema.table_spec import Format, Formats, format_of
from spark_sink.spark.foreign_errors import reason
from spark_sink.tables.changes import Marker
from spark_sink.tables.deleted_rows import has_files
from spark_sink.tables.delta.ddl import DeltaDdl
from spark_sink.tables.delta.maintenance import DeltaMaintenance
from spark_sink.tables.delta.tables import DeltaTables
from spark_sink.tables.locations import is_present, location
from spark_sink.tables.maintenance import Compacted, MaintenanceError, TableFiles, TableMaintenance
from spark_sink.tables.mirror_reader import MirrorReader
from spark_sink.tables.protocols import ChangelogTable, HistoryTable, MirrorTable, TableCreation, TableDdl
from spark_sink.tables.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_sink.config.iceberg_catalog import CatalogAccess
    from spark_sink.tables.erasure import TableErasure
    from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
    from spark_sink.tables.iceberg.catalogs import TableCatalog
    from spark_sink.tables.iceberg.tables import IcebergTables
    from spark_sink.tables.spark_writer import SparkFormat, SparkWriter


@dataclass(frozen=True)
class FormatTables:
    """The tables in a warehouse, each with its own format. The sink's own tables are Delta tables.

    Args:
        app: the pipeline and the checkpoint. They identify the staged files.
        buckets: the number of buckets for new Iceberg tables, keyed by name or pattern.
        catalog: the catalog for Iceberg tables, or None if these are folders in the warehouse.
        layouts: the layout for new tables, keyed by name or pattern.
    """

    warehouse: str
    app: str = ""
    engines: EngineRules = field(default_factory=EngineRules)
    formats: Formats = field(default_factory=dict)
    buckets: Mapping[str, int] = field(default_factory=dict)
    catalog: CatalogAccess | None = None
    layouts: FileLayouts = field(default_factory=dict)

    def open(self, name: str) -> MirrorTable | ChangelogTable | HistoryTable | None:
        return self._of(self.format(name)).open(name)

    def shape(self, name: str) -> TableShape | None:
        """Return a table's shape, or None if the table does not exist.

        Raises:
            ConfigError: a table with another format exists.
        """
        found = self._of(self.format(name)).shape(name)
        if found is None:
            self.check_format(name)
        return found

    def exists(self, name: str) -> bool:
        """Return whether the table exists, in any format and no matter who created it."""
        return any(self._of(format).exists(name) for format in self._possible())

    def spelled(self, name: str) -> str | None:
        """Return the existing name that equals this name except for case, in any format, or None."""
        return next((found for one in self._possible() if (found := self._of(one).spelled(name)) is not None), None)

    def contains_others(self, name: str) -> bool:
        """Return whether the folder for a new table exists. If it does, it contains other tables."""
        return is_present(self.warehouse, name)

    def format(self, name: str) -> Format:
        """Return a table's current or future format."""
        return Format.DELTA if name.startswith(f"{RESERVED}.") else format_of(name, self.formats)

    def layout_differences(self, name: str) -> list[str]:
        """Return the settings in which an existing table differs from its configured layout. If no layout is configured
        for the table, there are none.
        """
        wanted = layout_for(name, self.layouts)
        stored = None if wanted is None else self._of(self.format(name)).layout(name)
        return [] if wanted is None or stored is None else differences(stored, wanted)

    def location(self, name: str) -> str | None:
        """Return the path or URL of a table's folder. Return None if a catalog decides on the folder and does not have
        the table.
        """
        if self.catalog_path(name) is None:
            return whole_place(location(self.warehouse, name))
        table = self.iceberg_catalog.load(name)
        return None if table is None else table.location()

    def catalog_path(self, name: str) -> tuple[str, ...] | None:
        """Return the name of a table in the configured catalog, as `TableCatalog.path` does. Return None if the table
        belongs in a folder of the warehouse.
        """
        in_catalog = self.catalog is not None and self.format(name) is Format.ICEBERG
        return self.iceberg_catalog.path(name) if in_catalog else None

    def reader_features(self, name: str) -> frozenset[str]:
        """Return the features that readers of a table must support. The result is empty if the table does not exist."""
        return self._of(self.format(name)).reader_features(name)

    def check_format(self, name: str) -> None:
        """Make sure that no table in another format has this name.

        Raises:
            ConfigError: a table in another format has this name.
        """
        wanted = self.format(name)
        for other in self._possible():
            if other is not wanted and self._of(other).exists(name):
                raise ConfigError(
                    f"the table {name} has format {other}, but tables.formats requests {wanted}. The format of an "
                    f"existing table cannot change. Set {other} again, or rename the table with tables.rename and "
                    "run `spark-sink rebuild` with the new name; the sink then rereads the topic for it"
                )

    def check_storage(self, name: str) -> None:
        self._delta.parked(self.app)
        if self.format(name) is Format.ICEBERG:
            self.iceberg_catalog.reach()

    def _possible(self) -> Iterable[Format]:
        """Return the formats that tables in this warehouse can have. Without a catalog, Iceberg tables must be in local
        folders, because pyiceberg would use its own credentials for an object store.
        """
        in_folders = "://" not in self.warehouse.removeprefix("file://")
        return Format if in_folders or self.catalog is not None else (Format.DELTA,)

    def as_of(self, name: str, moment: datetime) -> MirrorTable | None:
        return self._of(self.format(name)).as_of(name, moment)

    def at(self, name: str, version: int) -> MirrorTable | None:
        """Return a version of a mirror, or None if the table has another mode.

        Raises:
            FatalError: the version no longer exists.
        """
        return self._of(self.format(name)).at(name, version)

    def quarantine(self, rows: pa.Table, marker: Marker) -> None:
        self._delta.quarantine(rows, marker)

    def park(self, rows: pa.Table, marker: Marker) -> None:
        self._delta.park(rows, marker)

    def parked(self, app: str) -> int | None:
        return self._delta.parked(app)

    @property
    def staging(self) -> Staging:
        return Staging(self.warehouse, self.app)

    @property
    def _delta(self) -> DeltaTables:
        return DeltaTables(self.warehouse, self.app, self.engines)

    def _of(self, format: Format) -> DeltaTables | IcebergTables:
        if format is Format.ICEBERG:
            # Imported here because it costs a worker 20 MiB and a quarter of a second.
            from spark_sink.tables.iceberg.tables import IcebergTables

            return IcebergTables(self.warehouse, self.iceberg_catalog, self.app, self.engines, self.buckets)
        return self._delta

    @property
    def iceberg_catalog(self) -> TableCatalog:
        """The catalog for the Iceberg tables."""
        from spark_sink.tables.iceberg.catalogs import catalog_of

        return catalog_of(self.warehouse, self.catalog)

    @property
    def catalog_traits(self) -> CatalogTraits:
        """The traits of the catalog for the Iceberg tables. Until the catalog has been tested, these are the traits
        that the sink prefers.
        """
        from spark_sink.tables.iceberg.catalog_traits import CatalogTraits, TraitsMemory

        known = None if self.catalog is None else TraitsMemory(self.warehouse, self.catalog).recall()
        return known or CatalogTraits()


class FormatDdl:
    """Creates and changes tables, each in its own format."""

    def __init__(self, tables: FormatTables, delta: TableDdl, iceberg: TableCreation) -> None:
        self._tables = tables
        self._delta = delta
        self._iceberg = iceberg
        self._changed: set[str] = set()
        self._listeners: list[Callable[[str, Step], object]] = []

    def listen(self, listener: Callable[[str, Step], object]) -> None:
        """Call a function with the name of a table and the change, from any thread, after each change of the table's
        columns. Tables that no reader sees are left out.
        """
        self._listeners.append(listener)

    def changed(self) -> set[str]:
        """Return the tables whose columns have changed since the last call, except those that no reader sees."""
        found, self._changed = self._changed, set()
        return {name for name in found if name == shown_name(name)}

    def create(self, name: str, shape: TableShape) -> str:
        self._tables.check_format(name)
        created = self._of(name).create(name, shape)
        if created == name:
            self._notify(name, Create(shape))
        return created

    def replace(self, name: str, shape: TableShape) -> str:
        self._tables.check_format(name)
        replaced = self._of(name).replace(name, shape)
        self._changed.add(replaced)
        self._notify(replaced, Create(shape))
        return replaced

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        self._of(name).add_columns(name, columns)
        self._changed.add(name)
        self._notify(name, AddColumns(tuple(columns)))

    def widen(self, name: str, columns: Sequence[TableColumn], *, rewrites: bool = False) -> None:
        self._of(name).widen(name, columns, rewrites=rewrites)
        self._changed.add(name)
        self._notify(name, Widen(tuple(columns), rewrites))

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None:
        self._of(name).set_properties(name, properties)

    def create_quarantine(self) -> None:
        self._delta.create_quarantine()

    def _notify(self, name: str, step: Step) -> None:
        if name == shown_name(name):
            for listener in self._listeners:
                listener(name, step)

    def _of(self, name: str) -> TableCreation:
        return self._iceberg if self._tables.format(name) is Format.ICEBERG else self._delta


def ask_catalog(spark: SparkSession, tables: FormatTables, *, again: bool = False) -> None:
    """Test the catalog for Iceberg tables, unless the result is already known. Folders need no test.

    Args:
        again: whether to test the catalog even if the result is known.

    Raises:
        ConfigError: the catalog loses properties that the sink relies on.
        FatalError: the catalog does not respond, or cannot create tables.
    """
    if tables.catalog is not None and Format.ICEBERG in tables.formats.values():
        from spark_sink.tables.iceberg.probe import catalog_traits

        catalog_traits(spark, tables.warehouse, tables.catalog, again=again)


def spark_ddl(spark: SparkSession, tables: FormatTables) -> FormatDdl:
    """Return the object that creates and changes the tables of a warehouse, through Spark if necessary."""
    # Imported here because the command line needs no Spark.
    from spark_sink.tables.delta.spark_ddl import SparkDdl
    from spark_sink.tables.iceberg.ddl import IcebergDdl

    warehouse = tables.warehouse
    return FormatDdl(
        tables,
        DeltaDdl(warehouse, SparkDdl(spark, warehouse), tables.layouts),
        IcebergDdl(spark, tables.iceberg_catalog, lambda: tables.catalog_traits, tables.buckets, tables.layouts),
    )


class FormatRelayout:
    """Changes the layouts of existing tables through Spark."""

    def __init__(self, spark: SparkSession, tables: FormatTables) -> None:
        self._spark = spark
        self._tables = tables

    def differences(self, name: str) -> list[str]:
        """Return the settings in which a table differs from its configured layout.

        Raises:
            FatalError: no layout is configured for the table, or the table does not exist.
        """
        if layout_for(name, self._tables.layouts) is None:
            raise FatalError(f"tables.layout has no entry for {name}; add one, such as {{}}, and restart the sink")
        if not self._tables.exists(name):
            raise FatalError(f"the table {name} does not exist")
        return self._tables.layout_differences(name)

    def rewrite(self, name: str) -> None:
        """Give a table its configured layout. After an interruption, the call can be repeated."""
        from spark_sink.tables.delta.relayout import DeltaRelayout
        from spark_sink.tables.iceberg.relayout import IcebergRelayout

        tables, layout = self._tables, layout_for(name, self._tables.layouts) or NO_LAYOUT
        # Batches do not wait until the tasks of the rewrite have ended.
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", "relayout")
        if tables.format(name) is Format.DELTA:
            DeltaRelayout(self._spark, tables.warehouse)(name, layout)
        else:
            catalog, traits = tables.iceberg_catalog, tables.catalog_traits
            IcebergRelayout(self._spark, catalog, traits, tables.buckets)(name, layout)


class FormatErasure:
    """Erases rows, each in its table's format, through Spark."""

    def __init__(self, spark: SparkSession, tables: FormatTables) -> None:
        self._spark = spark
        self._tables = tables

    def erase(self, name: str, key: RowKey, properties: Mapping[str, str]) -> int:
        """Set properties, delete the rows with this key from the newest version, and return the number of deleted
        rows.
        """
        shape = self._tables.shape(name)
        return 0 if shape is None else self._of(name).erase(name, shape, key, properties)

    def purge(self, name: str) -> int:
        """Delete everything that only earlier versions need, and return the number of deleted data files."""
        if name.startswith(f"{RESERVED}."):
            from spark_sink.tables.delta.erasure import purge_own

            return purge_own(self._tables.warehouse, name)
        return self._of(name).purge(name) + self._tables.staging.discard_unfinished(name)

    def _of(self, name: str) -> TableErasure:
        from spark_sink.tables.delta.erasure import DeltaErasure
        from spark_sink.tables.iceberg.erasure import IcebergErasure

        tables = self._tables
        if tables.format(name) is Format.DELTA:
            return DeltaErasure(self._spark, tables.warehouse)
        return IcebergErasure(self._spark, tables.iceberg_catalog, tables.catalog_traits)


class FormatMaintenance:
    """Maintains table files, each table in its own format."""

    def __init__(self, tables: FormatTables, spark: SparkSession | None) -> None:
        """`spark` is None if files are only inspected."""
        self._tables = tables
        self._spark = spark
        self._delta = DeltaMaintenance(tables.warehouse)

    def files(self, name: str) -> TableFiles | None:
        return self._of(name).files(name)

    def compact(self, name: str, target_bytes: int) -> Compacted:
        return self._of(name).compact(name, target_bytes)

    def checkpoint(self, name: str) -> None:
        self._of(name).checkpoint(name)

    def remember(self, name: str, days: int) -> None:
        self._of(name).remember(name, days)

    def vacuum(self, name: str, days: float) -> int:
        removed = self._of(name).vacuum(name, days)
        try:
            table = self._tables.open(name) if has_files(self._tables.warehouse, name) else None
            return removed + (table.deleted_rows.clean(days) if isinstance(table, MirrorReader) else 0)
        except (Refused, FatalError, DeltaError, OSError, pa.ArrowException, msgspec.MsgspecError) as error:
            raise MaintenanceError(f"{name}: the files of deleted rows were not cleaned: {reason(error)}") from error

    def _of(self, name: str) -> TableMaintenance:
        return self._iceberg if self._tables.format(name) is Format.ICEBERG else self._delta

    @cached_property
    def _iceberg(self) -> TableMaintenance:
        from spark_sink.tables.iceberg.maintenance import IcebergMaintenance

        return IcebergMaintenance(self._tables.iceberg_catalog, self._tables.catalog_traits, self._spark)


def spark_writer(spark: SparkSession, tables: FormatTables) -> SparkWriter:
    """Return the writer for the tables that Spark writes."""
    from spark_sink.tables.delta.spark import SETTINGS, DeltaInSpark
    from spark_sink.tables.iceberg.spark import IcebergInSpark
    from spark_sink.tables.spark_writer import SparkWriter

    staging, catalog = tables.staging, tables.iceberg_catalog
    by_format: Mapping[Format, SparkFormat] = {
        Format.DELTA: DeltaInSpark(staging),
        Format.ICEBERG: IcebergInSpark(catalog, lambda: tables.catalog_traits, staging),
    }
    every = {**SETTINGS, **catalog.spark}
    return SparkWriter(spark, staging, tables, lambda name: by_format[tables.format(name)], every)
