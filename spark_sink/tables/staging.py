"""Let a worker write tables through Spark. The worker stages changes as files, and orders Spark to apply them.

A staged file stays in the warehouse until the batch is done. The file is named after its content. If the task is
repeated or the driver restarts, it therefore stages the same file. No file changes while the driver reads it.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler

from spark_sink.schema.table_naming import RESERVED
from spark_sink.tables.changes import Deletion, Marker, TableChanges
from spark_sink.tables.deleted_rows import DeletedRows
from spark_sink.tables.meta_columns import (
    DELETED_AT,
    META_COLUMNS,
    POS,
    SCOPE,
    UPDATED_AT,
)
from spark_sink.tables.mirror_reader import MirrorReader
from spark_sink.tables.reach import Bounds, Reach, Values, bounds_of, reach_of
from spark_sink.tables.spark_operations import GONE, WRITTEN, Clear, Merge, Order, RaiseFloors, RemoveDeleted, Retire

UNFINISHED_SECONDS = 3600.0
"""The time for which an unreferenced file is kept, because its writer may not have committed it yet."""


@dataclass(frozen=True)
class Staging:
    """The folder for one sink's staged files.

    Args:
        app: the pipeline and the checkpoint, so that two sinks never share a folder.
    """

    warehouse: str
    app: str

    @property
    def folder(self) -> str:
        """The folder's path below the warehouse."""
        return f"{RESERVED}/staging/{hashlib.sha256(self.app.encode()).hexdigest()[:16]}"

    def put(self, table: str, rows: pa.Table) -> str:
        """Stage rows, and return the path of the file below the folder. The file is either complete or does not
        exist.
        """
        with tempfile.TemporaryDirectory() as scratch:
            written = Path(scratch, "rows.parquet")
            pq.write_table(rows, written)
            with written.open("rb") as content:
                path = f"{table}/{hashlib.file_digest(content, 'sha256').hexdigest()[:32]}.parquet"
            warehouse = fs.PyFileSystem(DeltaStorageHandler(self.warehouse))
            fs.copy_files(str(written), f"{self.folder}/{path}", destination_filesystem=warehouse)
        return path

    def size(self, path: str) -> int:
        """Return the size of a staged file in bytes, by its path below the folder."""
        warehouse = fs.PyFileSystem(DeltaStorageHandler(self.warehouse))
        return int(warehouse.get_file_info(f"{self.folder}/{path}").size or 0)

    def read(self, path: str) -> pa.Table:
        """Return the rows of a staged file by its path below the folder."""
        warehouse = fs.PyFileSystem(DeltaStorageHandler(self.warehouse))
        return pq.read_table(f"{self.folder}/{path}", filesystem=warehouse)

    def discard_unfinished(self, table: str) -> int:
        """Delete the files that any sink has staged for a table and never committed. Return the number of files."""
        warehouse = fs.PyFileSystem(DeltaStorageHandler(self.warehouse))
        limit, deleted = time.time() - UNFINISHED_SECONDS, 0
        for folder in warehouse.get_file_info(fs.FileSelector(f"{RESERVED}/staging", allow_not_found=True)):
            for info in warehouse.get_file_info(fs.FileSelector(f"{folder.path}/{table}", allow_not_found=True)):
                if info.mtime.timestamp() < limit:
                    warehouse.delete_file(info.path)
                    deleted += 1
        return deleted


class OrderingMirror(MirrorReader):
    """The part of a mirror, in any format, that writes it through Spark. Each change is written as an order.

    Args:
        name: the table name.
        version: the version of the table that is read.
    """

    orders: Sequence[Order]

    def __init__(self, name: str, version: int, staging: Staging, deleted_rows: DeletedRows) -> None:
        self._ordered: list[Order] = []
        self.orders = self._ordered
        self._name = name
        self._version = version
        self._staging = staging
        self.deleted_rows = deleted_rows
        self._raised: Mapping[str, str] | None = None

    @property
    def floors(self) -> Mapping[str, str]:
        return self._stored_floors() if self._raised is None else self._raised

    def _stored_floors(self) -> Mapping[str, str]:
        raise NotImplementedError

    def applied(self, app: str) -> int | None:
        raise NotImplementedError

    def write(self, changes: TableChanges, *markers: Marker) -> None:
        lacking = self._lacking
        deletes, remembered = self._remembered(changes.rows)
        markers += remembered
        staged = rows = changes.rows.drop_columns([name for name in changes.rows.column_names if name in lacking])
        for name, flags in changes.kept.items():
            staged = staged.append_column(WRITTEN + name, flags)
        if deletes:
            gone = pc.is_valid(changes.rows.column(DELETED_AT))
            # If none of the rows is stored, none has to be removed.
            deletes = not changes.inserts_only
            staged = staged.append_column(GONE, gone) if deletes else staged.filter(pc.invert(gone))
        types = {**self.shape.types, **META_COLUMNS}
        keys = set(zip(*(staged.column(name).to_pylist() for name in self.shape.key), strict=True))
        reach = reach_of(keys, self.shape.key) if keys else {}
        self._ordered.append(
            Merge(
                path=self._staging.put(self._name, staged),
                columns={name: types[name] for name in rows.column_names},
                kept=tuple(changes.kept),
                key=self.shape.key,
                bounds=dict(self._bounds(reach)),
                values=self._values(reach),
                inserts_only=changes.inserts_only,
                deletes=deletes,
                version=self._version,
                marker=markers[0] if markers else None,
                others=tuple(filter(self._lacks, markers[1:])),
                at=None if UPDATED_AT in lacking else changes.at,
            )
        )

    def _lacks(self, marker: Marker) -> bool:
        """Return whether the table lacks a marker. Delta Lake allows no version below zero. Only markers of days before
        1970 would have such a version, and no tombstones are that old.
        """
        done = self.applied(marker.app)
        return marker.version > (-1 if done is None else done)

    def raise_floors(self, floors: Mapping[str, str]) -> None:
        self._raised = dict(floors)
        self._ordered.append(RaiseFloors(dict(floors)))

    def clear(self, marker: Marker) -> bool:
        under = any(_lie_under(batch, self.floors) for batch in self._scan([SCOPE, POS]))
        if under:
            self._ordered.append(Clear(dict(self.floors), marker))
        return under

    def soft_delete_below_floor(self, deletion: Deletion, marker: Marker) -> bool:
        met = any(
            _lie_under(batch.filter(pc.is_null(batch.column(DELETED_AT))), self.floors)
            for batch in self._scan([SCOPE, POS, DELETED_AT])
        )
        if met:
            self._ordered.append(Retire(dict(self.floors), deletion, marker))
        return met

    def _remove_deleted_rows(self, marker: Marker) -> None:
        self._ordered.append(RemoveDeleted(marker))

    def _bounds(self, reach: Reach) -> Bounds:
        return bounds_of(reach, self.shape.types)

    def _values(self, _reach: Reach) -> Values:
        """Return values with which Spark can skip files, in addition to the bounds, if the format uses them."""
        return {}


def _lie_under(batch: pa.RecordBatch, floors: Mapping[str, str]) -> bool:
    """Return whether the position of any row is at or below the floor of its scope."""
    scopes, positions = batch.column(SCOPE), batch.column(POS)
    under = (pc.and_(pc.equal(scopes, scope), pc.less_equal(positions, floor)) for scope, floor in floors.items())
    return any(pc.any(mask).as_py() for mask in under)
