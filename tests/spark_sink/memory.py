"""Tables of the sink as dictionaries: a minimal implementation of a table format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from spark_sink.model.event import Key
from spark_sink.model.row import (
    NOTHING,
    Memory,
    RowMark,
)
from spark_sink.model.version_timeline import End, TakenKey, Truncate, Version
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.engine_choice import Choice, Engine
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.changes import Deletion, Identity, LastSeen, Marker, TableChanges
from spark_sink.tables.meta_columns import MARK_COLUMNS
from spark_sink.tables.spark_operations import Order


class MemoryTable:
    """Rows by key, including deleted ones. The table has all of the sink's own columns."""

    def __init__(self, shape: TableShape) -> None:
        self.shape = replace(shape, lacks=())
        self.choice = Choice(Engine.FUSED, "")
        self.orders: list[Order] = []
        self.floors: Mapping[str, str] = {}
        self.stored: dict[Key, dict[str, Any]] = {}
        self.remembered: dict[Key, RowMark] = {}
        self.markers: list[Marker] = []
        self.forgotten: list[int] = []

    @property
    def version(self) -> int:
        return len(self.markers)

    @property
    def commits(self) -> list[Marker]:
        """The markers of the batches' commits."""
        return [marker for marker in self.markers if not marker.app.startswith("cdc.")]

    def follows(self, seen: LastSeen) -> bool:
        return self.version >= seen.version

    def applied(self, app: str) -> int | None:
        return max((marker.version for marker in self.markers if marker.app == app), default=None)

    def marks(self, keys: Collection[Key]) -> dict[Key, RowMark]:
        return {key: self.remembered[key] for key in keys if key in self.remembered}

    def mark_columns(self, keys: pa.Table) -> pa.Table:
        """Return everything stored, which is more than requested."""
        marks = self.remembered.values()
        columns = {name: [key[i] for key in self.remembered] for i, name in enumerate(self.shape.key)}
        columns["_cdc_scope"] = [mark.scope for mark in marks]
        columns["_cdc_pos"] = [mark.pos for mark in marks]
        columns["_cdc_state"] = [
            None if mark.memory == NOTHING else msgspec.json.encode(mark.memory).decode() for mark in marks
        ]
        columns["_cdc_incomplete"] = [mark.incomplete for mark in marks]
        columns["_cdc_deleted_at"] = [datetime(2026, 1, 1, tzinfo=UTC) if mark.deleted else None for mark in marks]
        types = {**self.shape.types, **MARK_COLUMNS}
        return pa.table({name: pa.array(values, arrow_type(types[name])) for name, values in columns.items()})

    def rows(self, keys: Collection[Key]) -> dict[Key, dict[str, object]]:
        return {key: self.stored[key] for key in keys if key in self.stored}

    def max_positions(self) -> dict[str, str]:
        reached: dict[str, str] = {}
        for mark in self.remembered.values():
            for scope, pos in [(mark.scope, mark.pos), *mark.memory.seen.items()]:
                reached[scope] = max(pos, reached.get(scope, ""))
        return reached

    def written(self) -> dict[Key, tuple[str, str]]:
        return {key: (mark.scope, mark.pos) for key, mark in self.remembered.items() if not mark.deleted}

    def live_keys(self) -> Counter[Key]:
        return Counter(self.written().keys())

    def rows_spanning_floor(self, scope: str) -> set[Key]:
        floor = self.floors[scope]
        ours = {key: mark for key, mark in self.remembered.items() if mark.scope == scope and mark.pos > floor}
        return {key for key, mark in ours.items() if mark.memory.reset is not None and mark.memory.reset < floor}

    def write(self, changes: TableChanges, *markers: Marker) -> None:
        self.markers += markers
        for i, row in enumerate(changes.rows.to_pylist()):
            key = tuple(row[name] for name in self.shape.key)
            assert not (changes.inserts_only and key in self.stored)
            state = row["_cdc_state"]
            memory = NOTHING if state is None else msgspec.json.decode(state, type=Memory)
            deleted = row["_cdc_deleted_at"] is not None
            committed = _micros_or_none(row["_cdc_commit_ts"])
            self.remembered[key] = RowMark(
                row["_cdc_scope"], row["_cdc_pos"], row["_cdc_incomplete"], deleted, memory, committed
            )
            kept = {name for name, written in changes.kept.items() if not written[i].as_py()}
            before = self.stored.get(key, {})
            self.stored[key] = {name: (before.get(name) if name in kept else row[name]) for name in self.shape.types}

    def raise_floors(self, floors: Mapping[str, str]) -> None:
        self.floors = floors

    def clear(self, marker: Marker) -> bool:
        under = [key for key, mark in self.remembered.items() if mark.pos <= self.floors.get(mark.scope, "")]
        for key in under:
            del self.stored[key], self.remembered[key]
        self.markers += [marker] if under else []
        return bool(under)

    def soft_delete_below_floor(self, deletion: Deletion, marker: Marker) -> bool:
        under = [key for key, mark in self.remembered.items() if mark.pos <= self.floors.get(mark.scope, "")]
        met = [key for key in under if not self.remembered[key].deleted]
        for key in met:
            mark = self.remembered[key]
            self.remembered[key] = RowMark(mark.scope, mark.pos, deleted=True, committed=deletion.committed)
        self.markers += [marker] if met else []
        return bool(met)

    def keep_deleted_rows(self, *, apart: bool) -> None:
        """Do nothing, because nobody reads the table without the deleted rows."""

    def forget(self, before: int) -> None:
        self.forgotten.append(before)

    def visible(self) -> dict[Key, dict[str, Any]]:
        return {key: row for key, row in self.stored.items() if not self.remembered[key].deleted}


