"""Parked events on their way back: turn after turn through the same algorithm, before newer events of their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa
import structlog
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from spark_sink.errors import ConfigError, Reason, SinkError
from spark_sink.intake import routes
from spark_sink.names import TableId
from spark_sink.quarantine import Rejected
from spark_sink.read import decoded
from spark_sink.row import Event
from spark_sink.tables.delta_books import ParkedBook
from spark_sink.task import Report, Task

log = structlog.get_logger()


@dataclass(frozen=True)
class Replay(Task):
    """A task over the parked turns of one table. The number of a turn stands in place of that of a batch: a turn that
    was replayed before, by whatever process, is not replayed again."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Records sorted by turn, partition and offset in; reports out, none after a turn that did not end."""
        for records in routes(batches):
            (report,) = replace(self, batch=int(records.column("route")[0].as_py())).route(records)
            encoded = msgspec.msgpack.encode(report)
            yield pa.RecordBatch.from_pydict({"report": pa.array([encoded], pa.binary())})
            if report.step is not None or report.refused is not None or report.clash is not None:
                return

    def _park(
        self,
        report: Report,
        number: int,
        table_id: TableId,
        reason: Reason,
        detail: str,
        events: Iterable[Event],
        rejected: Iterable[Rejected],
        records: pa.Table,
    ) -> None:
        """It is parked already."""


@dataclass(frozen=True)
class Resumed:
    """How far a table came."""

    reports: list[Report]
    left: bool
    refused: str | None


def resume(
    spark: SparkSession,
    parked: ParkedBook,
    target: str,
    task: Task,
    change: Callable[[Report], None],
    limit: int,
) -> Resumed:
    """Replay turns of a table, oldest first, and remove what was replayed; at least one, and about `limit` events.

    Args:
        task: what the next batch would be applied with.
        change: makes the change that a report asks for.
    """
    turns = parked.turns(target)
    taken, events = 0, 0
    while taken < len(turns) and (taken == 0 or events + turns[taken][1] <= limit):
        events += turns[taken][1]
        taken += 1
    left = taken < len(turns)
    last = turns[taken - 1][0]
    done: dict[str, Report] = {}
    replay = Replay(task.tables, task.pattern, task.catalog, parked.app, 0, task.rules)
    asked = None
    while events:
        came = _run(spark, parked.path, parked.pipeline, target, last, replay)
        for report in came:
            if report.step is None:
                done.setdefault(report.route, report)
        if came[-1].refused is not None:
            # Turns before this one are done with; this one is tried again as a whole.
            if len(came) > 1:
                parked.remove(target, int(came[-2].route))
            return Resumed(list(done.values()), True, came[-1].refused)
        if came[-1].step is None:
            break
        if (came[-1].route, came[-1].step) == asked:
            raise SinkError("a table asks for the same change again after it was made")
        asked = came[-1].route, came[-1].step
        change(came[-1])
    parked.remove(target, last)
    return Resumed(list(done.values()), left, None)


def _run(spark: SparkSession, path: str, pipeline: str, target: str, last: int, replay: Replay) -> list[Report]:
    """A report for each turn that was reached."""
    rows = spark.read.format("delta").load(path)
    mine = (col("pipeline") == pipeline) & (col("target") == target) & (col("turn") <= last)
    waiting = rows.where(mine & col("kafka_offset").isNotNull()).select(
        "turn", "value", col("kafka_partition").alias("partition"), col("kafka_offset").alias("offset")
    )
    events = decoded(waiting, replay.pattern.route_sql(), "turn").withColumn("route", col("turn").cast("string"))
    ordered = events.repartition(1).sortWithinPartitions("turn", "partition", "offset")
    answers = ordered.mapInArrow(replay, "report binary").collect()
    reports = [msgspec.msgpack.decode(row.report, type=Report) for row in answers]
    if reports[-1].clash is not None:
        raise ConfigError(reports[-1].clash)
    return reports
