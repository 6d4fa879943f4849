"""Replay: the messages of dead letters, translated again with their original coordinates.

The service's own pipeline does it, into the service's own topics, so that an event is the same whether its message was
translated at once or later. What differs stands here: a letter that stays dead is not written a second time, and what
was delivered is marked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec
from confluent_kafka import Producer
from msgspec import Struct, field

from translator.codecs.record import Record
from translator.dead_letter import read_dead_letter
from translator.errors import unknown
from translator.runtime.dead_letters import Dead, Found, Wanted, look
from translator.runtime.delivery import Delivery, InFlight, producer_config
from translator.runtime.metrics import Tally
from translator.runtime.pipeline import Pipeline, Route
from translator.runtime.start import World, connect
from translator.runtime.transport import positive_murmur2
from translator.settings import Settings

AT_ONCE = 500
"""Messages that are delivered before marks are written; after a crash at most so many are replayed again."""

_PAUSE = 0.002


class Group(Struct):
    """The letters of one source and one code, and what became of them."""

    letters: int = 0
    translated: int = 0
    events: int = 0
    skipped: int = 0
    learned: int = 0
    dead: int = 0
    impossible: int = 0
    repeated: int = 0
    """Further letters of a message that is counted with its first."""


class Report(Struct):
    """A replay, counted; a dry run counts what would be."""

    groups: dict[tuple[str, str], Group] = field(default_factory=dict)
    still: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Letters that stay dead, by source, code and the code that they would have now."""
    impossible: list[tuple[Found, str]] = field(default_factory=list)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Translated, but a new dead letter of a projection; by projection and code."""
    before: int = 0
    """Letters that an earlier run has replayed."""

    def group(self, found: Found) -> Group:
        return self.groups.setdefault((found.letter.source, found.letter.code), Group())


class _Raw(Struct):
    """What a pipeline reads of a record of the consumer library."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class _Delivery(Delivery):
    """Writes what the service would write, but for letters that stay dead: they lie in the topic already.

    A message that was dead as a whole and is now refused by a projection alone is written: that letter is new.
    """

    def __init__(self, producer: Producer, account: Callable[[Tally], None], dead_letters: str, *, write: bool) -> None:
        super().__init__(producer, account)
        self._dead_letters = dead_letters
        self._write = write

    async def send(self, batch: InFlight, topic: str, partition: int, records: Sequence[Record]) -> None:
        if topic == self._dead_letters:
            records = [record for record in records if _names_projection(record)]
        if self._write:
            await super().send(batch, topic, partition, records)

    async def confirm(self, topic: str, record: Record) -> None:
        if self._write:
            await super().confirm(topic, record)


def _names_projection(record: Record) -> bool:
    headers: list[Any] = record.headers  # those of a dead letter are bytes
    letter = read_dead_letter(record.key, record.value, headers)
    return letter is not None and letter.output is not None


def replay(settings: Settings, wanted: Wanted, say: Callable[[str], None], *, execute: bool) -> Report:
    """Translates dead letters again, with the present configuration and all metadata that the metadata topic holds.

    Without `execute` nothing is written. Letters that were replayed before are left out.

    Raises:
        ConfigError: the configuration is wrong, or there is no dead-letter topic.
        RetryableError: no registry or no broker answered in time.
        ContradictionError: the service stands still, for an earlier process met one.
        FatalError: something could not be read or written.
    """
    # The metadata topic is read to its end first, and nobody follows it afterwards: waiting would be in vain.
    timing = settings.timing.model_copy(update={"metadata_wait": 0.0})
    world = connect(settings.model_copy(update={"timing": timing}))
    world.reader.close()
    dead = look(settings, wanted, say, pending=True)
    replaying = _Replay(world, dead, execute=execute)
    asyncio.run(replaying.run())
    return replaying.report


