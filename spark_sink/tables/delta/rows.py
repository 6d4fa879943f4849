"""The rows of a Delta table that deltalake reads and writes, in any mode that replaces rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.files import DataFiles, near, whole
from spark_sink.tables.delta.open_table import DeltaOpened, commit, committing, hooks
from spark_sink.tables.delta.upsert import Upsert
from spark_sink.tables.reach import Reach

# A table is read and written as a whole up to this total size of its files, in bytes, and up to this number of rows.
# For such a table, planning a `MERGE` costs more than everything else together.
SMALL, FEW_ROWS = 1_000_000, 20_000

# The size of the rows in memory, in bytes, up to which this also applies. Repeated texts take far less space in files.
IN_MEMORY = 32_000_000

# The number of rows that are read before their size is checked.
_ROWS_AT_A_TIME = 256


class DeltaRows(DeltaOpened):
    """An open Delta table with rows that later rows replace."""

    # The rows of a small table, and None for any other table, with the table version.
    _read: tuple[int, pa.Table | None] | None = None

    def __init__(self, table: DeltaTable, shape: TableShape, choice: Choice, files: DataFiles) -> None:
        super().__init__(table, shape, choice)
        self._files = files

    def _scan(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        whole = self._whole()
        if whole is not None:
            yield from whole.select(names).to_batches()
        else:
            files = self._table.to_pyarrow_dataset() if reach is None else near(self._table, self.shape, reach)
            yield from files.to_batches(columns=list(names))

    def _append(self, rows: pa.Table, markers: Sequence[Marker]) -> None:
        # Use the schema mode `merge`, so that columns that someone else added are NULL in new rows.
        with committing(self._table, *markers):
            write_deltalake(
                self._table,
                rows,
                mode="append",
                schema_mode="merge",
                commit_properties=commit(*markers),
                post_commithook_properties=hooks(self._table),
            )

    def _upsert(self, upsert: Upsert, markers: Sequence[Marker]) -> None:
        """Write the rows. If this changes nothing, there is no commit.

        Raises:
            Overtaken: another program wrote the table at the same time.
        """
        with committing(self._table, *markers):
            fits = upsert.can_apply and upsert.rows.nbytes <= IN_MEMORY
            whole = self._whole() if fits else None
            if whole is None:
                upsert.merge(self._table, markers)
                return
            rows = upsert.applied_to(whole)
            if rows is not None:
                # Any other commit is a conflict, because it can have added rows that this commit would not replace.
                once, then = commit(*markers, retries=0), hooks(self._table)
                write_deltalake(
                    self._table, rows, mode="overwrite", commit_properties=once, post_commithook_properties=then
                )

    def _whole(self) -> pa.Table | None:
        """Return all rows if the table is small, or None. Read them once per version."""
        if self._read is None or self._read[0] != self.version:
            self._read = self.version, self._read_whole() if self._has_small_files() else None
        return self._read[1]

    def _has_small_files(self) -> bool:
        """Return whether the table can be written as a whole, and has small files. In a change data feed, such a write
        would look like a change to every row.
        """
        if self._table.metadata().configuration.get("delta.enableChangeDataFeed") == "true":
            return False
        rows = self._files.rows
        return rows is not None and rows <= FEW_ROWS and self._files.bytes <= SMALL

    def _read_whole(self) -> pa.Table | None:
        """Return all rows, or None if they are too large in memory."""
        schema = pa.schema(self._table.schema().to_arrow())
        batches, size = [], 0
        for batch in self._batches(schema):
            size += batch.nbytes
            if size > IN_MEMORY:
                return None
            batches.append(batch)
        return pa.Table.from_batches(batches, schema)

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if self._table.metadata().partition_columns:  # their values are in the log
            files = self._table.to_pyarrow_dataset()
            yield from files.to_batches(batch_size=_ROWS_AT_A_TIME, batch_readahead=0, use_threads=False)
        else:
            yield from whole(self._table, self._files.sizes, schema, _ROWS_AT_A_TIME)
