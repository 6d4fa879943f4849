"""The resources that a batch uses: CPU time, wall-clock time, memory, and bytes written to tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.measure import table
from bench.processes import Tree
from bench.sink.batch_runner import BatchRunner


class Used(NamedTuple):
    """The resources that a batch used.

    Args:
        cpu: the CPU time of all processes, in seconds.
        wall: wall-clock time, in seconds.
        peak: peak memory, in bytes. Shared pages are counted once for each process.
        came: the total size of the batch's record values.
        written: the total size of the new files.
    """

    name: str
    events: int
    tables: int
    cpu: float
    wall: float
    peak: int
    came: int
    written: int

    @property
    def cpu_per_million(self) -> float:
        return self.cpu / self.events * 1_000_000


class Meter:
    """Measures batches."""

    def __init__(self, tree: Tree, tables: int) -> None:
        self._tree = tree
        self._tables = tables

    def measured(self, name: str, events: int, came: int, warehouse: Path, work: Callable[[], object]) -> Used:
        """Run the work, which writes tables to a folder, and measure the resources that it uses.

        Args:
            came: total size of the record values.
        """
        before = _sizes(warehouse)
        self._tree.peak_bytes()
        cpu, started = self._tree.cpu_seconds(), time.monotonic()
        work()
        wall, spent = time.monotonic() - started, self._tree.cpu_seconds() - cpu
        peak = self._tree.peak_bytes()
        written = sum(size for path, size in _sizes(warehouse).items() if path not in before)
        return Used(name, events, self._tables, spent, wall, peak, came, written)

    def batch(self, batches: BatchRunner, name: str, events: int, came: int) -> Used:
        """Run one micro-batch with all new records, and measure it. The query's own start and end do not count."""
        found: list[Used] = []

        def measured(work: Callable[[], object]) -> None:
            found.append(self.measured(name, events, came, batches.warehouse, work))

        batches.apply(measured, 10 * events)
        (used,) = found
        return used


def report(batches: Sequence[Used]) -> str:
    head = ["batch", "events", "tables", "processor s", "CPU s per million", "wall s", "peak memory"]
    return table([*head, "bytes written per incoming byte"], [_row(used) for used in batches])


def _row(used: Used) -> list[str]:
    return [
        used.name,
        str(used.events),
        str(used.tables),
        f"{used.cpu:.1f}",
        f"{used.cpu_per_million:.1f}",
        f"{used.wall:.1f}",
        f"{used.peak / 2**30:.1f} GiB",
        f"{used.written / used.came:.2f}",
    ]


def _sizes(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
