"""Measure many tables. Create and fill them in one batch, then apply batches with a single event for one table, and
batches with one event per table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from statistics import median
from typing import NamedTuple

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bench.measure import machine, table
from bench.processes import Tree
from bench.sink.batch_runner import BatchRunner
from bench.sink.events import Workload
from bench.sink.feeder import create_topic, write

# The numbers of single-event batches. The warm-up batches do not count, because in production, a job runs for days with
# compiled code.
_WARM_UP, _COUNTED = 5, 15


# The same for batches with one event for each table.
_WIDE_WARM_UP, _WIDE_COUNTED = 2, 3


class _Cost(NamedTuple):
    """The wall-clock and CPU seconds of the work of a batch."""

    wall: float
    cpu: float


def breadth(spark: SparkSession, bootstrap: str, folder: Path, apart: int, tables: int) -> Iterator[str]:
    """Yield report lines.

    Args:
        apart: the broker's process, which is not measured.
    """
    workload = Workload(tables)
    batches = BatchRunner(spark, bootstrap, folder, workload.schemas)
    create_topic(bootstrap)
    write(bootstrap, chain.from_iterable(workload.rows_of(number, 2) for number in range(tables)))
    with Tree({apart}) as tree:
        made = _cost(batches, tree)
        idle = []
        for _ in range(_WARM_UP + _COUNTED):
            write(bootstrap, workload.rows_of(0, 1))
            idle.append(_cost(batches, tree).wall)
        wide = []
        for _ in range(_WIDE_WARM_UP + _WIDE_COUNTED):
            write(bootstrap, map(workload.updated, range(tables)))
            wide.append(_cost(batches, tree))
    found = sum(DeltaTable(batches.table(schema)).count() for schema in workload.schemas)
    if found != 2 * tables + len(idle):
        raise AssertionError(f"{found} rows instead of {2 * tables + len(idle)}")
    counted, (wall, cpu) = idle[_WARM_UP:], map(median, zip(*wide[_WIDE_WARM_UP:], strict=True))
    row = [str(tables), *(f"{seconds:.1f}" for seconds in (*made, wall, cpu))]
    row += [f"{median(counted):.2f}", f"{min(counted):.2f}"]
    head = ["tables", "create and fill s", "CPU s", "one event for each, median s", "CPU s"]
    yield table([*head, "one event, median s", "one event, min. s"], [row])
    yield machine("pyspark", "deltalake", "pyarrow")


def _cost(batches: BatchRunner, tree: Tree) -> _Cost:
    """Return the cost of the work of one batch."""
    taken: list[_Cost] = []

    def measured(work: Callable[[], object]) -> None:
        started, cpu = time.monotonic(), tree.cpu_seconds()
        work()
        taken.append(_Cost(time.monotonic() - started, tree.cpu_seconds() - cpu))

    batches.apply(measured, 10**6)
    (cost,) = taken
    return cost
