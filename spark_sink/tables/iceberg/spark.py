"""Execute orders for Iceberg tables on the driver, without Spark's MERGE if possible, and otherwise as SQL statements.

Rows are changed by a row delta, by a MERGE with a clause for matching rows, or by an append that Iceberg validates.
With two writers, an INSERT, or a MERGE that only inserts, would duplicate rows (docs/decisions/0009-iceberg.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import pyarrow as pa
import structlog
from pyiceberg.table.metadata import TableMetadata
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from spark_sink.errors import FatalError, Overtaken
from spark_sink.spark.failures import SPARK_ERRORS
from spark_sink.spark.session import session_settings
from spark_sink.tables import row_merge
from spark_sink.tables.changes import Marker
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
from spark_sink.tables.iceberg.catalogs import TableCatalog, quoted
from spark_sink.tables.iceberg.data_files import Unsupported
from spark_sink.tables.iceberg.merge_on_read import can_merge, merge_files, reach_as_json
from spark_sink.tables.iceberg.open_table import NO_SNAPSHOT, ancestors, commit_properties, version_of
from spark_sink.tables.iceberg.row_delta import RowDelta
from spark_sink.tables.meta_columns import CURRENT, DELETED_AT, END_OP, END_POS, END_SCOPE, END_TS, POS, SCOPE
from spark_sink.tables.spark_operations import (
    Clear,
    CloseVersions,
    Merge,
    Order,
    RaiseFloors,
    RemoveDeleted,
    Retire,
    SetProperties,
)
from spark_sink.tables.spark_sql import instant, listed, literal, merge_statement, retirement, staged_rows
from spark_sink.tables.spark_writer import SparkTable
from spark_sink.tables.staging import Staging
from spark_sink.tables.table_properties import FLOORS_PROPERTY

# The prefix for properties that Spark writes into the summary of a statement's snapshot.
SUMMARY = "spark.sql.iceberg.snapshot-property."

log = structlog.get_logger()

# Iceberg's exceptions for a commit that conflicts with another commit, and its message after a rollback.
_OVERTAKEN = re.compile(
    r"\borg\.apache\.iceberg\.exceptions\.(CommitFailedException|ValidationException)\b"
    r"|\bSnapshot \d+ is not an ancestor of \d+"
)

# Errors of a merge without Spark, such as those of another version of Iceberg, or of texts that exceed the size of an
# array. As long as nothing is committed, Spark's MERGE can still succeed.
_BEFORE_COMMIT: tuple[type[Exception], ...] = (*SPARK_ERRORS, pa.ArrowException, OSError)


def is_commit_conflict(error: str) -> bool:
    """Return whether an error in Java means that a commit conflicts with another commit."""
    return _OVERTAKEN.search(error) is not None


class IcebergInSpark:
    """The Iceberg tables in a catalog, written by Spark.

    Args:
        traits: returns the catalog's traits. They are known by the time the first rows are written.
    """

    def __init__(self, catalog: TableCatalog, traits: Callable[[], CatalogTraits], staging: Staging) -> None:
        self._catalog = catalog
        self._traits = traits
        self._staging = staging

    def table(self, session: SparkSession, name: str) -> SparkTable:
        return _Table(session, self._catalog, self._staging, name, appends=self._appends)

    @cached_property
    def _appends(self) -> bool:
        """Return whether new rows are appended. They are if the catalog shows commits before the newest snapshot.
        Otherwise, nothing shows the sink whether another writer has added the rows.
        """
        return self._traits().keeps_snapshots

    def version(self, name: str) -> int:
        table = self._catalog.load(name)
        return NO_SNAPSHOT if table is None else version_of(table.metadata)

    def refusal(self, error: str) -> str | None:
        return None  # Iceberg tables have no row constraints

    def is_overtaken(self, error: str) -> bool:
        return is_commit_conflict(error)


class _Table:
    def __init__(
        self, session: SparkSession, catalog: TableCatalog, staging: Staging, name: str, *, appends: bool
    ) -> None:
        self._session = session
        self._catalog = catalog
        self._staging = staging
        self._name = name
        self._quoted = quoted(catalog, name)
        self._appends = appends

    def do(self, order: Order) -> None:
        match order:
            case Merge():
                self._merge(order)
            case RaiseFloors(floors):
                self._set({FLOORS_PROPERTY: json.dumps(floors, sort_keys=True)})
            case SetProperties(properties):
                self._set(properties)
            case Clear(floors, marker):
                self._run(f"{self._under(floors)} WHEN MATCHED THEN DELETE", marker)
            case Retire(floors, deletion, marker):
                under = f"{self._under(floors)} AND t.{DELETED_AT} IS NULL"
                self._run(f"{under} WHEN MATCHED THEN UPDATE SET {retirement(deletion)}", marker)
            case CloseVersions(floors, at, marker):
                ends = {END_OP: "'t'", END_SCOPE: f"t.{SCOPE}", END_POS: "f.pos", END_TS: instant(at), CURRENT: "false"}
                ended = ", ".join(f"t.{name} = {value}" for name, value in ends.items())
                self._run(f"{self._under(floors)} AND t.{CURRENT} WHEN MATCHED THEN UPDATE SET {ended}", marker)
            case RemoveDeleted(marker):
                # A DELETE that removes whole files would lose the marker.
                deleted = f"MERGE INTO {self._quoted} AS t USING (SELECT 1) AS f ON t.{DELETED_AT} IS NOT NULL"
                self._run(f"{deleted} WHEN MATCHED THEN DELETE", marker)

    def _set(self, properties: Mapping[str, str]) -> None:
        self._session.sql(f"ALTER TABLE {self._quoted} SET TBLPROPERTIES ({listed(properties)})")

    def _under(self, floors: Mapping[str, str]) -> str:
        """Return the start of a MERGE that matches the rows at or below the floors."""
        rows = ", ".join(f"({literal(scope)}, {literal(pos)})" for scope, pos in floors.items())
        known = f"(SELECT col1 AS scope, col2 AS pos FROM VALUES {rows})"  # noqa: S608 - literals
        return f"MERGE INTO {self._quoted} AS t USING {known} AS f ON t.{SCOPE} = f.scope AND t.{POS} <= f.pos"

    def _merge(self, order: Merge) -> None:
        appends = order.inserts_only and self._appends
        if not appends and self._appends and self._merge_on_read(order):
            return
        staged = staged_rows(self._session, self._staging, order)
        change: Callable[[], object]
        if appends:
            change = partial(self._append, staged, order.version)
        else:
            change = partial(self._session.sql, merge_statement(self._quoted, staged, order))
        self._commit(change, _markers(order), order.summary)

    def _merge_on_read(self, order: Merge) -> bool:
        """Merge staged rows without Spark's MERGE. Return False if the rows or the table do not allow this."""
        table = self._catalog.load(self._name)
        if table is None or not can_merge(table.metadata, order):
            return False
        properties = commit_properties(table.metadata, _markers(order), order.summary)
        if properties is None:
            return True
        if self._staging.size(order.path) > row_merge.LARGEST:
            return False
        staged = self._staging.read(order.path)
        if staged.nbytes > row_merge.MOST_IN_MEMORY or any(staged.column(name).null_count for name in order.key):
            return False
        try:
            delta = RowDelta(self._session, self._catalog, self._name, reach_as_json(order))
            if not delta.is_of(table):
                return False
            merged = merge_files(table.metadata, table.io, delta.files(), staged, order)
            commit = delta.prepared(merged, properties)
        except Unsupported:
            return False
        except _BEFORE_COMMIT as error:
            log.warning("merge left to Spark", table=self._name, error=type(error).__name__)
            return False
        try:
            commit()
        except Exception:
            if self._is_withdrawn(table.metadata):
                raise Overtaken(f"the table {self._name}") from None
            raise
        return True

    def _is_withdrawn(self, read: TableMetadata) -> bool:
        """Return whether another writer has rolled the table back, replaced it or expired its snapshot."""
        try:
            table = self._catalog.load(self._name)
        except (OSError, FatalError):
            return False  # the error of the commit may have the same cause
        if table is None:
            return False  # a dropped table is parked, and other tables continue
        if table.metadata.table_uuid != read.table_uuid:
            return True
        snapshot = read.current_snapshot_id
        return snapshot is not None and all(one.snapshot_id != snapshot for one in ancestors(table.metadata))

    def _append(self, rows: DataFrame, version: int) -> None:
        """Add rows that a given version of the table does not contain. They are written as an overwrite that replaces
        nothing, because Iceberg rejects an overwrite if another commit has added a row since that version. It would
        accept a plain append.
        """
        validated = rows.writeTo(self._quoted).option("isolation-level", "serializable")
        if version != NO_SNAPSHOT:  # otherwise, validation covers all commits since the table was created
            validated = validated.option("validate-from-snapshot-id", str(version))
        validated.overwrite(lit(False))

    def _run(self, statement: str, *markers: Marker) -> None:
        self._commit(partial(self._session.sql, statement), markers, {})

    def _commit(self, change: Callable[[], object], markers: Sequence[Marker], summary: Mapping[str, str]) -> None:
        """Make a change whose commit contains the markers. If the table already has the first marker, do nothing."""
        table = self._catalog.load(self._name)
        stamped = commit_properties(None if table is None else table.metadata, markers, summary)
        if stamped is None:
            return
        with session_settings(self._session, {SUMMARY + name: value for name, value in stamped.items()}):
            change()


def _markers(order: Merge) -> tuple[Marker, ...]:
    return () if order.marker is None else (order.marker, *order.others)
