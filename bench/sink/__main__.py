"""`python -m bench.sink`: Kafka to Delta tables, beside the pattern of Delta's documentation. Linux; half an hour.

A topic gets a full load, then changes twice: as many for the Java compiler as are measured after them, since a job that
runs for days has compiled what it uses. Each is one micro-batch of the sink. The pattern takes the same changes onto
copies of the tables as they were after the load. At the end the sink's tables are compared with the generator's rows.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bench.measure import machine, table
from bench.processes import Tree
from bench.sink.batch_runner import BatchRunner
from bench.sink.breadth import breadth
from bench.sink.events import COLUMNS, KEY, Workload
from bench.sink.feeder import TOPIC, HistorySize, create_topic, feed
from bench.sink.pattern import Pattern
from dev.broker import Broker
from dev.jars import spark_jars
from spark_sink import spark_session
from spark_sink.config.settings import Spark


class Used(NamedTuple):
    """The resources that a batch took."""

    name: str
    events: int
    tables: int
    cpu: float
    wall: float
    peak: int


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sink", description=__doc__)
    parser.add_argument("--load", type=int, default=1_000_000, help="events of the full load")
    parser.add_argument("--warm-up", type=int, default=1_000_000, help="changes before those that are measured")
    parser.add_argument("--changes", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--memory", default="2g", help="of the driver")
    parser.add_argument("--no-pattern", action="store_true", help="the sink alone")
    parser.add_argument("--breadth", type=int, metavar="TABLES", help="so many small tables, made and fed, then idle")
    options = parser.parse_args(arguments)
    spark_settings = Spark(
        master="local[2]",
        memory=options.memory,
        jars=tuple(map(str, spark_jars())),
        conf={"spark.ui.enabled": "false"},
    )
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        spark = spark_session.build("bench", spark_settings, folder)
        try:
            if options.breadth:
                for line in breadth(spark, broker.bootstrap, Path(folder), options.breadth):
                    print(line, flush=True)
                return 0
            history = HistorySize(options.tables, options.load, options.warm_up, options.changes)
            bench = SinkBench(spark, broker.bootstrap, Path(folder), history)
            with Tree(apart=broker.pid) as tree:
                for line in bench.run(tree, pattern=not options.no_pattern):
                    print(line, flush=True)
        finally:
            spark.stop()
    return 0


class SinkBench:
    """The sink, and the pattern, on one workload."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path, history: HistorySize) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._history = history
        self._schemas = Workload(history.tables).schemas
        self._batches = BatchRunner(spark, bootstrap, folder, self._schemas)

    def run(self, tree: Tree, *, pattern: bool) -> Iterable[str]:
        """The lines of a report. Ends the process when a table is not what it should be."""
        bootstrap = self._bootstrap
        create_topic(bootstrap)
        loaded = feed(bootstrap, self._history, 0)
        used = [self._batch(tree, "sink, load", self._history.load)]
        copies = self._batches.warehouse.with_name("pattern")
        shutil.copytree(self._batches.warehouse, copies)
        warm = feed(bootstrap, self._history, 1)
        self._batch(tree, "sink, warm-up", self._history.warm_up)
        final = feed(bootstrap, self._history, 2)
        used.append(self._batch(tree, "sink, changes", self._history.changes))
        if pattern:
            documented = Pattern(self._spark, self._bootstrap, TOPIC, copies, self._schemas)
            documented.run(loaded, warm)
            work = partial(documented.run, warm, final)
            used.append(self._measured(tree, "pattern, changes", self._history.changes, work))
        yield table(_HEAD, [_row(one) for one in used])
        yield f"{self._compared()} rows in {len(self._schemas)} tables equal the generator's"
        yield machine("pyspark", "deltalake", "pyarrow")

    def _batch(self, tree: Tree, name: str, events: int) -> Used:
        """One micro-batch with all that has come; the query's own start and end are not counted."""
        found: list[Used] = []

        def measured(work: Callable[[], object]) -> None:
            found.append(self._measured(tree, name, events, work))

        self._batches.apply(measured, 10 * events)
        (used,) = found
        return used

    def _measured(self, tree: Tree, name: str, events: int, work: Callable[[], object]) -> Used:
        tree.peak_bytes()
        cpu, started = tree.cpu_seconds(), time.monotonic()
        work()
        wall, spent = time.monotonic() - started, tree.cpu_seconds() - cpu
        return Used(name, events, len(self._schemas), spent, wall, tree.peak_bytes())

    def _compared(self) -> int:
        """Return the number of rows, having compared each with its expected values."""
        workload, parts = self._history.parts()
        for part in parts:
            deque(part, maxlen=0)
        count = 0
        for schema, expected in zip(workload.schemas, workload.rows, strict=True):
            stored = DeltaTable(self._batches.table(schema)).to_pyarrow_table()
            rows = {row[KEY]: row for row in stored.to_pylist() if row["_cdc_deleted_at"] is None}
            typed = {id: {n: _value(COLUMNS[n], v) for n, v in row.items()} for id, row in expected.items()}
            if {id: {name: row[name] for name in COLUMNS} for id, row in rows.items()} != typed:
                sys.exit(f"the table {schema.table} is not what it should be")
            count += len(typed)
        return count


_READ: Mapping[str, Callable[[Any], Any]] = {
    "int64": int,
    "int32": int,
    "boolean": bool,
    "decimal(18,4)": Decimal,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "string": str,
}
_HEAD = ["batch", "events", "tables", "processor s", "processor s per million", "wall s", "peak memory"]


def _value(type: str, value: Any) -> Any:
    return None if value is None else _READ[type](value)


def _row(used: Used) -> list[str]:
    million = used.cpu / used.events * 1_000_000
    peak = f"{used.peak / 2**30:.1f} GiB"
    return [
        used.name,
        str(used.events),
        str(used.tables),
        f"{used.cpu:.1f}",
        f"{million:.1f}",
        f"{used.wall:.1f}",
        peak,
    ]


if __name__ == "__main__":
    sys.exit(main())
