"""Measure the time from a raw message to its record, at a given rate."""

from __future__ import annotations

import itertools
import statistics
import time
from collections import defaultdict

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Message as KafkaRecord

from bench.contestants.base import Assignment, Contestant
from bench.generators import MessageStream
from bench.results import LatencyFigures
from bench.runner.feeder import Feeding, SentAt
from bench.runner.running import Running
from bench.runner.stages import batch_counts, stage_figures
from bench.runner.topics import Topics

WARM_SECONDS = 4.0
_LOOK_SECONDS = 0.5
"""Seconds from the first look at the contestant until the first message that counts. During a look, the reader is
blocked, so records that arrive then seem late.
"""
_ANSWER_SECONDS = 120.0
_FIRST = 200
"""The number of messages fed before the measurement, so that the contestant has started."""


def measure_latency(
    contestant: Contestant, assignment: Assignment, topics: Topics, rate: float, seconds: float
) -> LatencyFigures:
    """Feed a separate raw topic at `rate` messages per second, and record when a `read_committed` consumer receives the
    records.

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
        feeding.pace(rate, WARM_SECONDS + seconds)
        before = None
        while not feeding.is_done():
            running.check()
            reader.read()
            if before is None and time.time() >= begin - _LOOK_SECONDS:
                stages = batch_counts(running.metrics())
                before = running.usage().cpu_seconds, time.time()
        after = running.usage().cpu_seconds, time.time()
        sent = feeding.sent()
        assert before is not None
        cpu_seconds, passed = after[0] - before[0], after[1] - before[1]
        feeder = sorted(feeding.lateness)
        reader.read_until(_usual(assignment.stream, sum(map(len, sent.values()))), running)
        by_stage = stage_figures(stages, batch_counts(running.metrics()))
        reader.close()
    late = sorted(reader.latencies(sent, begin))
    return LatencyFigures(
        rate=rate,
        messages=len(late),
        p50_ms=statistics.median(late) * 1000,
        p99_ms=late[int(len(late) * 0.99)] * 1000,
        most_ms=late[-1] * 1000,
        cpu_us=cpu_seconds / passed / rate * 1e6,
        feeder_p99_ms=feeder[int(len(feeder) * 0.99)] * 1000,
        stages=by_stage,
    )


def _usual(stream: MessageStream, count: int) -> int:
    return sum(not message.skipped for message in itertools.islice(itertools.cycle(stream.messages), count))


class _Reader:
    """Stores each record's arrival time, and finds its raw message at the end. The consumer runs
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
        counts: defaultdict[int, int] = defaultdict(int)
        for arrived, record in self._arrivals:
            assert record.error() is None, record.error()
            partition = record.partition() or 0
            place = _origin(record) or (partition, counts[partition])
            counts[partition] += 1
            at = sent[place[0]][place[1]]
            if at >= since:
                found.append(arrived - at)
        return found


def _origin(record: KafkaRecord) -> tuple[int, int] | None:
    """Return the raw partition and the offset of a record. Return None for the record of a peer, which does not
    identify its message. A peer writes one record for each message, in order, to the partition with the same number.
    """
    found = dict(record.headers() or ()).get("cdc-id")
    if not isinstance(found, bytes):
        return None
    partition, offset = found.split(b"/")[-3:-1]  # SOURCE/TOPIC/PARTITION/OFFSET/ROW
    return int(partition), int(offset)
