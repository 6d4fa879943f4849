"""Writes the history of a benchmark to the canonical topic, in a process of its own.

The rows that the generator remembers are not the sink's memory. The process imports this module anew, so that it is
none that is run as a program.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.sink.events import PARTITIONS, Feed, Workload

TOPIC = "bench.canonical"


class HistorySize(NamedTuple):
    """The number of events, by part."""

    tables: int
    load: int
    warm_up: int
    changes: int

    def parts(self) -> tuple[Workload, Iterator[Iterator[Feed]]]:
        """The parts in order, each to be taken whole before the next; the workload knows the rows then."""
        workload = Workload(self.tables)
        changes = (workload.changes(count) for count in (self.warm_up, self.changes))
        return workload, chain([workload.load(self.load)], changes)


def create_topic(bootstrap: str) -> None:
    topic = NewTopic(TOPIC, PARTITIONS, 1)
    # The client must live until the answer is there.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([topic])[TOPIC].result(30)


def feed(bootstrap: str, history: HistorySize, part: int) -> list[int]:
    """Write one part of the history; how many records each partition has then."""
    feeder = multiprocessing.get_context("spawn").Process(target=_feed, args=(bootstrap, history, part))
    feeder.start()
    feeder.join()
    if feeder.exitcode != 0:
        sys.exit(f"the feeder ended with code {feeder.exitcode}")
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})) as reader:
        places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        return [reader.get_watermark_offsets(place, timeout=30)[1] for place in places]


def _feed(bootstrap: str, history: HistorySize, part: int) -> None:
    _, parts = history.parts()
    for _ in range(part):
        deque(next(parts), maxlen=0)
    write(bootstrap, next(parts))


def write(bootstrap: str, records: Iterable[Feed]) -> None:
    """Write records as fast as the broker takes them."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "enable.idempotence": True})
    for partition, key, value in records:
        while True:
            try:
                producer.produce(TOPIC, value, key, partition)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
