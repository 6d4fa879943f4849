"""A Delta table in a worker, through deltalake: read what is stored, write changes. Never while Spark changes it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import write_deltalake

from spark_sink.model.event import Key
from spark_sink.model.row import (
    NOTHING,
    Memory,
    RowMark,
)
from spark_sink.schema.column_types import arrow_type, has_statistics
from spark_sink.tables.delta.open_table import (
    FLOORS_PROPERTY,
    DeltaOpened,
    commit,
    committing,
    literal,
)
from spark_sink.tables.meta_columns import (
    COMMIT_TS,
    DELETED_AT,
    INCOMPLETE,
    MARK_COLUMNS,
    POS,
    SCOPE,
    STATE,
    UPDATED_AT,
)
from spark_sink.tables.protocols import (
    Deletion,
    Marker,
    TableChanges,
)
from spark_sink.tables.spark_operations import WRITTEN, merged

_MEMORY = msgspec.json.Decoder(Memory)

# The least and the greatest value of each key column.
Reach = Mapping[str, tuple[Any, Any]]


class DeltaMirror(DeltaOpened):
    """One table that mirrors a source table."""

    @property
    def floors(self) -> Mapping[str, str]:
        stored = self._table.metadata().configuration.get(FLOORS_PROPERTY)
        return json.loads(stored) if stored else {}

    def marks(self, keys: Collection[Key]) -> dict[Key, RowMark]:
        found = self._stored(keys, (*MARK_COLUMNS, *({COMMIT_TS} - self._lacking)))
        return {
            key: RowMark(str(scope), str(pos), bool(incomplete), bool(deleted), _memory(state), *committed)
            for key, (scope, pos, state, incomplete, deleted, *committed) in found
        }

    def mark_columns(self, keys: pa.Table) -> pa.Table:
        names = [*self.shape.key, *MARK_COLUMNS]
        reach = {name: tuple(pc.min_max(keys.column(name)).as_py().values()) for name in self.shape.key}
        wanted = {name: pc.unique(keys.column(name)) for name in self.shape.key}
        found = []
        for batch in self._scan(names, reach):
            for name, values in wanted.items():
                batch = batch.filter(pc.is_in(batch.column(name), values))
            found.append(batch)
        schema = pa.schema([(n, arrow_type({**self.shape.types, **MARK_COLUMNS}[n])) for n in names])
        return pa.Table.from_batches(found, None if found else schema)

    def rows(self, keys: Collection[Key]) -> dict[Key, dict[str, object]]:
        names = tuple(self.shape.types)
        return {key: dict(zip(names, values, strict=True)) for key, values in self._stored(keys, names)}

    def max_positions(self) -> dict[str, str]:
        reached: dict[str, str] = {}
        for batch in self._scan([SCOPE, POS, STATE]):
            greatest = pa.table(batch).group_by(SCOPE).aggregate([(POS, "max")])
            states = {state for state in batch.column(STATE).to_pylist() if state is not None}
            seen = [pair for state in states for pair in _memory(state).seen.items()]
            for scope, pos in [*zip(*(column.to_pylist() for column in greatest.columns), strict=True), *seen]:
                reached[scope] = max(pos, reached.get(scope, ""))
        return reached

    def written(self) -> dict[Key, tuple[str, str]]:
        columns = [*self.shape.key, SCOPE, POS]
        found: dict[Key, tuple[str, str]] = {}
        for batch in self._scan([*columns, DELETED_AT]):
            live = batch.filter(pc.is_null(batch.column(DELETED_AT)))
            for *key, scope, pos in zip(*(live.column(name).to_pylist() for name in columns), strict=True):
                found[tuple(key)] = scope, pos
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

    def write(self, changes: TableChanges, *markers: Marker) -> None:
        source = self._writable(changes)
        if changes.inserts_only:
            # merge: columns that somebody else added are NULL in new rows.
            with committing(self._table, *markers):
                write_deltalake(
                    self._table, source, mode="append", schema_mode="merge", commit_properties=commit(*markers)
                )
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
        # No positions in the conditions: the fold has compared them, and a writer that came between fails the commit.
        with committing(self._table, *markers):
            merge.when_matched_update(updates).when_not_matched_insert(written).execute()

    @property
    def _lacking(self) -> set[str]:
        """The columns of the sink that the table does not have yet, which a sweep meets, as it adds none."""
        return {column.name for column in self.shape.lacks}

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

    def forget(self, before: int) -> None:
        with committing(self._table):
            self._table.delete(f"`{DELETED_AT}` < {_instant(before)}")

    def _stored(self, keys: Collection[Key], names: Sequence[str]) -> Iterator[tuple[Key, tuple[Any, ...]]]:
        """The named columns of those rows that are stored."""
        if not keys:
            return
        wanted = keys if isinstance(keys, set) else set(keys)
        columns = (*self.shape.key, *(name for name in names if name not in self.shape.key))
        values = {
            name: pa.array({key[i] for key in wanted}, arrow_type(self.shape.types[name]))
            for i, name in enumerate(self.shape.key)
        }
        for batch in self._scan(columns, self._reach(wanted)):
            for name in self.shape.key:
                batch = batch.filter(pc.is_in(batch.column(name), values[name]))
            stored = {name: _told(name, batch.column(name)).to_pylist() for name in columns}
            found = zip(*(stored[name] for name in self.shape.key), strict=True)
            rest = zip(*(stored[name] for name in names), strict=True)
            yield from ((key, row) for key, row in zip(found, rest, strict=True) if key in wanted)

    def _reach(self, keys: Collection[Key]) -> Reach:
        values = {name: {key[i] for key in keys} for i, name in enumerate(self.shape.key)}
        return {name: (min(found), max(found)) for name, found in values.items()}

    def _scan(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        """The named columns of the rows, of those within `reach` at least."""
        files = self._table.to_pyarrow_dataset() if reach is None else self._near(reach)
        yield from files.to_batches(columns=list(names))

    def near(self, keys: Collection[Key]) -> ds.Dataset:
        """The files that may hold rows of `keys`."""
        return self._near(self._reach(keys))

    def _near(self, reach: Reach) -> ds.Dataset:
        """The files that may hold rows within `reach`, by their statistics in the log, where those can be trusted.

        Arrow may not filter inside the files: a merge writes string views there, whose statistics it cannot compare.
        """
        files = self._table.to_pyarrow_dataset()
        condition = ds.scalar(True)
        for name, (least, greatest) in reach.items():
            if has_statistics(self.shape.types[name]):
                condition &= (ds.field(name) >= least) & (ds.field(name) <= greatest)
        near = list(files.get_fragments(filter=condition))
        return ds.FileSystemDataset(near, files.schema, files.format, files.filesystem)


def _memory(state: object) -> Memory:
    return _MEMORY.decode(str(state)) if state else NOTHING


def _told(name: str, column: pa.Array) -> pa.Array:
    """Return of a column what is asked of it. No datetime holds every time: of a delete only whether it is there, of a
    commit the microseconds."""
    if name == COMMIT_TS:
        return column.cast(pa.int64())
    return pc.is_valid(column) if name == DELETED_AT else column


def _instant(time: int | None) -> str:
    return "NULL" if time is None else f"arrow_cast({time}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
