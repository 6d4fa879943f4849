"""Determine where to start reading a partition: at the group's committed offset. If this offset is unusable, raise an
error.

If the record at the committed offset was deleted, the client library would jump to the earliest offset. If the topic
was recreated, the library would resume at whatever record now has this offset. Here, both cases are a gap
(docs/design.md §6) and stop the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
import structlog
from msgspec import Struct

from translator.codecs.record import Record
from translator.config.setting_types import Start
from translator.config.settings import Settings
from translator.errors import FatalError, RetryableError
from translator.kafka.admin import Committed, TopicAdmin, TopicFacts
from translator.kafka.offset_note import END, check_note, noted
from translator.kafka.retry import retry_until
from translator.service.bounded_log import BoundedLog
from translator.service.metrics import Metrics
from translator.state.state_record import state_record

log = structlog.get_logger("translator")

GAP_PREFIX = "!gap/"
"""Key prefix for accepted gaps in the metadata topic. No source name begins with it."""

_NOTE = "topic="
_PATIENCE = 20.0
# Interval at which brokers look for expired transactions (transaction.abort.timed.out.…interval.ms: 10 s).
_ABORTED_AFTER = 15.0

_TOLD = 50
"""Maximum number of partitions whose offsets are logged at an assignment."""

Partition: TypeAlias = tuple[str, int]


def offset_lookup_timeout(settings: Settings) -> float:
    """Return how many seconds to retry reading the offsets of partitions.

    While a dead process still has an open transaction, its offsets are unknown until the transaction times out.
    """
    return _PATIENCE if settings.delivery == "at_least_once" else settings.timing.delivery + _ABORTED_AFTER


class AddedTopic(Struct, frozen=True):
    """The state in which the process found a raw topic that it added. Partitions created since then are read from their
    beginning.
    """

    source: str
    facts: TopicFacts
    start: Start


class PartitionOffsets(Struct, frozen=True):
    """The broker's view of a partition: the group's offset with its metadata, and the existing offsets."""

    committed: Committed | None
    earliest: int
    end: int
    """One past the last record, including records in open transactions."""


class Gap(Struct, frozen=True):
    """A committed offset that no longer exists, or that belongs to another topic."""

    topic: str
    topic_id: str
    partition: int
    committed: int
    earliest: int
    end: int
    missing: int | None
    """The number of missing offsets, or None if it cannot be determined."""
    cause: str

    def __str__(self) -> str:
        many = "an unknown number of" if self.missing is None else str(self.missing)
        return (
            f"topic {self.topic} partition {self.partition}: {self.cause}; committed offset {self.committed}, earliest "
            f"available offset {self.earliest}, end {self.end}: {many} records are missing"
        )


class GapError(FatalError):
    """Records that the group has not read were deleted."""


class FoundOffsets(Struct, frozen=True):
    """The offsets at which to resume. `new` offsets are not committed yet. They must be committed before anything is
    read.
    """

    offsets: dict[Partition, int]
    new: dict[Partition, int]


class StartOffsets:
    """Finds the start positions for partitions.

    Args:
        accept_gap: whether to resume at the earliest offset and record the gap.
        confirm: writes a record to the metadata topic.
        patience: time limit for one query, in seconds.
    """

    def __init__(
        self,
        topics: TopicAdmin,
        group: str,
        metrics: Metrics,
        confirm: Callable[[Record], Awaitable[None]],
        *,
        accept_gap: bool,
        patience: float = _PATIENCE,
    ) -> None:
        self._topics = topics
        self._group = group
        self._metrics = metrics
        self._confirm = confirm
        self._accept_gap = accept_gap
        self._patience = patience
        self._known: dict[str, AddedTopic] = {}
        self._fresh_log = BoundedLog(log.info, _TOLD)

    def add(self, topic: str, known: AddedTopic) -> None:
        """Add a raw topic."""
        self._known[topic] = known

    def note(self, topic: str) -> str:
        """Return the metadata to commit with an offset: the incarnation of the offset's topic, and the format."""
        return noted(f"{_NOTE}{self._known[topic].facts.id}")

    async def find(self, partitions: Iterable[Partition]) -> FoundOffsets:
        """Return the start positions for newly assigned partitions.

        Raises:
            GapError: there is a gap, and the operator has not accepted it.
            FatalError: a topic was recreated since the process started, or a later release committed the offsets.
            RetryableError: no broker responds.
        """
        places = await asyncio.to_thread(self._ask, sorted(partitions))
        gaps = self._gaps(places)
        if gaps and not self._accept_gap:
            raise GapError(f"{'; '.join(map(str, gaps))}. {_REMEDY}")
        for gap in gaps:
            await self._accept(gap)
        beyond = {(gap.topic, gap.partition): gap.earliest for gap in gaps}
        fresh = [partition for partition, place in places.items() if place.committed is None]
        new = {**beyond, **await asyncio.to_thread(self._starts, fresh, places)}
        left = {partition: place.committed.offset for partition, place in places.items() if place.committed is not None}
        found = FoundOffsets({**left, **new}, new)
        log.info("partitions assigned", count=len(found.offsets), **_told(found.offsets))
        return found

    async def lost(self, partitions: Iterable[Partition], said: str) -> FatalError:
        """Return the reason why a committed offset no longer exists. A running service never accepts gaps."""
        try:
            places = await asyncio.to_thread(self._ask, sorted(partitions))
        except (FatalError, RetryableError) as error:
            return FatalError(f"{said}: {error}")
        if gaps := self._gaps(places):
            return GapError(f"{'; '.join(map(str, gaps))}. {_REMEDY}")
        return FatalError(
            f"{said}. The offsets that the group has committed exist: nothing is missing, and the next start "
            "resumes there"
        )

    def look(self) -> None:
        """Check that the added topics have not been recreated; blocks. A deleted topic is not an error.

        Raises:
            FatalError: a topic was recreated.
            RetryableError: no broker responds.
        """
        self._same(self._topics.ids(self._known))

    def _same(self, ids: Mapping[str, str]) -> None:
        for topic, topic_id in ids.items():
            if topic_id != self._known[topic].facts.id:
                raise FatalError(
                    f"topic {topic} was deleted and recreated since the start: its id changed from "
                    f"{self._known[topic].facts.id} to {topic_id}. Unread records of the old topic are lost; "
                    "the next start reads the new one"
                )

    def _ask(self, partitions: list[Partition]) -> dict[Partition, PartitionOffsets]:
        return retry_until("broker", lambda _: self._places(partitions), self._patience, log.warning)

    def _places(self, partitions: list[Partition]) -> dict[Partition, PartitionOffsets]:
        names = {topic for topic, _ in partitions}
        ids = self._topics.ids(names)
        if absent := names - ids.keys():
            raise RetryableError(f"the broker does not know {', '.join(sorted(absent))}")
        self._same(ids)
        committed = self._topics.committed(self._group, partitions)
        # The committed offsets are read before the end, so that an offset committed in between does not appear to be
        # beyond the end.
        end = self._topics.offsets(partitions, "latest")
        earliest = self._topics.offsets(partitions, "earliest")
        return {where: PartitionOffsets(committed.get(where), earliest[where], end[where]) for where in partitions}

    def _gaps(self, places: Mapping[Partition, PartitionOffsets]) -> list[Gap]:
        found = []
        for (topic, partition), place in places.items():
            committed = place.committed
            if committed is None:
                continue
            topic_id, offset = self._known[topic].facts.id, committed.offset
            check_note(committed.note, f"the offset of group {self._group} in topic {topic}, partition {partition}")
            note, _, _ = committed.note.partition(END)
            missing = None
            if note.startswith(_NOTE) and note != f"{_NOTE}{topic_id}":
                cause = f"the topic was deleted and recreated ({note}, now {topic_id})"
            elif offset > place.end:
                cause = "the topic ends before the committed offset: it was recreated or has lost records"
            elif offset < place.earliest:
                cause, missing = "records were deleted before they were read", place.earliest - offset
            else:
                continue
            found.append(Gap(topic, topic_id, partition, offset, place.earliest, place.end, missing, cause))
        return found

    async def _accept(self, gap: Gap) -> None:
        """Record accepted gaps permanently, with one record per gap in the metadata topic."""
        key = f"{GAP_PREFIX}{gap.topic}/{gap.partition}/{gap.topic_id}/{gap.committed}"
        await self._confirm(state_record(key, msgspec.json.encode(gap)))
        where = (self._known[gap.topic].source, gap.topic, str(gap.partition))
        self._metrics.gaps.labels(*where).inc()
        self._metrics.missing.labels(*where).inc(gap.missing or 0)
        log.error("gap accepted, resuming at earliest offset", gap=str(gap))

    def _starts(
        self, partitions: list[Partition], places: Mapping[Partition, PartitionOffsets]
    ) -> dict[Partition, int]:
        """Return offsets for partitions without a committed offset."""
        starts = {}
        for where in partitions:
            known = self._known[where[0]]
            start: Start = known.start if where[1] < known.facts.partitions else "earliest"
            if isinstance(start, datetime):
                starts[where] = self._at(where, start)
            else:
                starts[where] = places[where].earliest if start == "earliest" else self._stable_end(where)
            self._fresh_log.tell(
                "partition without a committed offset", topic=where[0], partition=where[1], start=starts[where]
            )
        return starts

    def _at(self, where: Partition, time: datetime) -> int:
        """Return the offset of the first record at or after that time, or of the next new record."""
        end = self._stable_end(where)  # the end is queried first, or a record that arrives in between would be skipped
        found = self._topics.offsets([where], int(time.timestamp() * 1000))[where]
        return found if found >= 0 else end

    def _stable_end(self, where: Partition) -> int:
        """Return the end offset before records of open transactions, because these become readable later."""
        return self._topics.offsets([where], "latest", stable=True)[where]


def _told(offsets: Mapping[Partition, int]) -> Mapping[str, Any]:
    """Return offsets for the log, limited to the number of partitions that fit into a line."""
    told = dict(sorted(offsets.items())[:_TOLD])
    fields: dict[str, Any] = {
        "offsets": {f"{topic}/{partition}": offset for (topic, partition), offset in told.items()}
    }
    return fields if len(told) == len(offsets) else {**fields, "left_out": len(offsets) - len(told)}


_REMEDY = (
    "Events of these records were never written: reload the tables, or repair the target in another way. Then start "
    "once with `translator run --accept-gap`, which resumes at the earliest offset and records the gap"
)
