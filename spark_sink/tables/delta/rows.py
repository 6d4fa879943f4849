"""The rows of a Delta table that deltalake reads and writes, in any mode that replaces rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from deltalake import write_deltalake

from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.files import near
from spark_sink.tables.delta.open_table import DeltaOpened, commit, committing, size_of
from spark_sink.tables.delta.upsert import Upsert
from spark_sink.tables.reach import Reach

# The total size of a table's files, in bytes, up to which the table is read and written as a whole. For such a table,
# planning a `MERGE` costs more than everything else together.
SMALL = 1_000_000


class DeltaRows(DeltaOpened):
    """An open Delta table with rows that later rows replace."""

    # The rows of a small table, with the table version.
    _read: tuple[int, pa.Table] | None = None

    def _scan(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        if self._is_small():
            yield from self._whole().select(names).to_batches()
        else:
            files = self._table.to_pyarrow_dataset() if reach is None else near(self._table, self.shape, reach)
            yield from files.to_batches(columns=list(names))

    def _append(self, rows: pa.Table, markers: Sequence[Marker]) -> None:
        # Use the schema mode `merge`, so that columns that someone else added are NULL in new rows.
        with committing(self._table, *markers):
            write_deltalake(self._table, rows, mode="append", schema_mode="merge", commit_properties=commit(*markers))

    def _upsert(self, upsert: Upsert, markers: Sequence[Marker]) -> None:
        """Write the rows. If this changes nothing, there is no commit.

        Raises:
            Overtaken: another program wrote the table at the same time.
        """
        with committing(self._table, *markers):
            if not self._is_small() or not upsert.can_apply:
                upsert.merge(self._table, markers)
                return
            rows = upsert.applied_to(self._whole())
            if rows is not None:
                # Any other commit is a conflict, because it can have added rows that this commit would not replace.
                once = commit(*markers, retries=0)
                write_deltalake(self._table, rows, mode="overwrite", commit_properties=once)

    def _is_small(self) -> bool:
        """Return whether the table is read and written as a whole. In a change data feed, this would look like a change
        of every row.
        """
        feeds = self._table.metadata().configuration.get("delta.enableChangeDataFeed") == "true"
        return not feeds and size_of(self._table) <= SMALL

    def _whole(self) -> pa.Table:
        if self._read is None or self._read[0] != self.version:
            self._read = self.version, self._table.to_pyarrow_dataset().to_table(use_threads=False)
        return self._read[1]
