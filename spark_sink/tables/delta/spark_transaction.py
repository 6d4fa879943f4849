"""Commits of files that the sink has written itself, through Delta Lake's own transaction in the JVM. Delta Lake
detects conflicts with other commits, writes the log entry, and creates checkpoints.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.merge_on_read import ChangedFile, MergedFiles, NewFile

# A commit that the log calls a MERGE must have this metric.
_SOURCE_ROWS = "operationNumSourceRows"


class DeltaTransaction:
    """A transaction on the newest version of a table. Any other commit to the table's rows is a conflict."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session
        jvm: Any = session._jvm
        self._jvm = jvm
        self._delta = jvm.org.apache.spark.sql.delta
        self._transaction = self._delta.DeltaLog.forTable(session._jsparkSession, path).startTransaction()
        self._transaction.readWholeTable()

    @property
    def version(self) -> int:
        """The version of the table that the transaction has read."""
        return int(self._transaction.readVersion())

    def statistics_columns(self) -> list[str]:
        """Return the columns for which the table keeps statistics."""
        schema = self._transaction.snapshot().statsSchema()
        if "nullCount" not in schema.fieldNames():
            return []
        return list(schema.apply("nullCount").dataType().fieldNames())

    def commit(self, merged: MergedFiles, markers: Sequence[Marker]) -> bool:
        """Commit the files of a merge, with the markers. Return False if only Spark can change some file, because the
        log lists it under another name or without its number of rows.
        """
        files = self._files(merged.changed)
        if files.keys() != merged.changed.keys():
            return False
        actions = [self._marker(marker) for marker in markers]
        if merged.added is not None:
            actions.append(self._new(merged.added))
        actions += self._with_vectors(files, merged)
        metric = self._jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(
            self._session._jsc.sc(), _SOURCE_ROWS
        )
        metric.set(merged.source_rows)
        metrics = self._jvm.PythonUtils.toScalaMap({_SOURCE_ROWS: metric})
        self._transaction.registerSQLMetrics(self._session._jsparkSession, metrics)
        unset, clauses = self._jvm.scala.Option.empty(), self._jvm.PythonUtils.toSeq([])
        merge = getattr(self._delta, "DeltaOperations$Merge")(*[unset] * 4, *[clauses] * 3)
        self._transaction.commit(self._jvm.PythonUtils.toSeq(actions), merge)
        return True

    def _action(self, kind: str, fields: Mapping[str, object]) -> Any:
        return self._delta.actions.Action.fromJson(msgspec.json.encode({kind: fields}).decode())

    def _marker(self, marker: Marker) -> Any:
        # The transaction has to read the marker. Otherwise, a commit without rows would not conflict with a later
        # marker that another sink has committed, and would replace it.
        self._transaction.txnVersion(marker.app)
        return self._action("txn", {"appId": marker.app, "version": marker.version, "lastUpdated": _now()})

    def _new(self, file: NewFile) -> Any:
        fixed = {"partitionValues": {}, "modificationTime": _now(), "dataChange": True}
        return self._action("add", {"path": file.path, "size": file.size, "stats": file.statistics, **fixed})

    def _with_vectors(self, files: Mapping[str, Any], merged: MergedFiles) -> list[Any]:
        """Return the actions that give the changed files their deletion vectors."""
        actions: list[Any] = []
        id, some = self._jvm.java.util.UUID.fromString(str(merged.vectors)), self._jvm.scala.Option.apply
        descriptor = self._delta.actions.DeletionVectorDescriptor
        for path, changed in merged.changed.items():
            if changed.is_empty:
                actions.append(files[path].remove())
                continue
            place = changed.vector
            vector = descriptor.onDiskWithRelativePath(id, "", place.size, place.rows, some(place.offset), some(None))
            with_vector = files[path].removeRows(vector, True, True)
            actions += [with_vector._1(), with_vector._2()]
        return actions

    def _files(self, changed: Mapping[str, ChangedFile]) -> dict[str, Any]:
        """Return the log's entries for the changed files.

        If the table has few files, Delta lists them in each version's checksum. Otherwise, Spark jobs collect them.
        """
        if not changed:
            return {}
        snapshot = self._transaction.snapshot()
        checksum = snapshot.checksumOpt()
        listed = checksum.get().allFiles() if checksum.isDefined() else checksum
        if listed.isDefined():
            files = listed.get()
            found = _by_path((files.apply(number) for number in range(files.size())), changed)
            if found.keys() == changed.keys():
                return found
        return _by_path(snapshot.allFiles().collect(), changed)


def _by_path(files: Iterable[Any], changed: Mapping[str, ChangedFile]) -> dict[str, Any]:
    """Return the changed files among these, if they still have the deletion vectors that the merge has read, and can
    have new ones. Delta Lake rejects a vector for a file without a number of rows.
    """
    found = {}
    for file in files:
        path, vector = file.path(), file.deletionVector()
        if path not in changed or not file.numLogicalRecords().isDefined():
            continue
        if changed[path].deleted == (0 if vector is None else vector.cardinality()):
            found[path] = file
    return found


def _now() -> int:
    return time.time_ns() // 1_000_000
