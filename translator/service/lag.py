"""The lag of the partitions that this process owns: against the brokers' word, not that of the last fetch.

A number out of fetches stands still when fetching does, which is when it is looked at. So the ends of partitions are
asked for, and where nothing was acknowledged since the last look, the time of the first record behind that: its age
grows while somebody is stuck, and where all was read, both numbers are 0.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog
from msgspec import Struct

from translator.errors import FatalError, RetryableError
from translator.kafka.admin import TopicAdmin
from translator.kafka.offset_ranges import Partitions, Place, Range
from translator.service.metrics import BatchAccount, Metrics

log = structlog.get_logger("translator")

LOOK_SECONDS = 5.0
"""Between two looks."""


class Reached(Struct, frozen=True):
    """The point up to which a partition was acknowledged.

    Args:
        next_offset: of the first record that was not.
        newest_ms: time of the last record that was, milliseconds since 1970; None: none was since the assignment.
    """

    next_offset: int
    newest_ms: int | None = None


class PartitionLag(Struct, frozen=True):
    """The lag of a partition.

    Args:
        records: offsets that were not acknowledged; some may hold no record.
        since_ms: time of the oldest of them, milliseconds since 1970; None: none of the offsets holds a record.
        is_read: it is of that record; else of the last one before, which was acknowledged.
    """

    records: int
    since_ms: int | None
    is_read: bool

    def seconds(self, now: float) -> float:
        """Return the age of what was not acknowledged, by its own time; `now` in seconds since 1970."""
        return 0.0 if self.since_ms is None else max(0.0, now - self.since_ms / 1000)


LookAtEnds = Callable[[Iterable[Place]], Mapping[Place, int]]
"""Partitions -> the end of what a reader of committed records may see; blocks."""

TimeOfFirst = Callable[[Range], int | None]
"""The time of the first record of a range, milliseconds since 1970; None where it has none; blocks."""


class RawTopicLag:
    """Looks at the lag, and tells the metrics.

    Args:
        source_of: the source of a raw topic.
    """

    def __init__(
        self, metrics: Metrics, source_of: Callable[[str], str], ends: LookAtEnds, time_of_first: TimeOfFirst
    ) -> None:
        self._metrics = metrics
        self._source_of = source_of
        self._ends = ends
        self._time_of_first = time_of_first
        self._reached: dict[Place, Reached] = {}
        self._seen: dict[Place, Reached] = {}  # at the last look
        self._lags: dict[Place, PartitionLag] = {}
        self._assignments = 0

    def acknowledged(self, account: BatchAccount) -> None:
        """Take an acknowledged batch in."""
        if account.next_offset is not None:
            self._reached[account.topic, account.partition] = Reached(account.next_offset, account.newest_record_ms)

    def forget(self) -> None:
        """Forget the partitions: they were given up."""
        self._reached.clear()
        self._seen.clear()
        self._lags.clear()
        self._assignments += 1
        self._metrics.forget_lag()

    @property
    def records(self) -> int:
        """The offsets that were not acknowledged at the last look, of all partitions."""
        return sum(lag.records for lag in self._lags.values())

    @property
    def seconds(self) -> float:
        """The largest lag in time."""
        now = time.time()
        return max((lag.seconds(now) for lag in self._lags.values()), default=0.0)

    async def look(self, assigned: Mapping[Place, int]) -> None:
        """Look at partitions, and tell the metrics; while no broker answers, what was seen grows older.

        Args:
            assigned: where the reading of each began.
        """
        assignments = self._assignments
        reached = {place: self._reached.get(place, Reached(offset)) for place, offset in assigned.items()}
        try:
            lags = await asyncio.to_thread(self._look, reached)
        except (RetryableError, FatalError) as error:
            log.warning("looking at the lag failed; it is tried again", error=str(error))
        else:
            if assignments != self._assignments:
                return
            self._lags, self._seen = lags, reached
            self._metrics.lag_seen.set_to_current_time()
        now = time.time()
        for (topic, partition), lag in self._lags.items():
            self._metrics.tell_lag(self._source_of(topic), topic, partition, lag.records, lag.seconds(now))

    def _look(self, reached: Mapping[Place, Reached]) -> dict[Place, PartitionLag]:
        ends = self._ends(reached) if reached else {}
        return {place: self._lag(place, of, ends[place]) for place, of in reached.items()}

    def _lag(self, place: Place, of: Reached, end: int) -> PartitionLag:
        """Return the lag of a partition; only one that stands still is read, and one record of it once."""
        records = max(0, end - of.next_offset)
        if not records:
            return PartitionLag(0, None, True)
        stands = self._seen.get(place) == of
        if not stands and of.newest_ms is not None:
            return PartitionLag(records, of.newest_ms, False)
        before = self._lags.get(place)
        if (
            stands
            and before is not None
            and before.is_read
            and (before.since_ms is not None or before.records == records)
        ):
            return PartitionLag(records, before.since_ms, True)
        return PartitionLag(records, self._time_of_first(Range(*place, of.next_offset, end)), True)


def lag_of(
    client: Mapping[str, Any], topics: TopicAdmin, group: str, metrics: Metrics, source_of: Callable[[str], str]
) -> RawTopicLag:
    """Return the lag against real brokers; `group` is not joined."""

    def time_of_first(unread: Range) -> int | None:
        reader = Partitions(client, group)
        try:
            record = next(iter(reader.read(unread)), None)
        finally:
            reader.close()
        time_ms = 0 if record is None else int(record.timestamp()[1])
        return time_ms if time_ms > 0 else None

    return RawTopicLag(metrics, source_of, lambda places: topics.offsets(places, "latest", stable=True), time_of_first)
