"""Measure a batch of changes for an increasing number of tables, and for one table that grows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from bench.measure import machine
from bench.processes import Tree
from bench.report.svg import line_chart
from bench.sink.batch_runner import BatchRunner
from bench.sink.events import Workload
from bench.sink.feeder import Feeder, create_topic
from bench.sink.used import Meter, Used, report

_TABLES = (1, 10, 100, 1000)
_ROWS = (100_000, 1_000_000, 10_000_000)

# The number of changes per batch, and the number of rows per batch in a full load.
_CHANGES, _LOAD = 100_000, 1_000_000

_WARM_UP_TABLES = 10


def growth(spark: SparkSession, bootstrap: str, folder: Path, apart: int, pictures: Path) -> Iterator[str]:
    """Yield the report lines, and write the pictures to a folder.

    Args:
        apart: the broker's process, which is not measured.
    """

    def grown(tables: int, sizes: Sequence[int], name: str, *, vectors: bool = False) -> list[Used]:
        return _grown(spark, bootstrap, folder / name, apart, tables, sizes, vectors=vectors)

    grown(_WARM_UP_TABLES, [_CHANGES], "warm-up")
    by_tables = [used for tables in _TABLES for used in grown(tables, [_CHANGES], f"tables-{tables}")]
    yield "By number of tables, with 100,000 rows in total:"
    yield report(by_tables)
    *by_rows, with_vectors = grown(1, _ROWS, "rows", vectors=True)
    yield "By rows of one table:"
    yield report([*by_rows, with_vectors])
    pictures.mkdir(parents=True, exist_ok=True)
    for name, x_name, sizes, found in (
        ("sink-by-tables", "tables", _TABLES, by_tables),
        ("sink-by-rows", "rows of the table", _ROWS, by_rows),
    ):
        title = f"A batch of {_CHANGES:,} changes".replace(",", " ")
        picture = line_chart(title, x_name, "seconds", _lines(sizes, found))
        (pictures / f"{name}.svg").write_text(picture, encoding="utf-8")
    yield machine("pyspark", "deltalake", "pyarrow")


def _grown(
    spark: SparkSession, bootstrap: str, folder: Path, apart: int, tables: int, sizes: Sequence[int], *, vectors: bool
) -> list[Used]:
    """Load tables up to each of these row counts in turn, and measure the second batch of changes at each size.

    Args:
        vectors: whether to measure another batch after enabling deletion vectors.
    """
    topic = f"bench.{folder.name}"
    create_topic(bootstrap, topic)
    schemas = Workload(tables).schemas
    batches = BatchRunner(spark, bootstrap, folder, schemas, topic)
    found, loaded = [], 0
    with Feeder(bootstrap, tables, topic) as feeder, Tree({apart, feeder.pid}) as tree:
        meter = Meter(tree, tables)

        def measure(name: str) -> None:
            feeder.changes(_CHANGES)
            batches.apply(_do, _LOAD)
            came = feeder.changes(_CHANGES)
            found.append(meter.batch(batches, name, _CHANGES, came))

        for size in sizes:
            feeder.load(size - loaded)
            batches.apply(_do, _LOAD)
            loaded = size
            measure(f"{size} rows")
        if vectors:
            for schema in schemas:
                changed = f"ALTER TABLE delta.`{batches.table(schema)}` SET TBLPROPERTIES"
                spark.sql(f"{changed} ('delta.enableDeletionVectors' = 'true')")
            measure(f"{loaded} rows, deletion vectors")
    shutil.rmtree(folder)
    return found


def _do(work: Callable[[], object]) -> None:
    work()


def _lines(sizes: Sequence[int], found: Sequence[Used]) -> dict[str, list[tuple[float, float]]]:
    return {
        "processor time": [(size, used.cpu) for size, used in zip(sizes, found, strict=True)],
        "wall-clock time": [(size, used.wall) for size, used in zip(sizes, found, strict=True)],
    }
