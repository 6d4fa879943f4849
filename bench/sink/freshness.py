"""Measure how old a change is when readers can first see its row. The sink is a separate process that receives a steady
stream of changes.
"""

from __future__ import annotations

import bisect
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import msgspec
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable

from bench.measure import machine, table
from bench.processes import Tree
from bench.sink.events import PARTITIONS, Workload
from bench.sink.feeder import TOPIC, create_topic, ends
from spark_sink.config.settings import Spark

_TABLES, _ROWS = 50, 100_000
_TRIGGER_SECONDS = 10

# The duration of the warm-up, which does not count. During the warm-up, the sink starts, tables are created, and Java's
# compiler is busy.
_WARM_UP_SECONDS = 60

_TICK_SECONDS = 0.02
_PATIENCE_SECONDS = 600.0


def freshness(bootstrap: str, folder: Path, spark: Spark, apart: int, rate: int, seconds: int) -> Iterator[str]:
    """Return the report lines.

    Args:
        spark: Spark settings for the sink.
        apart: the broker's process, whose time does not count as the sink's.
        rate: changes per second.
        seconds: how long the stream lasts, after a warm-up of one minute.
    """
    create_topic(bootstrap)
    workload = Workload(_TABLES)
    _announce(bootstrap, workload)
    with _sink(bootstrap, folder, spark) as sink, Tree({apart}) as tree:
        _send(bootstrap, workload.load(_ROWS), _ROWS)
        _send(bootstrap, workload.changes(rate * _WARM_UP_SECONDS), rate)
        began, cpu = ends(bootstrap), tree.cpu_seconds()
        _send(bootstrap, workload.changes(rate * seconds), rate)
        ended = ends(bootstrap)
        _await(sink, folder, ended)
        cpu, peak = tree.cpu_seconds() - cpu, tree.peak_bytes()
    ages = _ages(bootstrap, folder, began, ended)
    head = ["changes/s", "trigger s", "changes", "age median s", "p99 s", "most s", "processor s", "peak memory"]
    row = [
        *(str(rate), str(_TRIGGER_SECONDS), str(len(ages))),
        *(f"{seconds:.1f}" for seconds in (median(ages), quantiles(ages, n=100)[98], max(ages), cpu)),
        f"{peak / 2**30:.1f} GiB",
    ]
    yield table(head, [row])
    yield machine("pyspark", "deltalake", "pyarrow")


def _announce(bootstrap: str, workload: Workload) -> None:
    name = f"{TOPIC}.schemas"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config={"cleanup.policy": "compact"})])[name].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for schema in workload.schemas:
        producer.produce(name, msgspec.json.encode(schema), schema.topic_key)
    producer.flush()


@contextmanager
def _sink(bootstrap: str, folder: Path, spark: Spark) -> Iterator[subprocess.Popen[bytes]]:
    """Run the sink while the block runs."""
    settings = {
        "pipeline": "bench",
        "kafka": {"bootstrap_servers": bootstrap},
        "input": {"topic": TOPIC},
        "tables": {"warehouse": str(folder / "warehouse")},
        "checkpoint": str(folder / "checkpoint"),
        "batches": {"trigger_seconds": _TRIGGER_SECONDS},
        "spark": {"master": spark.master, "memory": spark.memory, "jars": list(spark.jars), "conf": dict(spark.conf)},
    }
    config = folder / "sink.yaml"
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    with (folder / "sink.log").open("w") as log:
        command = [sys.executable, "-m", "spark_sink", "run", "-c", str(config)]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_PATIENCE_SECONDS)


def _send(bootstrap: str, records: Iterator[Any], rate: int) -> None:
    """Write this number of records per second. After a delay, also write the records that are overdue."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
    started, sent = time.monotonic(), 0
    while True:
        due = int(rate * (time.monotonic() - started)) - sent
        some = list(islice(records, max(due, 1)))
        for partition, key, value in some:
            producer.produce(TOPIC, value, key, partition)
        if not some:
            break
        sent += len(some)
        producer.poll(0)
        time.sleep(_TICK_SECONDS)
    producer.flush()


def _await(sink: subprocess.Popen[bytes], folder: Path, offsets: Sequence[int]) -> None:
    """Wait until the sink has applied all records in the topic up to these offsets."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while any(
        not batches or batches[-1][0] < offset for batches, offset in zip(_batches(folder), offsets, strict=True)
    ):
        if sink.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"the sink did not apply everything; its log is {folder / 'sink.log'}")
        time.sleep(1)


def _batches(folder: Path) -> list[list[tuple[int, float]]]:
    """Return, for each partition, the applied offsets and the end times of their batches (seconds since 1970), in
    order.
    """
    reached: list[list[tuple[int, float]]] = [[] for _ in range(PARTITIONS)]
    control_table = folder / "warehouse" / "_cdc" / "batches"
    for row in DeltaTable(control_table).to_pyarrow_table(columns=["to_offsets", "ended_at"]).to_pylist():
        for partition, offset in row["to_offsets"]:
            reached[partition].append((offset, row["ended_at"].timestamp()))
    return [sorted(batches) for batches in reached]


def _ages(bootstrap: str, folder: Path, first: Sequence[int], end: Sequence[int]) -> list[float]:
    """Return the seconds from the arrival of each record in the topic, by the broker's clock, to the end of its
    batch.
    """
    ages = []
    batches = _batches(folder)
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})) as reader:
        reader.assign([TopicPartition(TOPIC, number, offset) for number, offset in enumerate(first)])
        left = sum(end) - sum(first)
        while left > 0:
            for record in reader.consume(min(left, 10_000), 1.0):
                left -= 1
                partition, offset = record.partition(), record.offset()
                assert partition is not None, "it has come from the broker"
                assert offset is not None, "it has come from the broker"
                _, milliseconds = record.timestamp()
                mine = batches[partition]
                _, ended = mine[bisect.bisect_right(mine, (offset, float("inf")))]
                ages.append(ended - milliseconds / 1000)
    return ages
