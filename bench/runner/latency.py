"""Measure the time from a raw message to its record, at half of the rate that a contestant can sustain."""

from __future__ import annotations

import itertools
import statistics
import time

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Message as KafkaRecord

from bench.contestants.base import Assignment, Contestant
from bench.generators import MessageStream
from bench.results import LatencyFigures
from bench.runner.feeder import Feeding, SentAt
from bench.runner.running import Running
from bench.runner.topics import Topics

WARM_SECONDS = 4.0
_ANSWER_SECONDS = 120.0
_FIRST = 200
"""The number of messages that are fed before the measurement, so that the contestant has started."""


def measure_latency(
    contestant: Contestant, assignment: Assignment, topics: Topics, rate: float, seconds: float
) -> LatencyFigures:
    """Feed a separate raw topic at half of `rate`, and record the times at which a `read_committed` consumer receives
    the records.

    This function creates the assignment's raw topic.
    """
    topics.create(assignment.output, assignment.spec.partitions)
    topics.create_raw(assignment.raw, assignment.stream, assignment.spec.partitions)
    with (
        Running(contestant.launches(assignment), assignment.directory) as running,
        Feeding(assignment.bootstrap, assignment.raw, assignment.stream, _FIRST) as feeding,
    ):
        reader = _Reader(assignment)
        reader.read_until(_usual(assignment.stream, _FIRST), running)
        begin = time.time() + WARM_SECONDS
        feeding.pace(rate / 2, WARM_SECONDS + seconds)
        while not feeding.is_done():
            running.check()
            reader.read()
        sent = feeding.sent()
        reader.read_until(_usual(assignment.stream, sum(map(len, sent.values()))), running)
        reader.close()
    late = sorted(reader.latencies(sent, begin))
    return LatencyFigures(
        rate=rate / 2,
        messages=len(late),
        p50_ms=statistics.median(late) * 1000,
        p99_ms=late[int(len(late) * 0.99)] * 1000,
        most_ms=late[-1] * 1000,
    )


def _usual(stream: MessageStream, count: int) -> int:
    return sum(not message.skipped for message in itertools.islice(itertools.cycle(stream.messages), count))


class _Reader:
    """Stores the time at which each record arrived, and finds each record's raw message at the end. The consumer runs
    on the same processors as the contestant.
    """

    def __init__(self, assignment: Assignment) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": assignment.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 5,
            }
        )
        numbers = range(assignment.spec.partitions)
        self._consumer.assign([TopicPartition(assignment.output, number, 0) for number in numbers])
        self._arrivals: list[tuple[float, KafkaRecord]] = []

    def read(self) -> None:
        """Read the records that are available."""
        found = self._consumer.consume(5000, 0.005)
        now = time.time()
        self._arrivals.extend((now, record) for record in found)

    def read_until(self, count: int, running: Running) -> None:
        """Read records until the total number of records reaches `count`."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while len(self._arrivals) < count:
            self.read()
            running.check()
            assert time.monotonic() < deadline, (
                f"only {len(self._arrivals)} of {count} records arrived: {running.tail()}"
            )

    def close(self) -> None:
        self._consumer.close()

    def latencies(self, sent: SentAt, since: float) -> list[float]:
        """Return the latencies in seconds, for messages sent after that time."""
        found = []
        for arrived, record in self._arrivals:
            assert record.error() is None, record.error()
            # SOURCE/TOPIC/PARTITION/OFFSET/ROW
            partition, offset = _id_of(record).split(b"/")[-3:-1]
            at = sent[int(partition)][int(offset)]
            if at >= since:
                found.append(arrived - at)
        return found


def _id_of(record: KafkaRecord) -> bytes:
    found = dict(record.headers() or ())["cdc-id"]
    assert isinstance(found, bytes)
    return found
