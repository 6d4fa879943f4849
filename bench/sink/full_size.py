"""Compare the sink and the pattern in Delta's documentation on one workload: a full load and changes."""

from __future__ import annotations

import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bench.measure import machine
from bench.processes import Tree
from bench.sink.batch_runner import BatchRunner
from bench.sink.events import COLUMNS, KEY, Workload
from bench.sink.feeder import TOPIC, Feeder, create_topic, ends
from bench.sink.pattern import Pattern
from bench.sink.used import Meter, report
from cdc_core.envelope import TableSchema
from spark_sink.tables.locations import location


class HistorySize(NamedTuple):
    """The number of tables, and the number of events in each part."""

    tables: int
    load: int
    warm_up: int
    changes: int


def full_size(
    spark: SparkSession, bootstrap: str, folder: Path, size: HistorySize, apart: int, *, pattern: bool
) -> Iterator[str]:
    """Yield the report lines. It exits if a table does not have the expected content.

    Args:
        apart: the broker's process, which is not measured.
    """
    create_topic(bootstrap)
    schemas = Workload(size.tables).schemas
    batches = BatchRunner(spark, bootstrap, folder, schemas)
    copies = batches.warehouse.with_name("pattern")
    with Feeder(bootstrap, size.tables) as feeder, Tree({apart, feeder.pid}) as tree:
        meter = Meter(tree, size.tables)
        used = [meter.batch(batches, "sink, load", size.load, feeder.load(size.load))]
        loaded = ends(bootstrap)
        shutil.copytree(batches.warehouse, copies)
        meter.batch(batches, "sink, warm-up", size.warm_up, feeder.changes(size.warm_up))
        warm, came = ends(bootstrap), feeder.changes(size.changes)
        used.append(meter.batch(batches, "sink, changes", size.changes, came))
        if pattern:
            documented = Pattern(spark, bootstrap, TOPIC, schemas, partial(_copy, copies))
            documented.run(loaded, warm)
            work = partial(documented.run, warm, ends(bootstrap))
            used.append(meter.measured("pattern, changes", size.changes, came, copies, work))
    yield report(used)
    yield f"{compared(size, partial(_stored, batches))} rows in {size.tables} tables match the generator's"
    yield machine("pyspark", "deltalake", "pyarrow")


def _copy(copies: Path, schema: TableSchema) -> str:
    return f"delta.`{location(str(copies), f'bench_shop.{schema.table}')}`"


def _stored(batches: BatchRunner, schema: TableSchema) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(batches.table(schema)).to_pyarrow_table().to_pylist()
    return rows


def compared(size: HistorySize, stored: Callable[[TableSchema], Iterable[Mapping[str, Any]]]) -> int:
    """Compare each stored row with its expected values, and return the number of rows."""
    workload = Workload(size.tables)
    for part in workload.load(size.load), workload.changes(size.warm_up), workload.changes(size.changes):
        deque(part, maxlen=0)
    count = 0
    for schema, expected in zip(workload.schemas, workload.rows, strict=True):
        rows = {row[KEY]: row for row in stored(schema) if row.get("_cdc_deleted_at") is None}
        typed = {id: {n: _value(COLUMNS[n], v) for n, v in row.items()} for id, row in expected.items()}
        if {id: {name: row[name] for name in COLUMNS} for id, row in rows.items()} != typed:
            sys.exit(f"the table {schema.table} does not have the expected content")
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


def _value(type: str, value: Any) -> Any:
    return None if value is None else _READ[type](value)
