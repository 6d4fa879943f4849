"""Maintain the files in Iceberg tables. Files are inspected through pyiceberg, and changed by Iceberg's actions in
Spark.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from pyiceberg.table.metadata import TableMetadata
from pyspark.sql import SparkSession

from spark_sink.errors import FatalError
from spark_sink.spark.failures import SPARK_ERRORS, cause
from spark_sink.spark.foreign_errors import reason
from spark_sink.spark.session import hadoop_folder, sibling
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
from spark_sink.tables.iceberg.catalogs import TableCatalog
from spark_sink.tables.iceberg.open_table import (
    MARKERS_PROPERTY,
    ancestors,
    copy_of_markers,
    markers_of,
    version_of,
)
from spark_sink.tables.iceberg.spark_catalog import java_table
from spark_sink.tables.maintenance import Compacted, MaintenanceError, TableFiles, target_of
from spark_sink.tables.staging import UNFINISHED_SECONDS
from spark_sink.tables.table_properties import layout_from

_DAY_MS = 86_400_000

# No file counts as too large, so that large files are not rewritten only to be split.
_NO_LIMIT = str(1 << 50)


class IcebergMaintenance:
    """Maintains the Iceberg tables in a catalog.

    Args:
        spark: None if files are only inspected.
    """

    def __init__(self, catalog: TableCatalog, traits: CatalogTraits, spark: SparkSession | None) -> None:
        self._traits = traits
        self._catalog = catalog
        self._spark = spark

    def files(self, name: str) -> TableFiles | None:
        with _maintaining(name):
            table = self._catalog.load(name)
            if table is None:
                return None
            files = [task.file for task in table.scan().plan_files()]
            sizes = [file.file_size_in_bytes for file in files]
            partitions = [str(file.partition) for file in files] if table.spec().fields else ()
            # The metadata contains everything, and lists a removed file as long as its snapshot exists.
            version, target = version_of(table.metadata), target_of(layout_from(table.metadata.properties))
            snapshots = [snapshot.timestamp_ms for snapshot in table.metadata.snapshots]
            created = min(snapshots) / 1000 if snapshots else None
            return TableFiles(version, sizes, 0, math.inf, (), partitions, created, target)

    def compact(self, name: str, target_bytes: int) -> Compacted:
        with _maintaining(name):
            rewrite = self._actions.rewriteDataFiles(self._table(name))
            rewrite.snapshotProperty(MARKERS_PROPERTY, json.dumps(markers_of(self._metadata(name))))
            options = {"target-file-size-bytes": str(target_bytes), "max-file-size-bytes": _NO_LIMIT}
            for option, value in {**options, "min-input-files": "2"}.items():
                rewrite.option(option, value)
            done = rewrite.execute()
            return Compacted(done.rewrittenDataFilesCount(), done.addedDataFilesCount())

    def checkpoint(self, name: str) -> None:
        """Do nothing, because the metadata contains everything."""

    def remember(self, name: str, days: int) -> None:
        """Do nothing, because the table tracks the files in all its snapshots."""

    def vacuum(self, name: str, days: float) -> int:
        """Expire old snapshots, and delete equally old files that failed commits left behind. The files of an active
        writer are newer, and no kept snapshot contains the deleted files. If the catalog does not allow snapshots to
        expire, delete nothing, because Iceberg would not remove any file.
        """
        with _maintaining(name):
            self._copy_markers(name)
            if not self._traits.can_expire:
                return 0
            limit = int(time.time() * 1000 - days * _DAY_MS)
            return self._expire(name, limit) + self._remove_unknown(name, limit)

    def purge(self, name: str) -> int:
        """Expire all snapshots but the newest, and delete the files that no snapshot needs."""
        with _maintaining(name):
            self._copy_markers(name)
            newest = self._metadata(name).current_snapshot()
            deleted = 0 if newest is None else self._expire_before(name, newest.timestamp_ms)
            return deleted + self._remove_unknown(name, int((time.time() - UNFINISHED_SECONDS) * 1000))

    def _copy_markers(self, name: str) -> None:
        """Copy the markers from the newest snapshot to a table property. Otherwise, another program could lose them by
        compacting the table and then expiring all older snapshots.
        """
        metadata = self._metadata(name)
        copy = copy_of_markers(metadata)
        if copy is not None and copy != metadata.properties.get(MARKERS_PROPERTY):
            self._table(name).updateProperties().set(MARKERS_PROPERTY, copy).commit()

    def _expire(self, name: str, limit: int) -> int:
        before = _first_to_keep(self._metadata(name), limit)
        return 0 if before is None else self._expire_before(name, before)

    def _expire_before(self, name: str, before: int) -> int:
        done = self._actions.expireSnapshots(self._table(name)).expireOlderThan(before).retainLast(1).execute()
        return int(done.deletedDataFilesCount() + done.deletedPositionDeleteFilesCount())

    def _remove_unknown(self, name: str, limit: int) -> int:
        table = self._table(name)
        removed = 0
        for part in ("data", "metadata"):
            folder = f"{table.location().rstrip('/')}/{part}"
            if not self._may_hold_tables(folder):
                found = self._actions.deleteOrphanFiles(table).location(folder).olderThan(limit).execute()
                removed += len(list(found.orphanFileLocations()))
        return removed

    def _may_hold_tables(self, folder: str) -> bool:
        """Return whether the folder of a table might contain other tables, whose names start with this table's name.

        The metadata of the table does not show which files belong to other tables. The names of partition folders
        contain an equals sign.
        """
        files, path = hadoop_folder(self._session, folder)
        entries = files.listStatus(path) if files.exists(path) else ()
        return any(entry.isDirectory() and "=" not in entry.getPath().getName() for entry in entries)

    @cached_property
    def _session(self) -> SparkSession:
        if self._spark is None:
            raise AssertionError("without Spark, files can only be listed")
        return sibling(self._spark, self._catalog.spark)

    @property
    def _actions(self) -> Any:
        java: Any = self._session._jvm
        return java.org.apache.iceberg.spark.actions.SparkActions.get(self._session._jsparkSession)

    def _table(self, name: str) -> Any:
        return java_table(self._session, self._catalog, name)

    def _metadata(self, name: str) -> TableMetadata:
        table = self._catalog.load(name)
        if table is None:
            raise MaintenanceError(f"{name}: it no longer exists")
        return table.metadata


def _first_to_keep(metadata: TableMetadata, limit: int) -> int | None:
    """Return the time (ms) of the oldest snapshot that must be kept. Return None if all of them must be.

    This is the snapshot that was the newest at the limit. If the newest snapshot with markers is older, return its time
    instead.
    """
    kept = list(ancestors(metadata))
    then = next((one.timestamp_ms for one in kept if one.timestamp_ms <= limit), None)
    marked = next((one for one in kept if one.summary is not None and one.summary.get(MARKERS_PROPERTY)), None)
    if then is None:
        return None
    return then if marked is None else min(then, marked.timestamp_ms)


@contextmanager
def _maintaining(name: str) -> Iterator[None]:
    """Convert errors from Spark, pyiceberg, the catalog and the storage to MaintenanceError."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise MaintenanceError(f"{name}: {cause(str(error)) or type(error).__name__}") from error
    except (OSError, FatalError) as error:
        raise MaintenanceError(f"{name}: {reason(error)}") from error
