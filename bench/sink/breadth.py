"""Measure many tables: create and fill the tables in one batch, and then apply batches with a single event for one
table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from statistics import median

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bench.measure import machine, table
from bench.sink.batch_runner import BatchRunner
from bench.sink.events import Workload
from bench.sink.feeder import create_topic, write

# The numbers of single-event batches. The warm-up batches do not count, because in production, a job runs for days with
# compiled code.
_WARM_UP, _COUNTED = 5, 15


def breadth(spark: SparkSession, bootstrap: str, folder: Path, tables: int) -> Iterator[str]:
    """Yield report lines with the wall-clock seconds of the batches' work."""
    workload = Workload(tables)
    batches = BatchRunner(spark, bootstrap, folder, workload.schemas)
    create_topic(bootstrap)
    write(bootstrap, chain.from_iterable(workload.rows_of(number, 2) for number in range(tables)))
    made = _seconds(batches)
    idle = []
    for _ in range(_WARM_UP + _COUNTED):
        write(bootstrap, workload.rows_of(0, 1))
        idle.append(_seconds(batches))
    counted = idle[_WARM_UP:]
    found = sum(DeltaTable(batches.table(schema)).count() for schema in workload.schemas)
    if found != 2 * tables + len(idle):
        raise AssertionError(f"{found} rows instead of {2 * tables + len(idle)}")
    row = [str(tables), f"{made:.1f}", f"{median(counted):.2f}", f"{min(counted):.2f}"]
    yield table(["tables", "create and fill s", "one event, median s", "one event, min. s"], [row])
    yield machine("pyspark", "deltalake", "pyarrow")


def _seconds(batches: BatchRunner) -> float:
    """Return the number of seconds that the work of one batch takes."""
    taken: list[float] = []

    def measured(work: Callable[[], object]) -> None:
        started = time.monotonic()
        work()
        taken.append(time.monotonic() - started)

    batches.apply(measured, 10**6)
    (seconds,) = taken
    return seconds
