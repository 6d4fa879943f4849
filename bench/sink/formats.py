"""Compare the sink with both formats, and with a hand-written MERGE on Iceberg tables, on one workload in one run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.measure import machine
from bench.processes import Tree
from bench.sink.batch_runner import BatchRunner
from bench.sink.events import Workload
from bench.sink.feeder import TOPIC, Feeder, create_topic, ends
from bench.sink.full_size import HistorySize, compared
from bench.sink.pattern import Pattern
from bench.sink.used import Meter, Used, report
from cdc_core.envelope import TableSchema
from spark_sink.schema.table_spec import Format
from spark_sink.spark.session import sibling
from spark_sink.tables.iceberg.catalogs import FolderCatalog, quoted


def formats(
    spark: SparkSession, bootstrap: str, folder: Path, size: HistorySize, apart: int, *, pattern: bool
) -> Iterator[str]:
    """Yield the report lines. Each part of the history is written to all formats, one format at a time.

    Args:
        apart: the broker's process, which is not measured.
    """
    create_topic(bootstrap)
    schemas = Workload(size.tables).schemas
    runners = {format: BatchRunner(spark, bootstrap, folder / format, schemas, format=format) for format in Format}
    by_hand = BatchRunner(spark, bootstrap, folder / "hand", schemas, format=Format.ICEBERG)
    with Feeder(bootstrap, size.tables) as feeder, Tree({apart, feeder.pid}) as tree:
        meter = Meter(tree, size.tables)
        used: list[Used] = []

        def batches(part: str, events: int, came: int) -> Iterator[Used]:
            for format, runner in runners.items():
                yield meter.batch(runner, f"{format}, {part}", events, came)

        came = feeder.load(size.load)
        used += batches("load", size.load, came)
        meter.batch(by_hand, "load", size.load, came)
        loaded = ends(bootstrap)
        list(batches("warm-up", size.warm_up, feeder.changes(size.warm_up)))
        warm, came = ends(bootstrap), feeder.changes(size.changes)
        used += batches("changes", size.changes, came)
        if pattern:
            catalog = FolderCatalog(str(by_hand.warehouse))
            session = sibling(spark, catalog.spark)
            documented = Pattern(
                session, bootstrap, TOPIC, schemas, lambda schema: quoted(catalog, by_hand.name(schema))
            )
            documented.run(loaded, warm)
            work = partial(documented.run, warm, ends(bootstrap))
            used.append(meter.measured("hand-written MERGE, changes", size.changes, came, by_hand.warehouse, work))
    yield report(used)
    iceberg = runners[Format.ICEBERG]
    rows = compared(size, partial(_stored, FolderCatalog(str(iceberg.warehouse)), spark, iceberg))
    yield f"{rows} rows in {size.tables} Iceberg tables match the generator's"
    yield machine("pyspark", "deltalake", "pyiceberg", "pyarrow")


def _stored(
    catalog: FolderCatalog, spark: SparkSession, runner: BatchRunner, schema: TableSchema
) -> list[dict[str, Any]]:
    table = sibling(spark, catalog.spark).table(quoted(catalog, runner.name(schema)))
    rows: list[dict[str, Any]] = table.toArrow().to_pylist()
    return rows
