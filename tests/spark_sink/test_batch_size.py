"""The running query adapts the size of its batches and reports its lag."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame
from structlog.testing import capture_logs

from dev.servers.broker import Broker
from spark_sink.config.settings import Batches, Input, Settings, TablesSettings
from spark_sink.config.spark_kafka_options import SparkKafka
from spark_sink.job import Job
from spark_sink.lag import Lag
from spark_sink.operations.verified_metrics import VerifiedMetrics
from spark_sink.probes import Health
from spark_sink.schema.catalog import SchemaReader
from spark_sink.spark.checkpoint import checkpoint_id, offset_entry
from spark_sink.table_report import TableReport
from tests.spark_sink.changes import change, record
from tests.spark_sink.lake import SparkLake

PARTITIONS = 2


class Timed:
    """Apply batches and act as the clock: a record takes a given time, whatever the machine."""

    def __init__(self, spark_lake: SparkLake, seconds: list[float]) -> None:
        self._apply = spark_lake.applier
        self._seconds = seconds
        self._now = 0.0
        self.reports: list[TableReport] = []
        self.job: Job | None = None
        self.last = 0

    def __call__(self, records: DataFrame, batch: int) -> list[TableReport]:
        reports = self._apply(records, batch)
        self.reports += reports
        self._now += sum(report.counters.events for report in reports) * (
            self._seconds.pop(0) if self._seconds else 0.02
        )
        if self.job is not None and self.applied() >= self.last:
            self.job.stop()
        return reports

    def clock(self) -> float:
        return self._now

    def applied(self) -> int:
        return sum(report.counters.events for report in self.reports)


class Topic:
    """Row inserts in transactions, so that a marker follows the records of each transaction."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self.options = {"bootstrap.servers": broker.bootstrap}
        admin = AdminClient(self.options)
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
        self._producer = Producer({**self.options, "transactional.id": name, "transaction.timeout.ms": 600_000})
        self._producer.init_transactions()

    def send(self, ids: Sequence[int], size: int = 1000, *, commit: bool = True) -> None:
        for start in range(0, len(ids), size):
            self._producer.begin_transaction()
            for id in ids[start : start + size]:
                event = change("c", {"id": id}, {"a": "x"}, pos=id + 1)
                self._producer.produce(self.name, record(event), partition=id % PARTITIONS)
            assert 0 == self._producer.flush()
            if commit:
                self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()


def _run(
    spark_lake: SparkLake, topic: Topic, folder: Path, timed: Timed, batches: Batches, last: int | None
) -> list[Any]:
    """Run to the end of the topic, or until `last` records are applied, and return the log."""
    settings = Settings(
        pipeline="test",
        kafka=SparkKafka(bootstrap_servers=topic.options["bootstrap.servers"]),
        input=Input(topic=topic.name),
        tables=TablesSettings(warehouse=str(spark_lake.warehouse)),
        checkpoint=str(folder / "checkpoint"),
        batches=batches,
    )
    schemas = SchemaReader(topic.options, "none")
    planned = partial(offset_entry, spark_lake.spark, settings.checkpoint)
    spark_lake.applier._lag = Lag(topic.name, planned, partial(schemas.ends, topic.name))
    requests, maintenance = spark_lake.requests(), spark_lake.maintenance()
    id = checkpoint_id(spark_lake.spark, settings.checkpoint)
    job = Job(
        spark_lake.spark,
        settings,
        timed,  # type: ignore[arg-type]
        requests,
        maintenance,
        VerifiedMetrics(spark_lake.control.verified, spark_lake.metrics),
        id,
        "earliest",
        health=Health(),
        available_now=last is None,
    )
    if last is not None:
        timed.job, timed.last = job, last
    try:
        with capture_logs() as log:
            job.run()
    finally:
        schemas.close()
    return log


def _told(log: list[Any], event: str) -> list[Any]:
    return [line for line in log if line["event"] == event]


def _once(spark_lake: SparkLake, timed: Timed, count: int) -> None:
    """Check that every row was written once, in one commit per batch."""
    assert [str(id) for id in range(count)] == sorted((row["id"] for row in spark_lake.rows()), key=int)
    written, skipped = (sum(getattr(report.counters, name) for report in timed.reports) for name in ("rows", "skipped"))
    assert (count, count, 0) == (timed.applied(), written, skipped)


def test_slow_records_are_taken_in_smaller_batches(
    broker: Broker,
    spark_lake: SparkLake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """On a backlog, slow records halve the batch size, and fast ones double it. The restarts neither lose nor repeat
    anything. The lag falls to 0 despite transaction markers, and does not include an open transaction.
    """
    topic, count = Topic(broker, "sink-pace-backlog"), 7_000
    topic.send(range(count))
    topic.send(range(count, count + 10), commit=False)
    timed = Timed(spark_lake, [0.04] * 2 + [0.001] * 10)
    monkeypatch.setattr("spark_sink.job.perf_counter", timed.clock)
    log = _run(spark_lake, topic, tmp_path, timed, Batches(max_offsets=2000, worker_megabytes=10**6), None)
    topic.abort()
    _once(spark_lake, timed, count)
    assert [] == caplog.records
    changes = [(line["from"], line["to"]) for line in _told(log, "batch size changed")]
    assert [(2000, 1000), (1000, 2000)] == changes
    applied = _told(log, "batch applied")
    assert {2, 1} <= {round(line["events"] / 1000) for line in applied}
    lags = [line["lag"] for line in applied]
    assert sorted(lags, reverse=True) == lags
    assert (5, 0) == (round(lags[0] / 1000), lags[-1])
    assert all(line["worker_megabytes"] > 50 for line in applied)


def test_a_service_changes_between_batches(
    broker: Broker, spark_lake: SparkLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service waiting for its next trigger applies the new size without extra waiting or wasted plans."""
    topic = Topic(broker, "sink-pace-service")
    topic.send(range(4000))
    timed = Timed(spark_lake, [0.04])
    monkeypatch.setattr("spark_sink.job.perf_counter", timed.clock)
    # Spark's triggers fall on multiples of their interval on the wall clock. This one has none during a test.
    batches = Batches(max_offsets=2000, trigger_seconds=10**8, worker_megabytes=10**6)
    log = _run(spark_lake, topic, tmp_path, timed, batches, 2500)
    assert [2, 1] == [round(line["events"] / 1000) for line in _told(log, "batch applied")]
    assert (1, []) == (len(_told(log, "batch size changed")), _told(log, "query restarted"))
    _once(spark_lake, timed, timed.applied())
