"""Translate the messages of dead letters again, with their original coordinates.

The replay uses the service's own pipeline and topics. An event is therefore the same whether its message was translated
immediately or later. Only the differences are in this module. A message that still cannot be translated is not written
to the dead-letter topic again, and delivered dead letters are marked.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct, field

from translator.codecs.record import Record
from translator.config.settings import Settings
from translator.errors import ErrorCode, quote, unknown
from translator.kafka.partitioner import output_partition
from translator.kafka.producer import RecordProducer, producer_config
from translator.message import Needs
from translator.operations.dlq.origins import with_messages
from translator.operations.dlq.reader import Dead, Identity, LetterFilter, StoredLetter, look
from translator.operations.dlq.table_order import ReplayOrder
from translator.resolution.resolve import EventOutput
from translator.service.bootstrap import connect
from translator.service.components import Components
from translator.service.delivery.at_least_once import AtLeastOnceDelivery
from translator.service.delivery.base import Delivery
from translator.service.delivery.memory import InMemoryDelivery
from translator.service.metrics import BatchAccount
from translator.service.pipeline import Pipeline, Route
from translator.service.state_follower import follow
from translator.state.state_record import state_record
from translator.state.table_holds import HeldTable, HoldMark, Holds, caught_up, ended
from translator.translation.dead_letter import DeadLetter

AT_ONCE = 500
"""Maximum number of messages delivered before marks are written. After a crash, at most this many messages are replayed
again.
"""

SILENCE = 5.0
"""Seconds for which a replay that has caught up waits for the service to release holds."""

_PAUSE = 0.002


class Group(Struct):
    """The dead letters from one source with one code, and the results of replaying them."""

    letters: int = 0
    translated: int = 0
    events: int = 0
    skipped: int = 0
    learned: int = 0
    dead: int = 0
    impossible: int = 0
    repeated: int = 0
    """Additional dead letters for messages that are counted with their first dead letter."""


class ReplayReport(Struct):
    """A replay's totals or, for a dry run, what they would be."""

    groups: dict[tuple[str, str], Group] = field(default_factory=dict)
    still: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Dead letters that still cannot be translated. They are counted by source, by code, and by the code that they
    would have now.
    """
    reasons: dict[tuple[str, str, str], tuple[StoredLetter, str]] = field(default_factory=dict)
    """For each entry in `still`, the first dead letter and the reason why its message cannot be translated now."""
    impossible: list[tuple[StoredLetter, str]] = field(default_factory=list)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Translated messages that became new dead letters for a projection, by projection and code."""
    before: int = 0
    """Dead letters that an earlier run replayed."""
    held: dict[HeldTable, HoldMark] = field(default_factory=dict)
    """Tables that are still held."""
    caught_up: Collection[HeldTable] = ()
    """Held tables without remaining dead letters."""

    @property
    def blocked(self) -> dict[HeldTable, HoldMark]:
        """Held tables with remaining dead letters."""
        return {of: mark for of, mark in self.held.items() if of not in self.caught_up}

    def group(self, found: StoredLetter) -> Group:
        return self.groups.setdefault((found.letter.source, found.letter.code), Group())


