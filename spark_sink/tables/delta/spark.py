"""Delta tables that Spark writes, on the driver: orders are executed as SQL statements."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from spark_sink.spark.session import session_settings
from spark_sink.tables import row_merge
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.merge_on_read import can_merge, merge_files
from spark_sink.tables.delta.spark_ddl import quoted
from spark_sink.tables.delta.spark_transaction import DeltaTransaction
from spark_sink.tables.locations import location
from spark_sink.tables.meta_columns import (
    DELETED_AT,
    POS,
    SCOPE,
)
from spark_sink.tables.spark_operations import (
    Clear,
    Merge,
    Order,
    RaiseFloors,
    RemoveDeleted,
    Retire,
)
from spark_sink.tables.spark_sql import listed, literal, merge_statement, retirement, staged_rows
from spark_sink.tables.spark_writer import SparkTable
from spark_sink.tables.staging import Staging
from spark_sink.tables.table_properties import FLOORS_PROPERTY

_APP, _VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"

# A staged file never changes, so Spark need not copy it before the join.
SETTINGS = {"spark.databricks.delta.merge.materializeSource": "none"}

# Delta's exceptions for a commit that conflicts with another commit.
_OVERTAKEN = re.compile(r"\bio\.delta\.exceptions\.\w+")

# With these errors, the table will never accept the rows, so a retry would not help.
_REFUSALS = re.compile(r"\b(DELTA_VIOLATE_CONSTRAINT_WITH_VALUES|DELTA_NOT_NULL_CONSTRAINT_VIOLATED)\b")


class DeltaInSpark:
    """The Delta tables in a warehouse, written by Spark."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def table(self, session: SparkSession, name: str) -> SparkTable:
        return _Table(session, self._staging, name)

    def version(self, name: str) -> int:
        return DeltaTable(location(self._staging.warehouse, name)).version()

    def refusal(self, error: str) -> str | None:
        found = _REFUSALS.search(error)
        return found[0] if found else None

    def is_overtaken(self, error: str) -> bool:
        return _OVERTAKEN.search(error) is not None


class _Table:
    def __init__(self, session: SparkSession, staging: Staging, name: str) -> None:
        self._session = session
        self._staging = staging
        self._path = location(staging.warehouse, name)
        self._quoted = quoted(self._path)

    def do(self, order: Order) -> None:
        match order:
            case Merge():
                self._merge(order)
            case RaiseFloors(floors):
                stored = listed({FLOORS_PROPERTY: json.dumps(floors, sort_keys=True)})
                self._session.sql(f"ALTER TABLE {self._quoted} SET TBLPROPERTIES ({stored})")
            case Clear(floors, marker):
                with self._marked(marker):
                    self._delete(_under(floors))
            case Retire(floors, deletion, marker):
                where = f"{DELETED_AT} IS NULL AND ({_under(floors)})"
                with self._marked(marker):
                    self._session.sql(f"UPDATE {self._quoted} SET {retirement(deletion)} WHERE {where}")  # noqa: S608 - literals
            case RemoveDeleted(marker):
                with self._marked(marker):
                    self._delete(f"{DELETED_AT} IS NOT NULL")

    def _delete(self, condition: str) -> None:
        self._session.sql(f"DELETE FROM {self._quoted} WHERE {condition}")  # noqa: S608 - quoted, and made of literals

    def _merge(self, order: Merge) -> None:
        table = DeltaTable(self._path)
        if order.marker is not None and _has(table, order.marker):
            return
        may_merge = not order.inserts_only and can_merge(table, order)
        if may_merge and self._staging.size(order.path) <= row_merge.LARGEST and self._merge_on_read(order):
            return
        for other in order.others:  # Spark puts only one marker into a commit
            self._append(self._session.read.format("delta").load(self._path).limit(0), other)
        staged = staged_rows(self._session, self._staging, order)
        if order.inserts_only:
            self._append(staged, order.marker)
            return
        with self._marked(order.marker):
            self._session.sql(merge_statement(self._quoted, staged, order))

    def _merge_on_read(self, order: Merge) -> bool:
        """Merge staged rows without Spark's MERGE, in one commit with all markers. Return False if the rows or the
        table do not allow this.
        """
        transaction = DeltaTransaction(self._session, self._path)
        table, staged = DeltaTable(self._path, transaction.version), self._staging.read(order.path)
        if not can_merge(table, order) or any(staged.column(name).null_count for name in order.key):
            return False
        markers = [] if order.marker is None else [order.marker]
        if any(_has(table, marker) for marker in markers):
            return True
        markers += [marker for marker in order.others if not _has(table, marker)]
        return transaction.commit(merge_files(table, staged, order, transaction.statistics_columns()), markers)

    def _append(self, rows: DataFrame, marker: Marker | None) -> None:
        options = {} if marker is None else {"txnAppId": marker.app, "txnVersion": str(marker.version)}
        rows.write.format("delta").mode("append").options(**options).save(self._path)

    def _marked(self, marker: Marker | None) -> AbstractContextManager[None]:
        """Add the marker to the commits of statements within the block. If the table already has the marker, the
        statements do nothing.
        """
        return session_settings(
            self._session, {} if marker is None else {_APP: marker.app, _VERSION: str(marker.version)}
        )


def _has(table: DeltaTable, marker: Marker) -> bool:
    done = table.transaction_version(marker.app)
    return done is not None and done >= marker.version


def _under(floors: Mapping[str, str]) -> str:
    return " OR ".join(f"({SCOPE} = {literal(scope)} AND {POS} <= {literal(pos)})" for scope, pos in floors.items())
