"""The production runner, which runs each table as one task in Spark's workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr

from spark_sink.apply.worker import Task
from spark_sink.events.source import BUCKETS, decoded
from spark_sink.table_report import TableReport
from spark_sink.tables.delta.control_tables import ParkedTables


class SparkRunner:
    """Runs tasks in a Spark session. A batch is a data frame from Spark's Kafka source."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def batch(
        self,
        records: DataFrame,
        task: Task,
        carried: Collection[str],
        weights: Mapping[int, int],
        only: Collection[str] | None = None,
    ) -> list[TableReport]:
        events = decoded(records, task.pattern.route_sql(), carried=carried)
        if only is not None:
            events = events.where(col("route").isin(*only))
        tasks = 2 * self._spark.sparkContext.defaultParallelism
        bins = ",".join(map(str, _balanced(weights, tasks)))
        placed = events.repartitionById(tasks, expr(f"element_at(array({bins}), bucket + 1)"))
        return _reports(placed.sortWithinPartitions("route", "partition", "offset"), task)

    def turns(self, parked: ParkedTables, target: str, first: int, last: int, task: Task) -> list[TableReport]:
        rows = self._spark.read.format("delta").load(parked.path)
        mine = (col("pipeline") == parked.pipeline) & (col("target") == target) & col("turn").between(first, last)
        waiting = rows.where(mine & col("kafka_offset").isNotNull()).select(
            "turn", "value", col("kafka_partition").alias("partition"), col("kafka_offset").alias("offset")
        )
        events = decoded(waiting, task.pattern.route_sql(), "turn").withColumn("route", col("turn").cast("string"))
        return _reports(events.repartition(1).sortWithinPartitions("turn", "partition", "offset"), task)


def _reports(events: DataFrame, task: Task) -> list[TableReport]:
    answers = events.mapInArrow(task, "report binary").collect()
    return [msgspec.msgpack.decode(row.report, type=TableReport) for row in answers]


def _balanced(weights: Mapping[int, int], tasks: int) -> list[int]:
    """Assign every bucket to a task. Buckets go to the least loaded task, heaviest first; buckets without events are
    distributed in turn.
    """
    load = [0] * tasks
    placed = [bucket % tasks for bucket in range(BUCKETS)]
    for bucket, weight in Counter(weights).most_common():
        lightest = load.index(min(load))
        placed[bucket] = lightest
        load[lightest] += weight
    return placed
