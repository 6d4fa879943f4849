"""A Delta mirror in a worker, which reads stored rows and writes changes through deltalake. Spark and deltalake never
change the table at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.changes import Deletion, Marker, TableChanges
from spark_sink.tables.deleted_rows import DeletedRows
from spark_sink.tables.delta.files import near
from spark_sink.tables.delta.open_table import (
    DeltaOpened,
    commit,
    committing,
    floors_of,
    literal,
)
from spark_sink.tables.meta_columns import (
    COMMIT_TS,
    DELETED_AT,
    INCOMPLETE,
    POS,
    SCOPE,
    STATE,
    UPDATED_AT,
)
from spark_sink.tables.mirror_reader import MirrorReader, without_deleted
from spark_sink.tables.reach import Reach
from spark_sink.tables.spark_operations import WRITTEN, merged
from spark_sink.tables.table_properties import FLOORS_PROPERTY


class DeltaMirror(MirrorReader, DeltaOpened):
    """A table that mirrors one source table."""

    def __init__(self, table: DeltaTable, shape: TableShape, choice: Choice, deleted_rows: DeletedRows) -> None:
        super().__init__(table, shape, choice)
        self.deleted_rows = deleted_rows

    @property
    def floors(self) -> Mapping[str, str]:
        return floors_of(self._table)

    def write(self, changes: TableChanges, *markers: Marker) -> None:
        source, deleted, remembered = self._writable(changes), *self._remembered(changes.rows)
        markers += remembered
        if changes.inserts_only:
            self._append(without_deleted(source) if deleted else source, markers)
            return
        names = source.column_names
        for name, written in changes.kept.items():
            source = source.append_column(WRITTEN + name, written)
        same_key = " AND ".join(f"t.`{name}` = s.`{name}`" for name in self.shape.key)
        written = {f"`{name}`": f"s.`{name}`" for name in names}
        updates = {f"`{name}`": merged(name, changes.kept) for name in names}
        merge = self._table.merge(
            source,
            same_key,
            source_alias="s",
            target_alias="t",
            streamed_exec=False,
            commit_properties=commit(*markers),
        )
        present = None
        if deleted:
            merge, present = merge.when_matched_delete(f"s.`{DELETED_AT}` IS NOT NULL"), f"s.`{DELETED_AT}` IS NULL"
        before = self._table.version()
        # The conditions contain no positions, because the fold has already compared the positions, and the commit fails
        # if another writer has changed the table.
        with committing(self._table, *markers):
            merge.when_matched_update(updates).when_not_matched_insert(written, present).execute()
        if self._table.version() == before:  # none of the deleted rows was in the table
            self._append(source.select(names).slice(0, 0), markers)

    def _append(self, rows: pa.Table, markers: Sequence[Marker]) -> None:
        # Use the schema mode `merge`, so that columns that someone else added are NULL in new rows.
        with committing(self._table, *markers):
            write_deltalake(self._table, rows, mode="append", schema_mode="merge", commit_properties=commit(*markers))

    def _remove_deleted_rows(self, marker: Marker) -> None:
        with committing(self._table, marker):
            self._table.delete(f"`{DELETED_AT}` IS NOT NULL", commit_properties=commit(marker))

    def _writable(self, changes: TableChanges) -> pa.Table:
        rows, lacking = changes.rows, self._lacking
        if changes.at is not None and UPDATED_AT not in lacking:
            times = pa.repeat(pa.scalar(changes.at, pa.timestamp("us", "UTC")), rows.num_rows)
            rows = rows.append_column(UPDATED_AT, times)
        return rows.drop_columns([name for name in rows.column_names if name in lacking])

    def raise_floors(self, floors: Mapping[str, str]) -> None:
        stored = {FLOORS_PROPERTY: json.dumps(floors, sort_keys=True)}
        with committing(self._table):
            self._table.alter.set_table_properties(stored, raise_if_not_exists=False)

    def clear(self, marker: Marker) -> bool:
        before = self._table.version()
        with committing(self._table, marker):
            self._table.delete(self._under_floors(), commit_properties=commit(marker))
        return self._table.version() > before

    def soft_delete_below_floor(self, deletion: Deletion, marker: Marker) -> bool:
        times = zip((DELETED_AT, COMMIT_TS, UPDATED_AT), deletion, strict=True)
        updates = {f"`{name}`": _instant(time) for name, time in times}
        before = self._table.version()
        with committing(self._table, marker):
            self._table.update(
                updates=updates | {f"`{STATE}`": "NULL", f"`{INCOMPLETE}`": "false"},
                predicate=f"`{DELETED_AT}` IS NULL AND ({self._under_floors()})",
                commit_properties=commit(marker),
            )
        return self._table.version() > before

    def _under_floors(self) -> str:
        under = (f"(`{SCOPE}` = {literal(s)} AND `{POS}` <= {literal(p)})" for s, p in self.floors.items())
        return " OR ".join(under)

    def _scan(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        files = self._table.to_pyarrow_dataset() if reach is None else near(self._table, self.shape, reach)
        yield from files.to_batches(columns=list(names))


def _instant(time: int | None) -> str:
    return "NULL" if time is None else f"arrow_cast({time}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
