"""Process one batch from one partition: translate each record, write the results, and keep the account. Independent of
Faust.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeGuard

import structlog
from msgspec import Struct

from translator.codecs.record import Record
from translator.errors import ContradictionError, ErrorCode, MessageError
from translator.kafka.partitioner import output_partition, output_place
from translator.message import Learned, Message, Needs, Skip
from translator.resolution.resolve import Outputs, OutputTopic, Resolved, Resolver, Translation
from translator.resolution.routes import TopicRefused
from translator.service.bounded_log import BoundedLog
from translator.service.delivery.base import Acknowledge, Batch, Delivery, OnStored
from translator.service.message_context import (
    MessageContext,
    RawRecord,
    account_for,
    account_of,
    message_of,
    place_of,
)
from translator.service.metadata_wait import MetadataWaiter, WaitCancelled
from translator.service.schema_announcements import SchemaAnnouncements
from translator.service.settled_messages import Settled, TopicRecords, by_topic, inspect, parts, write
from translator.state.contradiction_marks import Contradictions
from translator.state.partition_stops import PartitionStop, PartitionStopped, stop_record
from translator.state.table_holds import HoldMark, Holds
from translator.translation.dead_letter import DeadLetter, dead_letter_record
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.native_path import NativePath
from translator.translation.partition_guards import Guards
from translator.translation.translate import Events, Translator, tables_of

log = structlog.get_logger("translator")


class Route(Struct, frozen=True):
    """A raw topic with its translator and the id of its current incarnation."""

    translator: Translator
    topic_id: str


class Target(Struct, frozen=True):
    """The output side: where records are written, and how messages that cannot be translated are handled."""

    outputs: Outputs
    dead_letters: OutputTopic
    version: str
    stops: frozenset[ErrorCode] = frozenset()
    """Codes that stop their partition instead of producing a dead letter (`on_error`)."""
    holds: frozenset[ErrorCode] = frozenset()
    """Codes whose dead letters hold later messages for the same table until the dead letters are replayed
    (`on_error`).
    """
    holds_contradictions: bool = False
    """True if a message that contradicts its source's options holds only its own partition, and does not stop the
    source.
    """
    repeats_letters: bool = True
    """False during a replay, because dead letters for whole messages are already in the topic. Only a projection's dead
    letters are new.
    """


class Pipeline:
    """Turns batches into records. One instance per process.

    Args:
        on_stop: called when a partition stops.
    """

    def __init__(
        self,
        routes: Mapping[str, Route],
        target: Target,
        catalog: MetadataCatalog,
        delivery: Delivery,
        contradictions: Contradictions,
        waiter: MetadataWaiter,
        holds: Holds | None = None,
        native: Mapping[str, NativePath] | None = None,
        on_stop: Callable[[PartitionStop], object] = lambda _: None,
    ) -> None:
        self._routes: dict[str, Route] = {}
        self._target = target
        self._resolver = Resolver(target.outputs, catalog, native)
        self._announcements = SchemaAnnouncements(target.outputs.schemas.topic, catalog, delivery)
        self._delivery = delivery
        self._contradictions = contradictions
        self._waits = waiter
        self._holds = holds or Holds()
        self._guards: dict[str, Guards] = {}
        self._given_back: set[tuple[str, int]] = set()
        self._on_stop = on_stop
        self.stopped: dict[tuple[str, int], PartitionStop] = {}
        """The stopped partitions that this process owns."""
        self._letters_log = BoundedLog(log.warning)
        for topic, route in routes.items():
            self.add(topic, route)

    def add(self, topic: str, route: Route) -> None:
        """Add a raw topic."""
        self._routes[topic] = route
        self._guards[topic] = Guards(route.translator.dialect, log.warning)

    async def process(
        self,
        topic: str,
        partition: int,
        records: Sequence[RawRecord],
        done: Acknowledge,
        membership: bytes = b"",
        shorten: Callable[[int], object] = lambda _: None,
        fetched: float | None = None,
    ) -> bool:
        """Translate a batch and pass all records to the delivery, which calls `done` once everything has been
        delivered.

        Returns False if the partition is stopped, or is handed over while one of its messages waits for metadata. In
        that case, this batch and later batches are never completed, and the next owner reads them again. If the
        partition stops within the batch, the batch ends before that message and is completed.

        Args:
            membership: the group member that fetched the batch.
            shorten: called before `done` with the batch's last offset if the partition stops within the batch.
            fetched: the monotonic time at which the batch was fetched, or None if its latency is not measured.
        """
        if (topic, partition) in self._given_back or (topic, partition) in self.stopped:
            return False
        route = self._routes[topic]
        account = account_of(route.translator.source, topic, partition, records)
        account.fetched, account.begun = fetched, time.monotonic()
        batch = self._delivery.begin(account, done, membership)
        place = output_place(topic, partition)
        if not self._holds.owns((topic, partition)):
            letters = output_partition(topic, partition, self._target.dead_letters.partitions)
            await self._holds.take_over((topic, partition), route.topic_id, letters)
        messages = [message_of(record, topic, partition, route.topic_id) for record in records]
        try:
            while messages:
                self._check_source(route.translator.source, messages[0])
                run = self._resolver.resolve_run(route.translator, messages, account.native)
                await self._process_run(route.translator, batch, place, messages, run)
                messages = messages[len(run) :]
                if route.translator.is_plugin:
                    await asyncio.sleep(0)  # keeps the event loop alive while many messages take long
        except WaitCancelled:
            self._given_back.add((topic, partition))
            batch.abandon()
            return False
        except PartitionStopped as stopped:
            return await self._end_before(stopped.stop, batch, records, shorten)
        batch.close()
        return True

    def _check_source(self, source: str, message: Message) -> None:
        """Check that no contradiction was found in a message's source.

        Raises:
            PartitionStopped: a contradiction was found, by this process or by another.
        """
        reason = self._contradictions.found.get(source)
        if reason is not None:
            raise PartitionStopped.at(source, message, ErrorCode.CONTRADICTION, reason)

    async def _end_before(
        self, stop: PartitionStop, batch: Batch, records: Sequence[RawRecord], shorten: Callable[[int], object]
    ) -> bool:
        """Stop a partition. Returns whether the batch contains messages before the stop, which are completed."""
        self.stopped[stop.topic, stop.partition] = stop
        self._on_stop(stop)
        place = {"topic": stop.topic, "partition": stop.partition, "offset": stop.offset}
        log.error("partition stopped", source=stop.source, **place, code=stop.code, reason=stop.reason)
        processed = [record for record in records if record.offset < stop.offset]
        if processed:
            shorten(processed[-1].offset)
            account_for(batch.account, processed)
            batch.close()
        else:
            batch.abandon()
        await self._delivery.confirm(self._target.outputs.metadata.topic, stop_record(stop))
        return bool(processed)

    def cancel_waits(self) -> None:
        """Stop waiting for metadata, because the partitions are about to be handed over and their next owner reads
        these messages again.
        """
        self._waits.cancel_all()

    def forget(self) -> None:
        """Forget all state for the partitions. The partitions were handed over, and the next records may begin
        anywhere.
        """
        for guards in self._guards.values():
            guards.forget()
        self._holds.forget()
        self._given_back.clear()
        self.stopped.clear()
        self._waits.resume()

    async def _process_run(
        self, translator: Translator, batch: Batch, place: int, messages: Sequence[Message], run: Sequence[Resolved]
    ) -> None:
        """Process a partition's messages in order. Messages that need no wait are processed together."""
        at = 0
        for settled, found in parts(run):
            part = messages[at : at + len(found)]
            at += len(found)
            if settled and (part[0].topic, part[0].partition) not in self._holds:
                await self._write_settled(translator, batch, place, part, found)  # type: ignore[arg-type]  # all are
                continue
            for message, resolved in zip(part, found, strict=True):
                context = MessageContext(message, translator, batch, place)
                await self._process_message(context, self._plainly(context, resolved))
                await batch.end_message(message.offset)

    def _plainly(self, context: MessageContext, resolved: Resolved) -> Translation | Learned | Needs:
        """Return a message's translation from the plain path, because holds need to know its tables."""
        return resolved if _is_plain(resolved) else self._resolver.resolve(context.translator, context.message)

    async def _write_settled(
        self,
        translator: Translator,
        batch: Batch,
        place: int,
        messages: Sequence[Message],
        found: Sequence[Settled],
    ) -> None:
        """Write and count the records for messages.

        Raises:
            PartitionStopped: as for `_process_message`. Messages before the contradicting message are written.
        """
        count, contradiction = inspect(self._guards[messages[0].topic], messages, found)
        if count:
            await self._write_inspected(translator, batch, place, messages[:count], found[:count])
        if contradiction is None:
            return
        await self._contradicted(MessageContext(messages[count], translator, batch, place), contradiction)
        await batch.end_message(messages[count].offset)
        # Later messages are held.
        for message, resolved in zip(messages[count + 1 :], found[count + 1 :], strict=True):
            context = MessageContext(message, translator, batch, place)
            await self._process_message(context, self._plainly(context, resolved))
            await batch.end_message(message.offset)

    async def _write_inspected(
        self,
        translator: Translator,
        batch: Batch,
        place: int,
        messages: Sequence[Message],
        found: Sequence[Settled],
    ) -> None:
        """Write and count messages that guards have inspected.

        If a projection has no topic for some of them, only these messages are written one by one. They are found by
        bisection.
        """
        try:
            await write(batch, self._target.outputs.events, place, messages[-1].offset, found)
            return
        except TopicRefused:
            half = len(found) // 2
        if half:
            await self._write_inspected(translator, batch, place, messages[:half], found[:half])
            await self._write_inspected(translator, batch, place, messages[half:], found[half:])
            return
        context = MessageContext(messages[0], translator, batch, place)
        translation = self._plainly(context, found[0])
        if not isinstance(translation, Translation):
            translation = await self._waits.resolve(self._resolver, translator, messages[0], translation)
        await self._write(context, translation)
        batch.account.count(translation.events.events if translation.events else ())
        batch.account.translated += 1
        await batch.end_message(messages[0].offset)

    async def _process_message(self, context: MessageContext, translation: Translation | Learned | Needs) -> None:
        """Write and count a message's result.

        Raises:
            PartitionStopped: the message contradicts its source's options, or `on_error` for its code is stop.
            WaitCancelled: the partition is handed over.
        """
        if not isinstance(translation, Translation):
            translation = await self._waits.resolve(self._resolver, context.translator, context.message, translation)
        held = await self._held(context, translation) if context.partition in self._holds else None
        guards = self._guards[context.message.topic]
        try:
            if held is not None and self._holds.holds_all(context.partition):
                guards.missed(context.message)
            else:
                guards.inspect(context.message, translation.read)
        except ContradictionError as error:
            await self._contradicted(context, error)
            return
        if translation.metadata is not None:
            await self._write_learned(translation.metadata)
        outcome = held or translation.outcome
        account = context.batch.account
        if isinstance(outcome, DeadLetter):
            self._stop_at(context, outcome)
            account.dead[outcome.code] += 1
            on_stored = await self._hold(context, outcome.code)
            await self._write_dead_letter(context, outcome, None, on_stored)
            return
        if translation.events is not None:
            await self._write(context, translation)
            account.count(translation.events.events)
        match outcome:
            case Events():
                account.translated += 1
            case Learned():
                account.learned += 1
            case Skip(reason=reason):
                account.skipped[reason] += 1

    async def _contradicted(self, context: MessageContext, error: ContradictionError) -> None:
        """Stop the source of a message that contradicts its options, or hold its partition, depending on the policy.

        Raises:
            PartitionStopped: the policy is to stop. A mark informs the other processes.
        """
        translator, message = context.translator, context.message
        if not self._target.holds_contradictions:
            mark = self._contradictions.mark(translator.source, error)
            await self._delivery.confirm(self._target.outputs.metadata.topic, mark)
            reason = self._contradictions.found[translator.source]
            raise PartitionStopped.at(translator.source, message, ErrorCode.CONTRADICTION, reason)
        dead = translator.dead(message, MessageError(ErrorCode.CONTRADICTION, str(error)))
        context.batch.account.dead[dead.code] += 1
        hold = HoldMark(message.offset, dead.code, translator.source, self._target.version)
        before = partial(self._delivery.flush_partition, *context.partition)
        on_stored = await self._holds.hold(message, None, hold, before)
        await self._write_dead_letter(context, dead, None, on_stored)

    async def _write_learned(self, record: Record) -> None:
        """Publish learned metadata to the other processes before it is used."""
        await self._delivery.confirm(self._target.outputs.metadata.topic, record)

    async def _held(self, context: MessageContext, translation: Translation) -> DeadLetter | None:
        """Return the dead letter for a readable message that follows an unreadable message for the same table.

        A metadata message loses only its announcements this way, because other messages can still use the metadata.
        """
        match translation.read, translation.outcome:
            case Events(changes=changes), _:
                pass
            case Learned(announces=changes), Learned():
                pass
            case _:
                return None
        held = await self._holds.stands_before(context.message, tables_of(changes), self._waits.pause)
        if held is None:
            return None
        return context.translator.dead(context.message, MessageError(ErrorCode.HELD, str(held)))

    def _stop_at(self, context: MessageContext, dead: DeadLetter) -> None:
        """Stop the partition if the policy for this code is to stop, before anything from the message is written.

        Raises:
            PartitionStopped: the policy is to stop.
        """
        if dead.code in self._target.stops:
            raise PartitionStopped.at(context.translator.source, context.message, dead.code, dead.reason)

    async def _hold(self, context: MessageContext, code: ErrorCode) -> OnStored | None:
        """Hold the messages that follow a dead letter if its code requires it. Returns a function to call with the
        dead letter's offset.

        A held message, in turn, holds all of its tables, because its other tables now also have a gap.
        """
        if code is not ErrorCode.HELD and code not in self._target.holds:
            return None
        mark = HoldMark(context.message.offset, code, context.translator.source, self._target.version)
        before = partial(self._delivery.flush_partition, *context.partition)
        return await self._holds.hold(context.message, context.translator.tables(context.message), mark, before)

    async def _write_dead_letter(
        self, context: MessageContext, dead: DeadLetter, output: str | None, on_stored: OnStored | None = None
    ) -> None:
        """Write a dead letter. `output` is the projection if the message is missing only from that projection."""
        if output is None and not self._target.repeats_letters:
            return
        to, version, source = self._target.dead_letters, self._target.version, context.translator.source
        self._tell(context.message, source, dead, output)
        letter = dead_letter_record(context.message, dead, source, version, to.max_bytes, output)
        await context.batch.send(to.topic, context.partition_in(to), [letter], on_stored)

    def _tell(self, message: Message, source: str, dead: DeadLetter, output: str | None) -> None:
        """Log the first dead letter with a code in a minute. The reason in a dead letter contains no row data."""
        fields = place_of(message) if output is None else {**place_of(message), "output": output}
        kind = source, dead.code, output
        self._letters_log.tell("dead letter", *kind, source=source, code=dead.code, **fields, reason=dead.reason)

    async def _write(self, context: MessageContext, translation: Translation) -> None:
        """Write all of a message's events, after the schemas that they refer to.

        Outputs are independent of each other. An output that cannot accept the message's events gets no events, and a
        dead letter gives the reason.
        """
        if self._target.stops:
            for records in translation.outputs:
                if isinstance(records, DeadLetter):
                    self._stop_at(context, records)
        if translation.schemas:
            await self._announcements.announce(translation.schemas)
        account = context.batch.account
        ready = [await self._ready(context, translation, number) for number in range(len(translation.outputs))]
        for output, found in zip(self._target.outputs.events, ready, strict=False):
            if isinstance(found, DeadLetter):
                account.refused[output.to.topic, found.code] += 1
                await self._write_dead_letter(context, found, output.to.topic)
                continue
            for part in found:
                await context.batch.send(part.topic, context.place % part.partitions, part.records)
                account.written[output.to.topic] += len(part.records)

    async def _ready(
        self, context: MessageContext, translation: Translation, number: int
    ) -> list[TopicRecords] | DeadLetter:
        """Return a message's records for the output with this number, or the reason why that output gets none."""
        records, output = translation.outputs[number], self._target.outputs.events[number]
        if isinstance(records, DeadLetter):
            return records
        try:
            return await by_topic(output, number, context.translator.source, [translation])
        except TopicRefused as error:
            dead = context.translator.dead(context.message, MessageError(ErrorCode.TOPIC_REFUSED, str(error)))
            if self._target.stops:
                self._stop_at(context, dead)
            return dead


def _is_plain(resolved: Resolved) -> TypeGuard[Translation | Learned | Needs]:
    return isinstance(resolved, (Translation, Learned, Needs))
