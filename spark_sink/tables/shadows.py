"""Copy a table to a shadow, and later replace the table's rows with those of the shadow in one commit, through Spark.

A shadow is a Delta table without a layout, whatever the format of its table. Its deleted rows are in files next to its
table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow.fs as fs
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from spark_sink.errors import FatalError
from spark_sink.schema.table_naming import shadow_of
from spark_sink.schema.table_spec import Format
from spark_sink.spark.session import session_settings, sibling
from spark_sink.tables.changes import Marker
from spark_sink.tables.deleted_rows import marker_app
from spark_sink.tables.delta.spark_ddl import quoted as path_in_sql
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.history_reader import taken_keys_property, truncates_property
from spark_sink.tables.iceberg.catalogs import quoted
from spark_sink.tables.iceberg.open_table import commit_properties
from spark_sink.tables.iceberg.spark import SUMMARY
from spark_sink.tables.locations import location
from spark_sink.tables.protocols import ChangelogTable, HistoryTable, MirrorTable, TableDdl
from spark_sink.tables.spark_sql import listed
from spark_sink.tables.table_properties import FLOORS_PROPERTY, shape_properties

# Otherwise, Spark writes one file for each task and partition.
_FEW_FILES = {"optimizeWrite": "true", "partitionOverwriteMode": "static"}

StoredTable = MirrorTable | ChangelogTable | HistoryTable


class Shadows:
    """The shadows of a warehouse's tables.

    Args:
        ddl: changes the columns and properties of tables.
    """

    def __init__(self, spark: SparkSession, tables: FormatTables, ddl: TableDdl) -> None:
        self._spark = spark
        self._tables = tables
        self._ddl = ddl

    def copy(self, name: str) -> None:
        """Write a table's rows and state to a new shadow."""
        self.drop(name)
        table, path = self._open(name), self._path(shadow_of(name))
        self._rows(name).write.format("delta").save(path)
        properties = {**shape_properties(table.shape), **_state(table)}
        self._spark.sql(f"ALTER TABLE {path_in_sql(path)} SET TBLPROPERTIES ({listed(properties)})")
        self._mark(path, _deleted_rows(table))

    def swap(self, name: str, marker: Marker) -> None:
        """Replace a table's rows with its shadow's, in one commit with a marker. After an interruption, readers still
        see the old rows, and the call can be repeated.
        """
        shadow, table = self._open(shadow_of(name)), self._open(name)
        present = table.shape.types
        added = [column for column in shadow.shape.columns if column.name not in present]
        # The events may also have needed some of the sink's own columns.
        added += [column for column in table.shape.lacks if column not in shadow.shape.lacks]
        if added:
            self._ddl.add_columns(name, added)
        if wider := [one for one in shadow.shape.columns if present.get(one.name, one.type) != one.type]:
            self._ddl.widen(name, wider, rewrites=not table.choice.widens)
        if (state := _state(shadow)) != _state(table):
            self._ddl.set_properties(name, state)
        # A row in the table takes precedence over a deleted row, so the deleted rows can be known earlier.
        self._replace(name, marker, _deleted_rows(shadow))

    def drop(self, name: str) -> None:
        """Delete a table's shadow, if it exists."""
        folder = shadow_of(name).replace(".", "/")
        storage = fs.PyFileSystem(DeltaStorageHandler(self._tables.warehouse))
        if storage.get_file_info(folder).type is fs.FileType.Directory:
            storage.delete_dir(folder)

    def _replace(self, name: str, marker: Marker, deleted: Sequence[Marker]) -> None:
        shadow = self._path(shadow_of(name))
        if self._tables.format(name) is Format.DELTA:
            self._mark(self._path(name), deleted)
            writer = self._spark.read.format("delta").load(shadow).write.format("delta").mode("overwrite")
            writer.options(**_FEW_FILES, **_options(marker)).save(self._path(name))
            return
        catalog = self._tables.iceberg_catalog
        loaded, session = catalog.load(name), sibling(self._spark, catalog.spark)
        stamped = commit_properties(None if loaded is None else loaded.metadata, [marker, *deleted], {})
        if stamped is None:
            return
        with session_settings(session, {SUMMARY + property: value for property, value in stamped.items()}):
            rows = session.read.format("delta").load(shadow)
            rows.writeTo(quoted(catalog, name)).overwrite(lit(True))

    def _mark(self, path: str, markers: Sequence[Marker]) -> None:
        """Add markers to a Delta table. Spark puts only one marker into a commit."""
        for marker in markers:
            done = DeltaTable(path).transaction_version(marker.app)
            if done is None or done < marker.version:
                none = self._spark.read.format("delta").load(path).limit(0)
                none.write.format("delta").mode("append").options(**_options(marker)).save(path)

    def _rows(self, name: str) -> DataFrame:
        if self._tables.format(name) is Format.DELTA:
            return self._spark.read.format("delta").load(self._path(name))
        catalog = self._tables.iceberg_catalog
        return sibling(self._spark, catalog.spark).table(quoted(catalog, name))

    def _open(self, name: str) -> StoredTable:
        table = self._tables.open(name)
        if table is None:
            raise FatalError(f"the table {name} does not exist")
        return table

    def _path(self, name: str) -> str:
        return location(self._tables.warehouse, name)


def _state(table: StoredTable) -> Mapping[str, str]:
    """Return the properties that describe the rows of a table, not its shape."""
    if isinstance(table, MirrorTable):
        return {FLOORS_PROPERTY: json.dumps(table.floors, sort_keys=True)}
    if isinstance(table, HistoryTable):
        return {**truncates_property(table.truncates), **taken_keys_property(table.taken_keys)}
    return {}


def _deleted_rows(table: StoredTable) -> Sequence[Marker]:
    """Return the marker for a mirror's deleted rows, if they are next to the table."""
    app = marker_app(table.shape)
    number = table.applied(app)
    return [] if number is None else [Marker(app, number)]


def _options(marker: Marker) -> Mapping[str, str]:
    return {"txnAppId": marker.app, "txnVersion": str(marker.version)}
