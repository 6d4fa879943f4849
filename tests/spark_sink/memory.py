"""Tables of the sink as dictionaries: what a table format must do, in few words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa

from spark_sink.evolve import Shape
from spark_sink.row import NOTHING, Key, Mark, Memory
from spark_sink.tables import Changes, Identity, Marker


class MemoryTable:
    """Rows by key, deleted ones among them."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.floors: Mapping[str, str] = {}
        self.stored: dict[Key, dict[str, Any]] = {}
        self.remembered: dict[Key, Mark] = {}
        self.markers: list[Marker] = []
        self.forgotten: list[int] = []

    @property
    def version(self) -> int:
        return len(self.markers)

    @property
    def commits(self) -> list[Marker]:
        """The markers of the batches' commits."""
        return [marker for marker in self.markers if not marker.app.startswith("cdc.")]

    def applied(self, app: str) -> int | None:
        return max((marker.version for marker in self.markers if marker.app == app), default=None)

    def marks(self, keys: Collection[Key]) -> dict[Key, Mark]:
        return {key: self.remembered[key] for key in keys if key in self.remembered}

    def rows(self, keys: Collection[Key]) -> dict[Key, dict[str, object]]:
        return {key: self.stored[key] for key in keys if key in self.stored}

    def reached(self) -> dict[str, str]:
        reached: dict[str, str] = {}
        for mark in self.remembered.values():
            for scope, pos in [(mark.scope, mark.pos), *mark.memory.seen.items()]:
                reached[scope] = max(pos, reached.get(scope, ""))
        return reached

    def written(self) -> dict[Key, tuple[str, str]]:
        return {key: (mark.scope, mark.pos) for key, mark in self.remembered.items() if not mark.deleted}

    def astride(self, scope: str) -> set[Key]:
        floor = self.floors[scope]
        ours = {key: mark for key, mark in self.remembered.items() if mark.scope == scope and mark.pos > floor}
        return {key for key, mark in ours.items() if mark.memory.reset is not None and mark.memory.reset < floor}

    def write(self, changes: Changes, *markers: Marker) -> None:
        self.markers += markers
        for i, row in enumerate(changes.rows.to_pylist()):
            key = tuple(row[name] for name in self.shape.key)
            assert not (changes.inserts_only and key in self.stored)
            state = row["_cdc_state"]
            memory = NOTHING if state is None else msgspec.json.decode(state, type=Memory)
            deleted = row["_cdc_deleted_at"] is not None
            self.remembered[key] = Mark(row["_cdc_scope"], row["_cdc_pos"], row["_cdc_incomplete"], deleted, memory)
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

    def forget(self, before: int) -> None:
        self.forgotten.append(before)

    def visible(self) -> dict[Key, dict[str, Any]]:
        return {key: row for key, row in self.stored.items() if not self.remembered[key].deleted}


class MemoryLog:
    """Events in the order in which they came."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.rows: list[dict[str, Any]] = []
        self.looked_up: list[Identity] = []
        self.markers: list[Marker] = []

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


class MemoryTables:
    """A warehouse of them, by the name of the source table."""

    def __init__(self, **tables: MemoryTable | MemoryLog) -> None:
        self.by_name: dict[str, Any] = {f"shop_sales.{name}": table for name, table in tables.items()}
        self.rejected: list[tuple[Marker, list[str]]] = []
        self.held: list[tuple[Marker, list[int], list[str]]] = []

    def open(self, name: str) -> MemoryTable | MemoryLog | None:
        found: MemoryTable | MemoryLog | None = self.by_name.get(name)
        return found

    def as_of(self, name: str, moment: datetime) -> MemoryTable | None:
        raise NotImplementedError  # tables in memory have no past

    def quarantine(self, rows: pa.Table, marker: Marker) -> None:
        self.rejected.append((marker, rows.column("reason").to_pylist()))

    def park(self, rows: pa.Table, marker: Marker) -> None:
        self.held.append((marker, rows.column("kafka_offset").to_pylist(), rows.column("reason").to_pylist()))

    def parked(self, app: str) -> int | None:
        return max((marker.version for marker, _, _ in self.held if marker.app == app), default=None)
