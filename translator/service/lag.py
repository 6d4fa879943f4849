"""Measure the lag of the partitions that this process owns. It is based on the brokers' end offsets, not on the last
fetch.

A lag based on fetches stops changing when fetching stops, and this is exactly when the lag matters. End offsets are
therefore requested from the brokers. If nothing was acknowledged since the last check, the lag in time is the age of
the first unacknowledged record. It grows while the partition is stuck. Once everything has been read, both numbers are
0.
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
from translator.service.broker_connection import BrokerConnection
from translator.service.metrics import BatchAccount, Metrics

log = structlog.get_logger("translator")

LOOK_SECONDS = 5.0
"""Seconds between checks."""

_KNOWN_SECONDS = 4 * LOOK_SECONDS
"""The number of seconds after which a result is outdated, for example because a check waits for a broker that hangs.
"""


class Reached(Struct, frozen=True):
    """The point up to which a partition was acknowledged.

    Args:
        next_offset: the first unacknowledged record's offset.
        newest_ms: the last acknowledged record's timestamp, in milliseconds since 1970. None if nothing has been
            acknowledged since the assignment.
    """

    next_offset: int
    newest_ms: int | None = None


class PartitionLag(Struct, frozen=True):
    """A partition's lag.

    Args:
        records: number of unacknowledged offsets. Some have no record.
        since_ms: the timestamp of the oldest unacknowledged record, in milliseconds since 1970. None if all were
            acknowledged.
    """

    records: int
    since_ms: int | None
    is_read: bool

    def seconds(self, now: float) -> float:
        """Return the age of unacknowledged records by their timestamp. `now` is in seconds since 1970."""
        return 0.0 if self.since_ms is None else max(0.0, now - self.since_ms / 1000)


LookAtEnds = Callable[[Iterable[Place]], Mapping[Place, int]]
"""Returns the end offset of each partition for a consumer of committed records. Blocks."""

TimeOfFirst = Callable[[Range], int | None]
"""Returns the timestamp of the first record in a range, in milliseconds since 1970, or None if the range has no record.
Blocks.
"""


class RawTopicLag:
    """Measures the lag and updates the metrics.

    Args:
        source_of: returns a raw topic's source.
        reach: raises RetryableError if no broker responds. Blocks.
    """

    def __init__(
        self,
        metrics: Metrics,
        source_of: Callable[[str], str],
        ends: LookAtEnds,
        time_of_first: TimeOfFirst,
        reach: Callable[[], object],
    ) -> None:
        self._metrics = metrics
        self._source_of = source_of
        self._ends = ends
        self._time_of_first = time_of_first
        self._reach = reach
        self.brokers = BrokerConnection()
        self._known_at: float | None = None
        self._failure = ""
        self._reached: dict[Place, Reached] = {}
        self._seen: dict[Place, Reached] = {}  # at the last check
        self._lags: dict[Place, PartitionLag] = {}
        self._assignments = 0

    def acknowledged(self, account: BatchAccount) -> None:
        """Add an acknowledged batch."""
        if account.next_offset is not None:
            self._reached[account.topic, account.partition] = Reached(account.next_offset, account.newest_record_ms)

    def forget(self) -> None:
        """Forget all partitions, because they were handed over."""
        self._reached.clear()
        self._seen.clear()
        self._lags.clear()
        self._known_at = None
        self._assignments += 1
        self._metrics.forget_lag()

    @property
    def _is_known(self) -> bool:
        return self._known_at is not None and time.monotonic() - self._known_at < _KNOWN_SECONDS

    @property
    def records(self) -> int | None:
        """The number of unacknowledged offsets in all partitions, or None if the last check did not succeed."""
        return sum(lag.records for lag in self._lags.values()) if self._is_known else None

    @property
    def seconds(self) -> float | None:
        """The largest lag in time, or None if the last check did not succeed."""
        now = time.time()
        return max((lag.seconds(now) for lag in self._lags.values()), default=0.0) if self._is_known else None

    async def look(self, assigned: Mapping[Place, int]) -> None:
        """Check partitions and update the metrics. While no broker responds, the last result is kept.

        Args:
            assigned: the offset at which we started reading each partition.
        """
        assignments = self._assignments
        reached = {place: self._reached.get(place, Reached(offset)) for place, offset in assigned.items()}
        try:
            lags = await asyncio.to_thread(self._look, reached)
        except (RetryableError, FatalError) as error:
            self._known_at = None
            await self._explain(error)
        else:
            self.brokers.restore()
            self._failure = ""
            if assignments != self._assignments:
                return
            self._lags, self._seen = lags, reached
            self._known_at = time.monotonic()
            self._metrics.lag_seen.set_to_current_time()
        now = time.time()
        for (topic, partition), lag in self._lags.items():
            self._metrics.tell_lag(self._source_of(topic), topic, partition, lag.records, lag.seconds(now))

    async def _explain(self, error: Exception) -> None:
        """Log why a check failed: once per outage, or once per reason if brokers respond."""
        try:
            await asyncio.to_thread(self._reach)
        except RetryableError as away:
            self.brokers.lose(str(away))
            return
        self.brokers.restore()
        if self._failure != str(error):
            self._failure = str(error)
            log.warning("lag check failed, will retry", error=self._failure)

    def _look(self, reached: Mapping[Place, Reached]) -> dict[Place, PartitionLag]:
        ends = self._ends(reached) if reached else {}
        return {place: self._lag(place, of, ends[place]) for place, of in reached.items()}

    def _lag(self, place: Place, of: Reached, end: int) -> PartitionLag:
        """Return a partition's lag. A record is read only if the partition made no progress. No record is read
        twice.
        """
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
    """Return the lag with real brokers. `group` is not joined."""

    def time_of_first(unread: Range) -> int | None:
        reader = Partitions(client, group)
        try:
            record = next(iter(reader.read(unread)), None)
        finally:
            reader.close()
        time_ms = 0 if record is None else int(record.timestamp()[1])
        return time_ms if time_ms > 0 else None

    def ends(places: Iterable[Place]) -> Mapping[Place, int]:
        return topics.offsets(places, "latest", stable=True)

    return RawTopicLag(metrics, source_of, ends, time_of_first, topics.names)