class _Replay:
    """One run."""

    def __init__(self, world: World, dead: Dead, *, execute: bool) -> None:
        self.report = Report()
        self._world = world
        self._dead = dead
        self._execute = execute
        target = world.target
        written = (*(output.to for output in target.outputs), target.dead_letters, target.schemas, target.metadata)
        limits = [to.max_bytes for to in written]
        producer = Producer(producer_config(world.client, world.settings.timing.delivery, limits))
        self._delivery = _Delivery(producer, self._account, target.dead_letters.topic, write=execute)
        self._tally = Tally("", "", 0)  # of the letter that is being acknowledged
        self._pipelines: dict[str | None, Pipeline] = {}
        self._done: list[Found] = []

    async def run(self) -> None:
        self.report.before = self._dead.replayed
        possible = []
        for found in self._dead.letters:
            group = self.report.group(found)
            group.letters += 1
            if reason := self._impossible(found):
                group.impossible += 1
                self.report.impossible.append((found, reason))
            else:
                possible.append(found)
        same = [list(twins) for _, twins in groupby(possible, key=lambda found: found.identity)]
        for begin in range(0, len(same), AT_ONCE):
            await self._some(same[begin : begin + AT_ONCE])
        if self._execute:
            await self._mark([Record(key.encode(), None, []) for key in self._dead.expired])

    def _impossible(self, found: Found) -> str | None:
        """Why a letter cannot be replayed whatever the configuration says of its messages."""
        letter, translators = found.letter, self._world.translators
        outputs = [output.to.topic for output in self._world.target.outputs]
        if letter.body_bytes is not None:
            return (
                f"its body of {letter.body_bytes} bytes did not fit the dead-letter topic; it lies at its origin,"
                " if the raw topic still holds it"
            )
        if letter.message.topic_id == "-":
            return f"it does not name the id of its topic, without which positions differ (release {letter.version})"
        if letter.source not in translators:
            return unknown("source", letter.source, translators)
        if letter.output is not None and letter.output not in outputs:
            return unknown("output", letter.output, outputs)
        return None

    async def _some(self, letters: Iterable[Sequence[Found]]) -> None:
        """Replays letters in order, each with its twins; when all that came of them was delivered, they are marked."""
        for first, *twins in letters:
            await self._delivery.room()
            await self._one(first, twins)
        await self._drain()
        if self._execute:
            mark, version = self._dead.mark, self._world.target.version
            await self._mark([mark(found, version) for found in self._done])
        self._done.clear()

    async def _one(self, found: Found, twins: Sequence[Found]) -> None:
        """Translates the message of a letter; `twins` are further letters of it, which are done with it."""
        for twin in twins:
            self.report.group(twin).repeated += 1
        letter, message = found.letter, found.letter.message
        pipeline = self._pipeline(letter.output)
        translator = self._world.translators[letter.source]
        # For each letter anew, and so with a guard of its own: what lay between two letters is not known here, so none
        # is evidence against another.
        pipeline.add(message.topic, Route(translator, message.topic_id, positive_murmur2(message.topic)))
        headers: Any = message.headers
        raw = _Raw(message.offset, message.timestamp_ms, message.key, message.value, headers)
        await pipeline.process(message.topic, message.partition, [raw], lambda: self._count(found, twins))

    def _pipeline(self, output: str | None) -> Pipeline:
        """The pipeline to all outputs, or to the one that lacks the message."""
        if output not in self._pipelines:
            world, target = self._world, self._world.target
            outputs = tuple(to for to in target.outputs if output in (None, to.to.topic))
            self._pipelines[output] = Pipeline(
                {},
                # A letter that stays dead lies there already: there is nothing to stop for.
                msgspec.structs.replace(target, outputs=outputs, stops=frozenset()),
                world.catalog,
                self._delivery,
                world.contradictions,
                world.waits,
            )
        return self._pipelines[output]

    def _account(self, tally: Tally) -> None:
        self._tally = tally

    def _count(self, found: Found, twins: Sequence[Found]) -> None:
        """What became of a letter, of which everything was delivered."""
        tally, group = self._tally, self.report.group(found)
        group.translated += tally.translated
        group.events += tally.events.total()
        group.skipped += tally.skipped.total()
        group.learned += tally.learned
        group.dead += tally.dead.total()
        self.report.refused.update(tally.refused)
        for code in tally.dead:
            self.report.still[found.letter.source, found.letter.code, code] += 1
        if not tally.dead:
            self._done += [found, *twins]

    async def _mark(self, marks: Sequence[Record]) -> None:
        topic = self._world.target.metadata.topic
        batch = self._delivery.begin(Tally("", topic, 0), lambda: None)
        await self._delivery.send(batch, topic, 0, marks)
        batch.closed = True
        await self._drain()

    async def _drain(self) -> None:
        self._delivery.reap()
        while self._delivery.batches:
            await asyncio.sleep(_PAUSE)
            self._delivery.reap()
