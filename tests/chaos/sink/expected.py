"""Compare the tables of a killed run with a simple oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from cdc_core.position import is_in_order
from spark_sink.model.event import Event
from tests.spark_sink.commit_markers import commit_markers, is_iceberg
from tests.spark_sink.oracle import table_after

# The event of table `parted` that parks it, and the ten rows after it.
_AFTER_STATEMENT = 11

Rows = Mapping[Any, Mapping[str, Any]]


@dataclass(frozen=True)
class Expected:
    """The expected contents of all tables.

    Args:
        histories: events by table, in source order.
        tables: rows of further tables.
        broken: ids of the events of table `broken` that go to quarantine.
        stopped: maximum number of events that table `stops` can apply before it is parked with the others. It applies
            none from the batch that stops it.
    """

    histories: Mapping[str, Sequence[Event]]
    tables: Mapping[str, Rows]
    broken: set[int]
    stopped: int

    def wrong(self, warehouse: Path) -> list[str]:
        """Return the differences, or nothing if all is well."""
        return [*self._rows(warehouse), *self._aside(warehouse), *self._commits(warehouse)]

    def _rows(self, warehouse: Path) -> Iterator[str]:
        wanted: dict[str, Rows] = {name: table_after(events)[0] for name, events in self.histories.items()}
        wanted |= self.tables
        # The valid columns of a broken event are applied.
        wanted["broken"] = {n: {"id": n, "n": None if n in self.broken else n} for n in range(20)}
        for name, rows in wanted.items():
            found = _read(warehouse / "shop_sales" / name)
            present = {row["id"]: _plain(row) for row in found}
            if rows != present:
                yield f"{name}: {present} and not {rows}"

    def _aside(self, warehouse: Path) -> Iterator[str]:
        bad = Counter(row["event_id"] for row in _read(warehouse / "_cdc" / "quarantine"))
        if Counter(f"shop/raw/0/{n}/0" for n in self.broken) != bad:
            yield f"quarantine: {bad}"
        taken = {row["id"] for row in _read(warehouse / "shop_sales" / "stops")}
        parked = _read(warehouse / "_cdc" / "parked")
        waiting = Counter(
            row["kafka_offset"] for row in parked if row["value"] is not None and row["target"] == "shop_sales.stops"
        )
        parted = Counter(row["kafka_offset"] for row in parked if row["target"] == "shop_sales.parted")
        if len(parted) != _AFTER_STATEMENT or set(parted.values()) != {1}:
            yield f"parted: parked {parted}"
        told = set(range(len(taken))) == taken and len(taken) <= self.stopped
        if not told or 20 - len(taken) != waiting.total() or set(waiting.values()) - {1}:
            yield f"stops: took {taken}, parked {waiting}"

    def _commits(self, warehouse: Path) -> Iterator[str]:
        """Return commits that were made twice, with the same marker in two versions of a table.

        Under native order, a truncate that removes only some rows does so in a separate commit before its own. That
        commit has no marker, so in an Iceberg table it appears to repeat the previous one.
        """
        for table in {
            found.parent for folder in ("_delta_log", "metadata") for found in warehouse.glob(f"**/{folder}")
        }:
            cuts = sum(event.op == "t" and not is_in_order(event.scope) for event in self.histories.get(table.name, ()))
            allowed = 1 + (cuts if is_iceberg(table) else 0)
            twice = [mark for mark, count in Counter(commit_markers(table)).items() if count > allowed]
            if twice:
                yield f"{table.name}: committed twice {twice}"


def _read(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if DeltaTable.is_deltatable(str(path)):
        rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    elif is_iceberg(path):
        rows = StaticTable.from_metadata(str(path)).scan().to_arrow().to_pylist()
    return rows


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_cdc_")}
