"""Read the service's state from nothing but the topics: positions, lag, stops, dead letters, holds and the newest
schemas.

This does not require joining a group, so it also works while the service is stopped.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from cdc_core.table_id import joined_name
from translator.config.settings import Settings
from translator.dialects import InstalledPlugin, plugins_among
from translator.kafka import client_config
from translator.kafka.admin import GroupMember, TopicAdmin, TopicFacts
from translator.kafka.offset_ranges import Partitions, Place, Range, places_of
from translator.kafka.subscription import Subscribed, resolve
from translator.operations.dlq.reader import Dead, LetterFilter, look
from translator.state.partition_stops import PartitionStop
from translator.state.state_snapshot import StateSnapshot, read_state

_SCHEMAS = 5
"""Maximum number of schemas to show, newest first."""


class PartitionStatus(Struct, frozen=True):
    """One raw partition's position.

    Args:
        committed: the offset at which the group resumes, or None if the group has committed nothing.
        lag: the number of unread offsets. Some of them have no record.
        behind_seconds: the age of the oldest unread record by its timestamp, or 0 if all records have been read.
        rate: the offsets per second since the last refresh, or None at the first refresh.
    """

    source: str
    topic: str
    partition: int
    first: int
    committed: int | None
    end: int
    lag: int
    behind_seconds: float
    rate: float | None = None


class DeadLetters(Struct, frozen=True):
    """The number of a source's dead letters with one code that have not been replayed."""

    source: str
    code: str
    count: int


class HeldTableStatus(Struct, frozen=True):
    """A table that waits for a message to be replayed."""

    table: str
    since_offset: int
    code: str


class StoppedPartition(Struct, frozen=True):
    """A partition that is stopped at a message (`on_error: stop`, or a contradiction)."""

    source: str
    topic: str
    partition: int
    offset: int
    code: str
    reason: str


class NewSchema(Struct, frozen=True):
    """A table's schema.

    Args:
        since_ms: time at which the schema was published, in milliseconds since 1970.
    """

    source: str
    table: str
    schema_id: str
    since_ms: int


class Status(Struct, frozen=True):
    """The complete state at one point in time.

    Args:
        members: the processes that read as this group, or None if the brokers do not report them.
        missing: sentences about the topics that do not exist.
        plugins: the plug-ins that provide the sources' dialects, as installed where the command runs.
    """

    at_ms: int
    group: str
    partitions: Sequence[PartitionStatus]
    dead: Sequence[DeadLetters]
    held: Sequence[HeldTableStatus]
    schemas: Sequence[NewSchema]
    members: Sequence[GroupMember] | None = None
    missing: Sequence[str] = field(default_factory=list)
    stopped: Sequence[StoppedPartition] = field(default_factory=list)
    plugins: Sequence[InstalledPlugin] = field(default_factory=list)

    @property
    def membership(self) -> str:
        """The number of members, in words."""
        if self.members is None:
            return "members: unknown, because the brokers did not report them"
        if not self.members:
            return "members: 0 – no process is running in this group"
        return f"members: {len(self.members)}"


