"""Write a benchmark's history to a canonical topic from a separate process. The memory for the generator's rows then
does not count as the sink's. The process imports this module again, so it must not be the main module.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable
from contextlib import closing
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.sink.events import PARTITIONS, Feed, Workload

TOPIC = "bench.canonical"


class Feeder:
    """A context manager for a process that owns a workload and writes parts of it on request."""

    def __init__(self, bootstrap: str, tables: int, topic: str = TOPIC) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._asks, answers = spawning.Pipe()
        self._process = spawning.Process(target=_feed, args=(answers, bootstrap, tables, topic), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None, "it has been started"
        return pid

    def load(self, count: int) -> int:
        """Write this number of rows as a full load, and return the total size of the record values."""
        return self._ask("load", count)

    def changes(self, count: int) -> int:
        """Write this number of changes, and return the total size of the record values."""
        return self._ask("changes", count)

    def _ask(self, part: str, count: int) -> int:
        self._asks.send((part, count))
        while not self._asks.poll(1):
            if not self._process.is_alive():
                raise AssertionError(f"the feeder exited with code {self._process.exitcode}")
        written: int = self._asks.recv()
        return written


def _feed(asks: Connection, bootstrap: str, tables: int, topic: str) -> None:
    workload = Workload(tables)
    parts = {"load": workload.load, "changes": workload.changes}
    while True:
        part, count = asks.recv()
        asks.send(write(bootstrap, parts[part](count), topic))


def create_topic(bootstrap: str, name: str = TOPIC) -> None:
    # The client must exist until the response has arrived.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)


def ends(bootstrap: str, topic: str = TOPIC) -> list[int]:
    """Return the current number of records by partition."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})) as reader:
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return [reader.get_watermark_offsets(place, timeout=30)[1] for place in places]


def write(bootstrap: str, records: Iterable[Feed], topic: str = TOPIC) -> int:
    """Write records as fast as the broker accepts them, and return the total size of the record values."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "enable.idempotence": True})
    written = 0
    for partition, key, value in records:
        written += len(value)
        while True:
            try:
                producer.produce(topic, value, key, partition)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return written
