"""The commits of a group over time, which show when faults can happen and how long recovery takes."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.chaos.messages import PARTITIONS

Offsets = dict[int, int]
"""By partition."""

_PAUSE = 0.2


@dataclass(frozen=True)
class Mark:
    """A point in time from which recovery is measured."""

    what: str
    at: float
    committed: Offsets


@dataclass
class Sample:
    """The committed offsets and the end offsets of the raw topic."""

    at: float
    committed: Offsets
    ends: Offsets


@dataclass
class Progress:
    """Poll the brokers a few times per second."""

    bootstrap: str
    group: str
    topic: str
    samples: list[Sample] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(30)

    def committed(self) -> Offsets:
        return self.samples[-1].committed if self.samples else dict.fromkeys(range(PARTITIONS), 0)

    def asked_now(self, seconds: float = 300) -> Offsets:
        """Return the offsets committed at some time after this call. Wait for brokers that can answer.

        Raises:
            AssertionError: none can within that time.
        """
        enough = len(self.samples) + 2  # the next sample may have been requested earlier
        deadline = time.monotonic() + seconds
        while len(self.samples) < enough:
            assert time.monotonic() < deadline, f"nobody says what is committed within {seconds:g} s"
            time.sleep(0.05)
        return self.committed()

    def mark(self, what: str) -> None:
        """Record that a fault has just happened or that an outage has just ended."""
        self.marks.append(Mark(what, time.monotonic(), self.committed()))

    def wait(self, what: str, partitions: int = PARTITIONS, seconds: float = 300) -> None:
        """Wait until that many partitions have new commits since the call.

        Raises:
            AssertionError: they have not within that time.
        """
        before = self.committed()
        deadline = time.monotonic() + seconds
        while sum(offset > before[number] for number, offset in self.committed().items()) < partitions:
            assert time.monotonic() < deadline, f"{what}: no progress within {seconds:g} s"
            time.sleep(0.05)

    def recovery(self, mark: Mark) -> float | None:
        """Return the seconds from a mark until every partition with a backlog had a new commit, or None."""
        last = self.committed()
        waiting = {number for number, offset in mark.committed.items() if last[number] > offset}
        if not waiting:
            return None
        for sample in self.samples:
            if sample.at > mark.at and all(sample.committed[number] > mark.committed[number] for number in waiting):
                return sample.at - mark.at
        return None

    def slowest(self) -> float | None:
        """Return the longest recovery. For overlapping faults, it counts from the later one."""
        found = []
        for mark, following in zip(self.marks, [*self.marks, None][1:], strict=True):
            seconds = self.recovery(mark)
            if seconds is not None and (following is None or mark.at + seconds < following.at):
                found.append(seconds)
        return max(found, default=None)

    def commit_ages(self) -> list[tuple[float, float]]:
        """Return (time, age in seconds of the oldest uncommitted record in the worst partition)."""
        ages = []
        first = dict.fromkeys(range(PARTITIONS), 0)  # by partition: the first sample with a higher end
        for now in self.samples:
            worst = 0.0
            for number, committed in now.committed.items():
                while self.samples[first[number]].ends.get(number, 0) <= committed:
                    if self.samples[first[number]] is now:
                        break
                    first[number] += 1
                else:
                    worst = max(worst, now.at - self.samples[first[number]].at)
            ages.append((now.at, worst))
        return ages

    def _run(self) -> None:
        places = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        while not self._ended.is_set():
            # Use a new client after each failure. An old one can query the former leader for minutes after a leader
            # change.
            client: dict[str, str | int | float | bool] = {"bootstrap.servers": self.bootstrap, "log_level": 0}
            with closing(Consumer(client | {"group.id": self.group, "enable.auto.commit": False})) as reader:
                try:
                    while not self._ended.wait(_PAUSE):
                        self.samples.append(_sample(reader, places))
                except KafkaException:
                    continue


def _sample(reader: Consumer, places: list[TopicPartition]) -> Sample:
    answered = reader.committed(places, timeout=3)
    for place in answered:
        if place.error is not None:
            raise KafkaException(place.error)
    found = {place.partition: max(place.offset, 0) for place in answered}
    ends = {place.partition: reader.get_watermark_offsets(place, timeout=3)[1] for place in places}
    return Sample(time.monotonic(), found, ends)
