"""A Delta mirror in a worker, which reads stored rows and writes changes through deltalake. Spark and deltalake never
change the table at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.changes import Deletion, Marker, TableChanges
from spark_sink.tables.delta.files import DataFiles
from spark_sink.tables.delta.open_table import (
    commit,
    committing,
    floors_of,
    literal,
)
from spark_sink.tables.delta.rows import DeltaRows
from spark_sink.tables.delta.upsert import Upsert
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
from spark_sink.tables.table_properties import FLOORS_PROPERTY


class DeltaMirror(MirrorReader, DeltaRows):
    """A table that mirrors one source table."""

    def __init__(
        self, table: DeltaTable, shape: TableShape, choice: Choice, files: DataFiles, warehouse: str, name: str
    ) -> None:
        super().__init__(table, shape, choice, files)
        self.deleted_rows = self.deleted_rows_in(warehouse, name)

    @property
    def floors(self) -> Mapping[str, str]:
        return floors_of(self._table)

    def write(self, changes: TableChanges, *markers: Marker) -> None:
        deleted, remembered = self._remembered(changes.rows)
        # Each commit repeats the marker of deleted rows, because a marker is looked up in the newest commit first.
        markers += remembered or self.deleted_rows.markers
        if changes.inserts_only:
            rows = without_deleted(changes.rows) if deleted else changes.rows
            self._append(self._writable(rows, changes.at), markers)
            return
        source, before = self._writable(changes.rows, changes.at), self._table.version()
        removes = pc.is_valid(changes.rows.column(DELETED_AT)) if deleted else None
        self._upsert(Upsert(source, self.shape.key, changes.kept, removes), markers)
        if self._table.version() == before:  # none of the deleted rows was in the table
            self._append(source.slice(0, 0), markers)

    def _scan_files(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        return DeltaRows._scan(self, names, reach)

    def _remove_deleted_rows(self, marker: Marker) -> None:
        with committing(self._table, marker):
            self._table.delete(f"`{DELETED_AT}` IS NOT NULL", commit_properties=commit(marker))

    def _writable(self, rows: pa.Table, at: int | None) -> pa.Table:
        lacking = self._lacking
        if at is not None and UPDATED_AT not in lacking:
            times = pa.repeat(pa.scalar(at, pa.timestamp("us", "UTC")), rows.num_rows)
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


def _instant(time: int | None) -> str:
    return "NULL" if time is None else f"arrow_cast({time}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