class MemoryLog:
    """Events in order of arrival."""

    def __init__(self, shape: TableShape) -> None:
        self.shape = shape
        self.choice = Choice(Engine.FUSED, "")
        self.orders: list[Order] = []
        self.rows: list[dict[str, Any]] = []
        self.looked_up: list[Identity] = []
        self.markers: list[Marker] = []

    @property
    def version(self) -> int:
        return len(self.markers)

    def follows(self, seen: LastSeen) -> bool:
        return self.version >= seen.version

    def applied(self, app: str) -> int | None:
        return max((marker.version for marker in self.markers if marker.app == app), default=None)

    def greatest(self) -> Mapping[str, str]:
        by_place = sorted((row["_cdc_pos"], row["_cdc_scope"]) for row in self.rows)
        return {scope: pos for pos, scope in by_place}

    def known(self, wanted: Collection[Identity]) -> set[Identity]:
        self.looked_up += wanted
        return set(wanted) & {Identity(row["_cdc_id"], row["_cdc_scope"], row["_cdc_pos"]) for row in self.rows}

    def append(self, rows: pa.Table, greatest: Mapping[str, str], *markers: Marker) -> None:
        self.rows += rows.to_pylist()
        self.markers += markers
        assert greatest == self.greatest()


class MemoryHistory:
    """Versions by key, scope and position, as rows."""

    def __init__(self, shape: TableShape) -> None:
        self.shape = shape
        self.choice = Choice(Engine.FUSED, "")
        self.orders: list[Order] = []
        self.truncates: list[Truncate] = []
        self.taken_keys: Sequence[TakenKey] = ()
        self.rows: dict[tuple[Key, str, str], dict[str, Any]] = {}
        self.markers: list[Marker] = []

    @property
    def version(self) -> int:
        return len(self.markers)

    def follows(self, seen: LastSeen) -> bool:
        return self.version >= seen.version

    def applied(self, app: str) -> int | None:
        return max((marker.version for marker in self.markers if marker.app == app), default=None)

    def greatest(self) -> Mapping[str, str]:
        return {scope: pos for _, scope, pos in sorted(self.rows, key=lambda place: place[2])}

    def versions(self, keys: Collection[Key], since: Mapping[str, str] | None = None) -> dict[Key, list[Version]]:
        found: dict[Key, list[Version]] = {}
        for (key, scope, _), row in self.rows.items():
            end, end_scope = row["_cdc_end_pos"], row["_cdc_end_scope"]
            late = since is None or (scope in since and end is not None and end > since[scope])
            if key in keys and (late or end is None or end_scope != scope or row["_cdc_end_op"] == "t"):
                found.setdefault(key, []).append(self._version(row))
        return found

    def _version(self, row: dict[str, Any]) -> Version:
        end = None
        if row["_cdc_end_pos"] is not None:
            end = End(row["_cdc_end_op"], row["_cdc_end_scope"], row["_cdc_end_pos"], micros(row["_cdc_end_ts"]))
        sets, op, incomplete = row["_cdc_set"], row["_cdc_op"], row["_cdc_incomplete"]
        return Version(
            row["_cdc_turn"],
            row["_cdc_scope"],
            row["_cdc_pos"],
            op,
            None if sets is None else tuple(name for name in sets if name is not None),
            micros(row["_cdc_start_ts"]),
            {name: row[name] for name in self.shape.types if name not in self.shape.key},
            incomplete and (sets is None or op is None or None in sets),
            incomplete,
            end,
            row["_cdc_current"],
        )

    def current_keys(self) -> set[Key]:
        return set(self.written())

    def written(self) -> dict[Key, tuple[str, str]]:
        now = [place for place, row in self.rows.items() if row["_cdc_current"] and row["_cdc_op"] != "d"]
        return {key: (scope, pos) for key, scope, pos in now}

    def rows_spanning_floor(self, truncate: Truncate, *, late: bool) -> set[Key]:
        def over(row: dict[str, Any]) -> bool:
            end_scope, end = row["_cdc_end_scope"], row["_cdc_end_pos"]
            at_floor = row["_cdc_end_op"] == "t" and end == truncate.floors.get(end_scope)
            return not truncate.covers(end_scope, end) or (late and at_floor)

        return {
            key
            for (key, scope, pos), row in self.rows.items()
            if row["_cdc_op"] != "d" and row["_cdc_end_pos"] is not None
            if truncate.covers(scope, pos) and over(row)
        }

    def write(self, rows: pa.Table, adds_only: bool, *markers: Marker) -> None:
        self.markers += markers
        for row in rows.to_pylist():
            place = (tuple(row[name] for name in self.shape.key), row["_cdc_scope"], row["_cdc_pos"])
            assert not (adds_only and place in self.rows)
            self.rows[place] = row

    def keep_truncates(self, truncates: Sequence[Truncate]) -> None:
        self.truncates = list(truncates)

    def keep_taken_keys(self, taken: Sequence[TakenKey]) -> None:
        self.taken_keys = msgspec.json.decode(msgspec.json.encode(taken), type=tuple[TakenKey, ...])

    def close(self, truncate: Truncate, marker: Marker) -> bool:
        met = [row for (_, scope, pos), row in self.rows.items() if row["_cdc_current"] and truncate.covers(scope, pos)]
        for row in met:
            end = {"op": "t", "scope": row["_cdc_scope"], "pos": truncate.floors[row["_cdc_scope"]]}
            row |= {f"_cdc_end_{name}": value for name, value in end.items()}
            row |= {"_cdc_end_ts": datetime.fromtimestamp(truncate.ts / 1e6, UTC), "_cdc_current": False}
        self.markers += [marker] if met else []
        return bool(met)