class StatusLooker:
    """Queries the state repeatedly. Rates are relative to the previous query.

    Args:
        letters: returns the dead letters, if a caller follows them. If None, each query reads all of them.
        state: returns the schemas and the metadata, if a caller caches them. If None, each query reads all of them.

    Raises:
        RetryableError: no broker responds.
    """

    def __init__(
        self,
        settings: Settings,
        say: Callable[[str], None],
        letters: Callable[[], Dead] | None = None,
        state: Callable[[], StateSnapshot] | None = None,
    ) -> None:
        self._letters = letters or (lambda: look(settings, LetterFilter(), say, pending=True))
        self._state = state or (lambda: read_state(settings, say))
        self._settings = settings
        self._client = client_config.librdkafka(settings.kafka)
        self._admin = TopicAdmin(self._client)
        self._admin.wait_for_broker(settings.timing.broker_wait, say)
        self._before: dict[Place, tuple[float, int]] = {}

    def look(self) -> Status:
        there = self._admin.names()
        subscribed, missing = resolve(self._settings, there)
        missing += [f"topic {topic} does not exist" for topic in subscribed if topic not in there]
        known = {topic: source for topic, source in subscribed.items() if topic in there}
        output = self._settings.output
        unwritten = [topic for topic in self._settings.written_topics if topic not in there]
        missing += [f"topic {topic} does not exist: the service has not run yet" for topic in unwritten]
        facts = self._admin.describe(known)
        partitions = list(self._partitions(known, facts))
        dead = Dead("")
        if not {output.dead_letter_topic, output.metadata_topic} & set(unwritten):
            dead = self._letters()
        schemas: Sequence[NewSchema] = ()
        stopped: Sequence[StoppedPartition] = ()
        if not {output.schemas_topic, output.metadata_topic} & set(unwritten):
            state = self._state()
            schemas = _newest_schemas(state)
            stopped = list(_standing(state.stops, partitions, facts))
        return Status(
            at_ms=time.time_ns() // 1_000_000,
            group=self._settings.group,
            partitions=partitions,
            dead=list(_counted(dead)),
            held=[HeldTableStatus(str(of), mark.since, mark.code) for of, mark in sorted(dead.held.items(), key=_name)],
            schemas=schemas,
            members=self._admin.members(self._settings.group),
            missing=missing,
            stopped=stopped,
            plugins=plugins_among(source.dialect for source in self._settings.sources),
        )

    def _partitions(self, known: Subscribed, facts: Mapping[str, TopicFacts]) -> Iterator[PartitionStatus]:
        places = [place for topic in known for place in places_of(topic, facts[topic], None)]
        if not places:
            return
        ends = self._admin.offsets(places, "latest", stable=True)
        firsts = self._admin.offsets(places, "earliest")
        committed = self._admin.committed(self._settings.group, places)
        now = time.monotonic()
        reader = Partitions(self._client, self._settings.group)
        for place in places:
            at = committed[place].offset if place in committed else None
            position = firsts[place] if at is None else max(at, firsts[place])
            before = self._before.get(place)
            self._before[place] = now, position
            yield PartitionStatus(
                known[place[0]].name,
                *place,
                first=firsts[place],
                committed=at,
                end=ends[place],
                lag=max(0, ends[place] - position),
                behind_seconds=_behind(reader, Range(*place, position, ends[place])),
                rate=None if before is None else (position - before[1]) / max(now - before[0], 1e-3),
            )
        reader.close()


def _standing(
    stops: Iterable[PartitionStop], partitions: Iterable[PartitionStatus], facts: Mapping[str, TopicFacts]
) -> Iterator[StoppedPartition]:
    """Return the stops that the group has not passed yet."""
    committed = {(partition.topic, partition.partition): partition.committed for partition in partitions}
    for stop in sorted(stops, key=lambda stop: (stop.topic, stop.partition)):
        place = stop.topic, stop.partition
        if place in committed and stop.stands(facts[stop.topic].id, committed[place]):
            yield StoppedPartition(stop.source, *place, stop.offset, stop.code, stop.reason)


def _newest_schemas(state: StateSnapshot) -> list[NewSchema]:
    newest = sorted(state.schemas.items(), key=lambda item: item[1][0], reverse=True)[:_SCHEMAS]
    return [
        NewSchema(schema.source, joined_name(schema.db, schema.schema, schema.table), schema.id, since)
        for _, (since, schema) in newest
    ]


def places_text(member: GroupMember) -> str:
    """Return a member's partitions as text: `crm.canal/0,1 hr.qlik/2`."""
    topics: dict[str, list[str]] = {}
    for topic, partition in member.partitions:
        topics.setdefault(topic, []).append(str(partition))
    return " ".join(f"{topic}/{','.join(numbers)}" for topic, numbers in topics.items()) or "none"


def _name(item: tuple[Any, Any]) -> str:
    return str(item[0].name)


def _behind(reader: Partitions, unread: Range) -> float:
    """Return the age of the first record in a range in seconds, or 0 if the range is empty."""
    record = next(iter(reader.read(unread)), None)
    return 0.0 if record is None else max(0.0, time.time() - record.timestamp()[1] / 1000)


def _counted(dead: Dead) -> Iterator[DeadLetters]:
    counts: Mapping[tuple[str, str], int] = Counter(
        (found.letter.source, found.letter.code) for found in dead.letters if not found.replayed
    )
    for (source, code), count in sorted(counts.items()):
        yield DeadLetters(source, code, count)
