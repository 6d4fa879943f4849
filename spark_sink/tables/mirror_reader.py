"""Read the stored rows of a mirror by column, in whatever table format."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.model.event import Key
from spark_sink.model.row import (
    NOTHING,
    Memory,
    RowMark,
)
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.changes import Marker, TableChanges
from spark_sink.tables.deleted_rows import REMEMBERED, DeletedRows
from spark_sink.tables.meta_columns import (
    COMMIT_TS,
    DELETED_AT,
    MARK_COLUMNS,
    POS,
    SCOPE,
    STATE,
)
from spark_sink.tables.reach import Reach, range_of, reach_of

_MEMORY = msgspec.json.Decoder(Memory)


class MirrorReader:
    """The reading half of a mirror. Each format implements `floors` and `_scan_files`. The latter returns columns of
    the rows in the table. The other methods also find the deleted rows that are remembered next to the table.
    """

    shape: TableShape
    deleted_rows: DeletedRows

    @property
    def floors(self) -> Mapping[str, str]:
        raise NotImplementedError

    def _scan_files(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        """Return these columns, which the table has, for all of its rows within `reach`. Other rows may be included."""
        raise NotImplementedError

    def _scan(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        """Return columns like `_scan_files`. If the table lacks a column of the sink, this column is NULL."""
        lacking = {column.name: arrow_type(column.type) for column in self.shape.lacks}
        for batch in self._scan_files([name for name in names if name not in lacking], reach):
            columns = [
                pa.nulls(batch.num_rows, lacking[name]) if name in lacking else batch.column(name) for name in names
            ]
            yield pa.RecordBatch.from_arrays(columns, list(names)) if lacking else batch

    def _find(self, names: Sequence[str], reach: Reach, wanted: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        """Return columns like `_scan`, for the rows whose key columns each have one of the wanted values."""
        for batch in self._scan(names, reach):
            for name, values in wanted.items():
                batch = batch.filter(pc.is_in(batch.column(name), values))
            yield batch

    def write(self, changes: TableChanges, *markers: Marker) -> None:
        raise NotImplementedError

    def _remove_deleted_rows(self, marker: Marker) -> None:
        """Remove the deleted rows from the table."""
        raise NotImplementedError

    def keep_deleted_rows(self, *, apart: bool) -> None:
        if apart and not self.deleted_rows.are_apart:
            self._move_out()
        elif not apart and self.deleted_rows.are_apart:
            self._move_back()

    def forget(self, before: int) -> None:
        self.deleted_rows.forget(before)

    def _move_out(self) -> None:
        names = [*self.shape.key, *REMEMBERED]
        found = [batch.filter(pc.is_valid(batch.column(DELETED_AT))) for batch in self._scan(names)]
        deleted = pa.Table.from_batches([batch for batch in found if batch.num_rows] or found[:1]) if found else None
        if deleted is None or not deleted.num_rows:
            self.deleted_rows.begin(apart=True)  # named by the next commit
            return
        for marker in self.deleted_rows.remember(deleted, self.floors):
            self._remove_deleted_rows(marker)

    def _move_back(self) -> None:
        deleted = self.deleted_rows.find([*self.shape.types, *REMEMBERED], self.floors)
        columns = (map(pa.Array.to_pylist, batch.columns) for batch in self._scan(self.shape.key))
        present = {key for keys in columns for key in zip(*keys, strict=True)}
        keys = zip(*(deleted.column(name).to_pylist() for name in self.shape.key), strict=True)
        deleted = deleted.filter(pa.array([key not in present for key in keys], pa.bool_()))
        self.deleted_rows.begin(apart=False)
        if deleted.num_rows:
            self.write(TableChanges(deleted, {}, inserts_only=True, at=time.time_ns() // 1000))

    def _remembered(self, rows: pa.Table) -> tuple[bool, tuple[Marker, ...]]:
        """If deleted rows are in separate files, remember the deleted rows among those written. Return whether there
        are deleted rows, and the markers for the commit that removes them from the table.
        """
        are_apart = self.deleted_rows.are_apart or DELETED_AT in self._lacking
        times = rows.column(DELETED_AT)
        has_any = are_apart and times.null_count < len(times)
        deleted = rows.filter(pc.is_valid(times)) if has_any else rows.slice(0, 0)
        return bool(deleted.num_rows), self.deleted_rows.remember(deleted, self.floors)

    def marks(self, keys: Collection[Key]) -> dict[Key, RowMark]:
        found = self._stored(keys, (*MARK_COLUMNS, COMMIT_TS))
        return {
            key: RowMark(str(scope), str(pos), bool(incomplete), bool(deleted), _memory(state), committed)
            for key, (scope, pos, state, incomplete, deleted, committed) in found
        }

    def mark_columns(self, keys: pa.Table) -> pa.Table:
        names = [*self.shape.key, *MARK_COLUMNS]
        wanted = {name: pc.unique(keys.column(name)) for name in self.shape.key}
        reach = {name: range_of(values) for name, values in wanted.items()}
        found = list(self._find(names, reach, wanted))
        schema = pa.schema([(n, arrow_type({**self.shape.types, **MARK_COLUMNS}[n])) for n in names])
        present = pa.Table.from_batches(found, None if found else schema)
        deleted = self.deleted_rows.find(names, self.floors, reach)
        for name, values in wanted.items():
            deleted = deleted.filter(pc.is_in(deleted.column(name), values))
        if not deleted.num_rows:
            return present
        return self.deleted_rows.first_of_each_key(pa.concat_tables([present.cast(schema), deleted]))

    def rows(self, keys: Collection[Key]) -> dict[Key, dict[str, object]]:
        names = tuple(self.shape.types)
        return {key: dict(zip(names, values, strict=True)) for key, values in self._stored(keys, names)}

    def max_positions(self) -> dict[str, str]:
        reached: dict[str, str] = {}
        columns = [SCOPE, POS, STATE]
        for batch in chain(self.deleted_rows.find(columns, self.floors).to_batches(), self._scan(columns)):
            greatest = pa.table(batch).group_by(SCOPE).aggregate([(POS, "max")])
            states = {state for state in batch.column(STATE).to_pylist() if state is not None}
            seen = [pair for state in states for pair in _memory(state).seen.items()]
            for scope, pos in [*zip(*(column.to_pylist() for column in greatest.columns), strict=True), *seen]:
                reached[scope] = max(pos, reached.get(scope, ""))
        return reached

    def written(self) -> dict[Key, tuple[str, str]]:
        columns = [*self.shape.key, SCOPE, POS]
        found: dict[Key, tuple[str, str]] = {}
        for live in self._live(columns):
            for *key, scope, pos in zip(*(live.column(name).to_pylist() for name in columns), strict=True):
                found[tuple(key)] = scope, pos
        return found

    def live_keys(self) -> Counter[Key]:
        found: Counter[Key] = Counter()
        for live in self._live(self.shape.key):
            found.update(zip(*(live.column(name).to_pylist() for name in self.shape.key), strict=True))
        return found

    def rows_spanning_floor(self, scope: str) -> set[Key]:
        floor = self.floors[scope]
        found: set[Key] = set()
        for batch in self._scan([*self.shape.key, SCOPE, POS, STATE]):
            beyond = pc.and_(pc.equal(batch.column(SCOPE), scope), pc.greater(batch.column(POS), floor))
            near = batch.filter(pc.and_(beyond, pc.is_valid(batch.column(STATE))))
            keys = zip(*(near.column(name).to_pylist() for name in self.shape.key), strict=True)
            for key, state in zip(keys, near.column(STATE).to_pylist(), strict=True):
                reset = _memory(state).reset
                if reset is not None and reset < floor:
                    found.add(key)
        return found

    def _live(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Return columns of the rows that are not deleted."""
        for batch in self._scan([*names, DELETED_AT]):
            yield batch.filter(pc.is_null(batch.column(DELETED_AT)))

    @property
    def _lacking(self) -> set[str]:
        """Return the sink's columns that are missing from the table."""
        return {column.name for column in self.shape.lacks}

    def _stored(self, keys: Collection[Key], names: Sequence[str]) -> Iterator[tuple[Key, tuple[Any, ...]]]:
        """Return these columns for all stored rows. If a deleted row has the same key as a row in the table, the row in
        the table comes later.
        """
        if not keys:
            return
        wanted = keys if isinstance(keys, set) else set(keys)
        columns = (*self.shape.key, *(name for name in names if name not in self.shape.key))
        values = {
            name: pa.array({key[i] for key in wanted}, arrow_type(self.shape.types[name]))
            for i, name in enumerate(self.shape.key)
        }
        reach = reach_of(wanted, self.shape.key)
        deleted = self.deleted_rows.find(columns, self.floors, reach).to_batches()
        for batch in chain(deleted, self._scan(columns, reach)):
            for name in self.shape.key:
                batch = batch.filter(pc.is_in(batch.column(name), values[name]))
            stored = {name: _told(name, batch.column(name)).to_pylist() for name in columns}
            found = zip(*(stored[name] for name in self.shape.key), strict=True)
            rest = zip(*(stored[name] for name in names), strict=True)
            yield from ((key, row) for key, row in zip(found, rest, strict=True) if key in wanted)


def without_deleted(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.is_null(rows.column(DELETED_AT)))


def _memory(state: object) -> Memory:
    return _MEMORY.decode(str(state)) if state else NOTHING


def _told(name: str, column: pa.Array) -> pa.Array:
    """Return a column in the form that the fold needs. Because datetime cannot represent every time, delete times
    become a flag, and commit times are in microseconds.
    """
    if name == COMMIT_TS:
        return column.cast(pa.int64())
    return pc.is_valid(column) if name == DELETED_AT else column