class _Raw(Struct):
    """A record in the format that the pipeline reads."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


def replay(settings: Settings, wanted: LetterFilter, say: Callable[[str], None], *, execute: bool) -> ReplayReport:
    """Translate dead letters again, with the current configuration and all metadata in the metadata topic.

    Without `execute`, nothing is written. Dead letters that were already replayed are skipped.

    Raises:
        ConfigError: the configuration is invalid, or the dead-letter topic does not exist.
        RetryableError: no registry or no broker responded in time.
        ContradictionError: a source is stopped because of a contradiction, or a dead letter proves one.
        FatalError: something could not be read or written.
    """
    # The metadata topic is read to the end before messages are translated, and is not followed afterwards, so no
    # message waits for metadata.
    timing = settings.timing.model_copy(update={"metadata_wait": 0.0})
    components = connect(settings.model_copy(update={"timing": timing}))
    components.contradictions.check()
    replaying = _Replay(components, wanted, say, execute=execute)
    asyncio.run(replaying.run())
    components.reader.close()
    return replaying.report


class _Replay:
    """A single run of a replay."""

    def __init__(
        self, components: Components, wanted: LetterFilter, say: Callable[[str], None], *, execute: bool
    ) -> None:
        self.report = ReplayReport()
        self._components = components
        self._execute = execute
        target = components.target
        beside = {*target.holds, ErrorCode.HELD}
        self._read_letters = partial(look, components.settings, wanted, say, pending=True, beside=beside)
        self._blocks = ReplayOrder(components.holds.marks, target.holds)
        self._finished: set[Identity] = set()
        self._delivery: Delivery = self._writing() if execute else InMemoryDelivery(self._account, keeps=False)
        self._tally = BatchAccount("", "", 0)  # for the letter that is being acknowledged
        self._pipelines: dict[tuple[str | None, Holds | None], Pipeline] = {}
        self._done: list[StoredLetter] = []
        self._said: list[Record] = []

    def _writing(self) -> Delivery:
        components, target = self._components, self._components.target
        outputs = target.outputs
        written = (*(output.to for output in outputs.events), target.dead_letters, outputs.schemas, outputs.metadata)
        limits = [to.max_bytes for to in written]
        config = producer_config(components.client, components.settings.timing.delivery, limits)
        return AtLeastOnceDelivery(RecordProducer.from_config(config), self._account)

    def _look(self, before: Dead | None = None) -> Dead:
        """Read the dead letters, and the messages that the dead letters do not contain."""
        components, dead = self._components, self._read_letters(before=before)
        dead.letters = with_messages(dead.letters, components.topics, components.client, components.settings.group)
        return dead

    async def run(self) -> None:
        dead = self._look()
        self.report.before = dead.replayed
        await self._replay(dead)
        if self._execute:
            await self._mark([state_record(key, None) for key in dead.expired])
            if not dead.cut:
                await self._hand_over(dead)
        self.report.held = {**self._components.holds.marks}

    async def _replay(self, dead: Dead) -> None:
        # Read after the dead letters, because a hold is written before its first dead letter.
        self._follow()
        same = [list(twins) for _, twins in groupby(dead.letters, key=lambda found: found.identity)]
        for begin in range(0, len(same), AT_ONCE):
            await self._replay_chunk(dead, same[begin : begin + AT_ONCE])

    async def _hand_over(self, dead: Dead) -> None:
        """Report the progress to the owners of partitions, and continue with the dead letters that they held in the
        meantime.

        It ends when the owners have released all tables that have no dead letters left, or when they stop responding.
        """
        heard = time.monotonic()
        while done := self._blocks.releasable():
            said = [caught_up(of, dead.topic_id, self._read(dead, of)) for of in done]
            await self._mark([record for record in said if record not in self._said])
            await self._mark(self._ends_of_former_topics(done))
            self._said = said
            if time.monotonic() >= heard + SILENCE:
                break
            news = self._look(before=dead)
            await self._replay(news)
            if news.letters:
                heard = time.monotonic()
            dead = news
        self.report.caught_up = done

    def _ends_of_former_topics(self, done: Collection[HeldTable]) -> list[Record]:
        """Release the holds on a deleted or recreated topic, which has no owner to release them."""
        ids = self._components.topics.ids({of.topic for of in done})
        return [record for of in done if ids.get(of.topic) != of.topic_id for record in ended(of)]

    def _read(self, dead: Dead, of: HeldTable) -> int:
        to = self._components.target.dead_letters
        return dead.read[to.topic, output_partition(of.topic, of.partition, to.partitions)]

    def _follow(self) -> None:
        """Process the records that the metadata topic contains now."""
        components, metadata = self._components, (self._components.target.outputs.metadata.topic, 0)
        end = components.topics.offsets([metadata], "latest", stable=True)[metadata]
        while components.reader.next_offset(*metadata) < end:
            follow(components, components.reader.poll(0.1))

    def _impossible(self, found: StoredLetter) -> str | None:
        """Return the reason why no configuration could replay a dead letter, or None."""
        letter, translators = found.letter, self._components.translators
        outputs = [output.to.topic for output in self._components.target.outputs.events]
        if letter.body_bytes is not None:
            return (
                f"the dead letter does not contain its value of {letter.body_bytes} bytes, and the raw record no "
                "longer exists"
            )
        if letter.message.topic_id == "-":
            return f"it does not contain its topic's id (release {letter.version}), so its positions would differ"
        if letter.source not in translators:
            return unknown("source", letter.source, translators)
        if letter.output is not None and letter.output not in outputs:
            return unknown("output", letter.output, outputs)
        return None

    async def _replay_chunk(self, dead: Dead, letters: Iterable[Sequence[StoredLetter]]) -> None:
        """Replay dead letters in order, each with its duplicates. The dead letters are marked once all of their output
        has been delivered.
        """
        for twins in letters:
            await self._delivery.wait_for_capacity()
            await self._replay_letter(twins)
        await self._drain()
        if self._execute:
            version = self._components.target.version
            await self._mark([dead.mark(found, version) for found in self._done])
        self._finished.update(found.identity for found in self._done)
        self._done.clear()

    async def _replay_letter(self, twins: Sequence[StoredLetter]) -> None:
        """Replay one of the dead letters of a message, or report why none of them can be replayed."""
        possible = []
        for found in twins:
            reason = self._impossible(found)
            if found.wanted:
                self.report.group(found).letters += 1
                if reason:
                    self.report.group(found).impossible += 1
                    self.report.impossible.append((found, reason))
            if found.wanted and not reason:
                possible.append(found)
        if possible and possible[0].identity in self._finished:
            self._done += twins  # the service wrote the letter again while this run was processing it
        elif possible:
            await self._process_message(possible[0], possible[1:])
        else:
            for found in twins:
                reason = self._impossible(found)
                translator = None if reason else self._components.translators[found.letter.source]
                await self._blocks.skip(found, translator, impossible=reason is not None)

    async def _process_message(self, found: StoredLetter, twins: Sequence[StoredLetter]) -> None:
        """Translate a dead letter's message. `twins` are the other dead letters of the message. They are finished
        together with this one.
        """
        for twin in twins:
            self.report.group(twin).repeated += 1
        letter, message = found.letter, found.letter.message
        pipeline = self._pipeline(letter.output, self._blocks.holds(found))
        translator = self._components.translators[letter.source]
        # Each dead letter gets a new translator and therefore a new guard. The messages between two dead letters are
        # unknown here, so one dead letter is not evidence against another.
        pipeline.add(message.topic, Route(translator, message.topic_id))
        headers: Any = message.headers
        raw = _Raw(message.offset, message.timestamp_ms, message.key, message.value, headers)
        if not await pipeline.process(message.topic, message.partition, [raw], lambda: self._count(found, twins)):
            self._components.contradictions.check()

    def _pipeline(self, output: str | None, holds: Holds | None) -> Pipeline:
        """Return a pipeline that respects the holds. It writes to all outputs, or to the one that lacks the message."""
        if (output, holds) not in self._pipelines:
            codes = frozenset() if holds is None else self._components.target.holds
            components, target = self._components, self._components.target
            events = tuple(map(self._written, (to for to in target.outputs.events if output in (None, to.to.topic))))
            outputs = msgspec.structs.replace(target.outputs, events=events)
            self._pipelines[output, holds] = Pipeline(
                {},
                # A message that still cannot be translated is already in the topic, so the partition does not need to
                # stop.
                msgspec.structs.replace(target, outputs=outputs, stops=frozenset(), holds=codes, repeats_letters=False),
                components.catalog,
                self._delivery,
                components.contradictions,
                components.waiter,
                holds,
            )
        return self._pipelines[output, holds]

    def _written(self, output: EventOutput) -> EventOutput:
        """Return an output for this run. A dry run creates no topics."""
        if self._execute or output.routes is None:
            return output
        return msgspec.structs.replace(output, routes=output.routes.without_brokers())

    def _account(self, account: BatchAccount) -> None:
        self._tally = account

    def _count(self, found: StoredLetter, twins: Sequence[StoredLetter]) -> None:
        """Count the result for a dead letter whose output has been delivered."""
        account, group = self._tally, self.report.group(found)
        group.translated += account.translated
        group.events += account.events.total()
        group.skipped += account.skipped.total()
        group.learned += account.learned
        group.dead += account.dead.total()
        self.report.refused.update(account.refused)
        for code in account.dead:
            key = found.letter.source, found.letter.code, code
            self.report.still[key] += 1
            if key not in self.report.reasons and (reason := self._reason(found, code)):
                self.report.reasons[key] = found, reason
        if not account.dead:
            self._done += [found, *twins]

    def _reason(self, found: StoredLetter, code: str) -> str | None:
        """Return why a message is now a dead letter. Return None if the service holds it although it could be
        translated (HELD).
        """
        result = self._components.translators[found.letter.source].translate(found.letter.message)
        if isinstance(result, Needs):
            return f"metadata {quote(result.key)} is missing"
        return result.reason if isinstance(result, DeadLetter) and result.code == code else None

    async def _mark(self, marks: list[Record]) -> None:
        topic = self._components.target.outputs.metadata.topic
        batch = self._delivery.begin(BatchAccount("", topic, 0), lambda: None)
        await batch.send(topic, 0, marks)
        await batch.end_message(0)
        batch.close()
        await self._drain()

    async def _drain(self) -> None:
        self._delivery.reap()
        while self._delivery.batches:
            await asyncio.sleep(_PAUSE)
            self._delivery.reap()
