"""Erase rows of Delta tables, with everything that only earlier versions need."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyspark.sql import SparkSession

from spark_sink.errors import FatalError
from spark_sink.events.erased_keys import RowKey
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.delta.open_table import REMEMBERED, REMEMBERED_PROPERTY
from spark_sink.tables.delta.spark_ddl import quoted
from spark_sink.tables.delta.tables import features_of
from spark_sink.tables.erasure import delete_rows
from spark_sink.tables.locations import location
from spark_sink.tables.spark_sql import listed
from spark_sink.tables.staging import UNFINISHED_SECONDS

_LOG = "_delta_log"

# The names of the log's files for a version:
# https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries
_OF_VERSION = re.compile(r"(\d{20})\.(.+)")

# The actions for files.
_ACTIONS = ("add", "remove", "cdc")

_FORGET = {REMEMBERED_PROPERTY: "interval 0 seconds"}


class DeltaErasure:
    """Erases rows of the Delta tables in a warehouse, through Spark."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark
        self._warehouse = warehouse

    def erase(self, name: str, shape: TableShape, key: RowKey, properties: Mapping[str, str]) -> int:
        path = location(self._warehouse, name)
        if properties:
            self._set(path, properties)
        rows = self._spark.read.format("delta").load(path)
        count = delete_rows(self._spark, quoted(path), rows, shape, key)
        if "deletionVectors" in features_of(DeltaTable(path)):
            # A deletion vector leaves the rows in their file.
            self._spark.sql(f"REORG TABLE {quoted(path)} APPLY (PURGE)")
        return count

    def purge(self, name: str) -> int:
        path = location(self._warehouse, name)
        java: Any = self._spark._jvm
        log = java.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, path)
        before = {**REMEMBERED, **DeltaTable(path).metadata().configuration}[REMEMBERED_PROPERTY]
        # Otherwise, the checkpoint would list removed files, and the names of their partitions can contain values.
        self._set(path, _FORGET)
        try:
            return _purge(path, log.checkpoint)
        finally:
            # An earlier attempt may have been interrupted here.
            self._set(path, REMEMBERED if before == _FORGET[REMEMBERED_PROPERTY] else {REMEMBERED_PROPERTY: before})

    def _set(self, path: str, properties: Mapping[str, str]) -> None:
        self._spark.sql(f"ALTER TABLE {quoted(path)} SET TBLPROPERTIES ({listed(properties)})")


def purge_own(warehouse: str, name: str) -> int:
    """Purge one of the sink's own tables, through deltalake. Other pipelines write it at the same time."""
    path = location(warehouse, name)
    return _purge(path, DeltaTable(path).create_checkpoint)


def _purge(path: str, checkpoint: Callable[[], object]) -> int:
    """Delete the files and the log entries that only earlier versions of a table need."""
    storage = fs.PyFileSystem(DeltaStorageHandler(path))
    table = DeltaTable(path)
    deleted = _delete_files(table, storage)
    checkpoint()
    log = _log(storage)
    if max((version for version, kind in log if kind.startswith("checkpoint.")), default=-1) < table.version():
        raise FatalError("no checkpoint of its log was written, so the log's earlier entries were not deleted")
    for version, kind in log:
        if version < table.version():
            storage.delete_file(f"{_LOG}/{version:020}.{kind}")
    return deleted


def _delete_files(table: DeltaTable, storage: fs.FileSystem) -> int:
    present = {info.path: info.mtime.timestamp() for info in _files(storage, "")}
    in_use = set(map(unquote, pa.table(table.get_add_actions()).column("path").to_pylist()))
    if not in_use <= present.keys():
        raise FatalError("its log names files outside of its folder, so its earlier versions were not deleted")
    # Another program may have committed other files since the table was opened.
    known = set(map(unquote, _logged_paths(storage, table.version())))
    limit = time.time() - UNFINISHED_SECONDS
    unneeded = [path for path, at in present.items() if path not in in_use and (path in known or at < limit)]
    for path in unneeded:
        storage.delete_file(path)
    return len(unneeded)


def _logged_paths(storage: fs.FileSystem, last: int) -> Iterator[str]:
    """Return the encoded path of every file that the log adds or removes up to a version."""
    for version, kind in _log(storage):
        if version > last:
            continue
        with storage.open_input_file(f"{_LOG}/{version:020}.{kind}") as file:
            if kind == "json":
                entries = map(json.loads, file.read().splitlines())
            elif kind.endswith("parquet"):
                saved = pq.ParquetFile(file)
                # The statistics can have dates that Python lacks.
                paths = [f"{one}.path" for one in _ACTIONS if one in saved.schema_arrow.names]
                entries = iter(saved.read(paths).to_pylist())
            else:
                continue
            for entry in entries:
                yield from (entry[one]["path"] for one in _ACTIONS if entry.get(one))


def _log(storage: fs.FileSystem) -> list[tuple[int, str]]:
    """Return the log's files, as version and kind."""
    names = (_OF_VERSION.fullmatch(info.base_name) for info in storage.get_file_info(fs.FileSelector(_LOG)))
    return [(int(name[1]), name[2]) for name in names if name is not None]


def _files(storage: fs.FileSystem, folder: str) -> Iterator[fs.FileInfo]:
    """Return the Parquet files in a table's folder, except those of other tables in subfolders."""
    found = storage.get_file_info(fs.FileSelector(folder))
    if folder and any(info.base_name in (_LOG, "metadata") for info in found):
        return
    for info in found:
        if info.type is fs.FileType.Directory and info.base_name != _LOG:
            yield from _files(storage, info.path)
        elif info.extension == "parquet":
            yield info
