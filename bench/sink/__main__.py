"""Measure the sink and the pattern in Delta's documentation: `python -m bench.sink`. It runs on Linux and takes ten
minutes.

A topic gets a full load, followed by two equally large sets of changes. The first set warms up Java's compiler. In
production, a job runs for days with compiled code. The sink applies each part in one micro-batch. The pattern gets the
same changes, on copies of the tables made after the load. At the end, the sink's tables are compared with the
generator's rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.sink.breadth import breadth
from bench.sink.formats import formats
from bench.sink.freshness import freshness
from bench.sink.full_size import HistorySize, full_size
from bench.sink.growth import growth
from dev.jars import spark_jars
from dev.servers.broker import Broker
from spark_sink.config.settings import Spark
from spark_sink.spark import session as spark_session


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        for line in _lines(options, broker, Path(folder)):
            print(line, flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.sink", description=__doc__)
    parser.add_argument("--load", type=int, default=1_000_000, help="Number of events in the initial load.")
    parser.add_argument(
        "--warm-up", type=int, default=1_000_000, help="Number of changes to apply before the measurement starts."
    )
    parser.add_argument("--changes", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--memory", default="2g", help="Heap size of the driver.")
    parser.add_argument("--no-pattern", action="store_true", help="Measure only the sink, not the usual Spark pattern.")
    other = parser.add_argument_group("other measurements; choose one")
    other.add_argument(
        "--breadth",
        type=int,
        metavar="TABLES",
        help="Create and fill this many small tables, change them one by one, then change all of them together.",
    )
    other.add_argument(
        "--format", choices=["iceberg"], help="Write the same history to Delta tables and to Iceberg tables."
    )
    other.add_argument(
        "--growth",
        type=Path,
        metavar="FOLDER",
        help="Measure an increasing number of tables and a growing table, and write pictures to this folder.",
    )
    other.add_argument(
        "--freshness", type=int, metavar="SECONDS", help="Feed a steady stream of changes to a separate sink."
    )
    other.add_argument("--rate", type=int, default=5_000, help="Number of changes per second in the steady stream.")
    return parser


def _lines(options: argparse.Namespace, broker: Broker, folder: Path) -> Iterator[str]:
    settings = Spark(
        master="local[2]",
        memory=options.memory,
        jars=tuple(map(str, spark_jars())),
        conf={"spark.ui.enabled": "false"},
    )
    bootstrap, apart = broker.bootstrap, broker.pid
    if options.freshness:
        yield from freshness(bootstrap, folder, settings, apart, options.rate, options.freshness)
        return
    spark = spark_session.build("bench", settings, str(folder), iceberg=options.format is not None)
    try:
        if options.breadth:
            yield from breadth(spark, bootstrap, folder, apart, options.breadth)
        elif options.growth:
            yield from growth(spark, bootstrap, folder, apart, options.growth)
        else:
            size = HistorySize(options.tables, options.load, options.warm_up, options.changes)
            compare = full_size if options.format is None else formats
            yield from compare(spark, bootstrap, folder, size, apart, pattern=not options.no_pattern)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
