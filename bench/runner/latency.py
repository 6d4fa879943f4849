"""The time from a raw message to its record, while messages come at half the rate that a contestant can take."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections import defaultdict

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka import Message as KafkaRecord

from bench.contestants.base import Assignment, Contestant
from bench.generators import MessageStream
from bench.results import LatencyFigures
from bench.runner.running import Running
from bench.runner.topics import Topics

WARM_SECONDS = 4.0
_SLICE_SECONDS = 0.01
_ANSWER_SECONDS = 120.0
_FIRST = 200
"""Messages that are fed before the pace begins, so that the contestant has started."""

_Sent = defaultdict[int, list[float]]
"""By raw partition: when each of its messages was handed to the producer; the index is the offset."""


def measure_latency(
    contestant: Contestant, assignment: Assignment, topics: Topics, rate: float, seconds: float
) -> LatencyFigures:
    """Feed a raw topic of its own at half of `rate`, and see when records come to a reader of committed records.

    The raw topic of the assignment is made here.
    """
    topics.create(assignment.output, assignment.spec.partitions)
    topics.create_raw(assignment.raw, assignment.stream, assignment.spec.partitions)
    with Running(contestant.launches(assignment), assignment.directory) as running:
        feeder = _Feeder(assignment.bootstrap, assignment.raw, assignment.stream)
        reader = _Reader(assignment)
        feeder.feed(_FIRST)
        expected = _usual(assignment.stream, _FIRST)
        reader.read_until(expected, running)
        arrivals = threading.Thread(target=feeder.pace, args=(rate / 2, WARM_SECONDS + seconds), name="feeder")
        begin = time.time() + WARM_SECONDS
        arrivals.start()
        while arrivals.is_alive():
            running.check()
            reader.read()
        reader.read_until(_usual(assignment.stream, feeder.count), running)
        reader.close()
    late = sorted(reader.latencies(feeder.sent, begin))
    return LatencyFigures(
        rate=rate / 2,
        messages=len(late),
        p50_ms=statistics.median(late) * 1000,
        p99_ms=late[int(len(late) * 0.99)] * 1000,
        most_ms=late[-1] * 1000,
    )


def _usual(stream: MessageStream, count: int) -> int:
    return sum(not message.skipped for message in itertools.islice(itertools.cycle(stream.messages), count))


class _Feeder:
    def __init__(self, bootstrap: str, topic: str, stream: MessageStream) -> None:
        self.sent: _Sent = defaultdict(list)
        self.count = 0
        self._topic = topic
        self._messages = itertools.cycle(stream.messages)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "enable.idempotence": True})

    def feed(self, count: int) -> None:
        """Write so many messages at once."""
        for message in itertools.islice(self._messages, count):
            self.sent[message.partition].append(time.time())
            self._producer.produce(self._topic, message.value, partition=message.partition)
        self.count += count
        self._producer.poll(0)

    def pace(self, rate: float, seconds: float) -> None:
        """Write `rate` messages a second."""
        begin = time.monotonic()
        done = 0
        while (passed := time.monotonic() - begin) < seconds:
            due = int(passed * rate) - done
            self.feed(due)
            done += due
            time.sleep(_SLICE_SECONDS)
        assert not self._producer.flush(_ANSWER_SECONDS), "the broker does not take the raw messages"


class _Reader:
    """Keeps which record came when, and looks up its raw message at the end."""

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
        self._arrivals: list[tuple[float, bytes]] = []

    def read(self) -> None:
        """Take what is there."""
        found = self._consumer.consume(5000, 0.005)
        now = time.time()
        for record in found:
            assert record.error() is None, record.error()
            self._arrivals.append((now, _id_of(record)))

    def read_until(self, count: int, running: Running) -> None:
        """Take records until there are so many in all."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while len(self._arrivals) < count:
            self.read()
            running.check()
            assert time.monotonic() < deadline, f"{len(self._arrivals)} of {count} records came: {running.tail()}"

    def close(self) -> None:
        self._consumer.close()

    def latencies(self, sent: _Sent, since: float) -> list[float]:
        """Seconds, of messages that were sent after that time."""
        found = []
        for arrived, id_ in self._arrivals:
            # SOURCE/TOPIC/PARTITION/OFFSET/ROW
            partition, offset = id_.split(b"/")[-3:-1]
            at = sent[int(partition)][int(offset)]
            if at >= since:
                found.append(arrived - at)
        return found


def _id_of(record: KafkaRecord) -> bytes:
    found = dict(record.headers() or ())["cdc-id"]
    assert isinstance(found, bytes)
    return found