def _micros_or_none(time: datetime | None) -> int | None:
    return None if time is None else micros(time)


def micros(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


class MemoryTables:
    """A warehouse of such tables, by name of the source table."""

    def __init__(self, **tables: MemoryTable | MemoryLog | MemoryHistory) -> None:
        self.by_name: dict[str, Any] = {f"shop_sales.{name}": table for name, table in tables.items()}
        self.rejected: list[tuple[Marker, list[str]]] = []
        self.held: list[tuple[Marker, list[int], list[str]]] = []

    def open(self, name: str) -> MemoryTable | MemoryLog | MemoryHistory | None:
        found: MemoryTable | MemoryLog | MemoryHistory | None = self.by_name.get(name)
        return found

    def check_format(self, name: str) -> None:
        pass  # they have a single format

    def as_of(self, name: str, moment: datetime) -> MemoryTable | None:
        raise NotImplementedError  # tables in memory have no history

    def quarantine(self, rows: pa.Table, marker: Marker) -> None:
        self.rejected.append((marker, rows.column("reason").to_pylist()))

    def park(self, rows: pa.Table, marker: Marker) -> None:
        self.held.append((marker, rows.column("kafka_offset").to_pylist(), rows.column("reason").to_pylist()))

    def parked(self, app: str) -> int | None:
        return max((marker.version for marker, _, _ in self.held if marker.app == app), default=None)
