"""One batch of one partition: translate each record, write what comes of it, keep the account. No Faust here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import msgspec
import structlog
from msgspec import Struct

from cdc_core.envelope import TableSchema
from translator.codecs import Codec
from translator.codecs.record import Record, record_size
from translator.errors import ContradictionError, ErrorCode, FatalError, MessageError
from translator.message import Change, Learned, Message, Needs, Skip
from translator.service.delivery.base import Acknowledge, Batch, Delivery
from translator.service.metadata_wait import MetadataWaiter, WaitCancelled
from translator.service.metrics import BatchAccount
from translator.state.contradiction_marks import Contradictions
from translator.state.metadata_topic import document_record
from translator.state.table_holds import HoldMark, Holds
from translator.translation.dead_letter import DeadLetter, dead_letter_record
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.partition_guards import Guards
from translator.translation.translate import RUN, Events, Result, Translator, tables_of

log = structlog.get_logger("translator")


class RawRecord(Protocol):
    """What is read of a record of the consumer library."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class Route(Struct, frozen=True):
    """A raw topic: who translates it, which incarnation of it this is, and where its partition 0 goes."""

    translator: Translator
    topic_id: str
    partition_hash: int


class OutputTopic(Struct, frozen=True):
    """A topic that is written."""

    topic: str
    partitions: int
    max_bytes: int


Encoded: TypeAlias = list[tuple[OutputTopic, list[Record] | DeadLetter]]
"""What a message is for each output, the canonical topic first: all its records, or why there are none."""


class EventOutput(Struct, frozen=True):
    """Where all events go, and in which form: the canonical topic or a projection."""

    codec: Codec
    to: OutputTopic


class Target(Struct, frozen=True):
    """The output side; the canonical topic is the first of the outputs."""

    outputs: tuple[EventOutput, ...]
    dead_letters: OutputTopic
    schemas: OutputTopic
    metadata: OutputTopic
    version: str
    stops: frozenset[ErrorCode] = frozenset()
    """Codes that stop the process instead of becoming a dead letter (`on_error`)."""
    holds: frozenset[ErrorCode] = frozenset()
    """Codes of dead letters that later messages of their table follow, until they are replayed (`on_error`)."""
    repeats_letters: bool = True
    """False: dead letters of whole messages lie in the topic already (a replay); those of one projection are new."""


class Pipeline:
    """Batches in, records out; one instance a process."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        target: Target,
        catalog: MetadataCatalog,
        delivery: Delivery,
        contradictions: Contradictions,
        waiter: MetadataWaiter,
        holds: Holds | None = None,
    ) -> None:
        self._routes: dict[str, Route] = {}
        self._target = target
        self._catalog = catalog
        self._delivery = delivery
        self._contradictions = contradictions
        self._waits = waiter
        self._holds = holds or Holds()
        self._guards: dict[str, Guards] = {}
        self._given_back: set[tuple[str, int]] = set()
        self._announcing: dict[str, asyncio.Task[None]] = {}  # by key in the schemas topic
        for topic, route in routes.items():
            self.add(topic, route)

    def add(self, topic: str, route: Route) -> None:
        """Takes a raw topic on."""
        self._routes[topic] = route
        self._guards[topic] = Guards(route.translator.dialect, log.warning)

    async def process(
        self, topic: str, partition: int, records: Sequence[RawRecord], done: Acknowledge, membership: bytes = b""
    ) -> bool:
        """Translates a batch and hands everything to the producer; `done` is called when all of it was delivered.

        `membership` says who we were in the group when it was fetched.

        False: the partition is given away while a message of it waits for metadata. The batch, and any after it, will
        never be done; the next owner reads it again.
        """
        if (topic, partition) in self._given_back:
            return False
        route = self._routes[topic]
        account = BatchAccount(route.translator.source, topic, partition, len(records))
        batch = self._delivery.begin(account, done, membership)
        # Modulo the partitions of an output, this is one partition for all that comes of a raw partition, so the whole
        # order of it survives (docs/design.md §4.3).
        place = route.partition_hash + partition
        if not self._holds.owns((topic, partition)):
            letters = place % self._target.dead_letters.partitions
            await self._holds.take_over((topic, partition), route.topic_id, letters)
        messages = [_message(route, topic, partition, record) for record in records]
        try:
            while messages:
                results = route.translator.translate_run(messages[:RUN])
                run, messages = messages[: len(results)], messages[len(results) :]
                encoded = [self._encoded(route.translator, *pair) for pair in zip(run, results, strict=True)]
                for message, result, records_of in zip(run, results, encoded, strict=True):
                    await self._process_message(batch, route.translator, message, result, records_of, place)
                    await batch.end_message(message.offset)
        except WaitCancelled:
            self._given_back.add((topic, partition))
            batch.abandon()
            return False
        batch.close()
        return True

    def cancel_waits(self) -> None:
        """Partitions are about to be given up: what waits for metadata is left to the next owner."""
        self._waits.cancel_all()

    def forget(self) -> None:
        """Forgets what is known of partitions: they were given up, and what comes next of them may be anything."""
        for guards in self._guards.values():
            guards.forget()
        self._holds.forget()
        self._given_back.clear()
        self._waits.resume()

    async def _process_message(
        self,
        batch: Batch,
        translator: Translator,
        message: Message,
        result: Result,
        encoded: Encoded,
        place: int,
    ) -> None:
        while isinstance(result, Needs):
            error = await self._waits.obtain(translator, result)
            result = translator.translate(message) if error is None else translator.dead(message, error)
            encoded = self._encoded(translator, message, result)
        try:
            self._guards[message.topic].inspect(message, result)
        except ContradictionError as error:
            mark = self._contradictions.mark(translator.source, error)
            await self._delivery.confirm(self._target.metadata.topic, mark)
            raise
        if isinstance(result, Events):
            held = None
            if (message.topic, message.partition) in self._holds:  # asked here, too: this runs for every message
                held = await self._held(translator, message, result.changes)
            schemas = held or self._schemas_to_announce(translator, message, result, encoded)
            if isinstance(schemas, DeadLetter):
                result = schemas
            else:
                await self._write(batch, translator, message, schemas, encoded, place)
        elif isinstance(result, Learned):
            result = await self._learn(batch, translator, message, result, place)
        match result:
            case Events():
                batch.account.translated += 1
                batch.account.count(result.events)
            case Skip(reason=reason):
                batch.account.skipped[reason] += 1
            case Learned():
                batch.account.learned += 1
            case DeadLetter(code=code):
                self._stop_at(result)
                batch.account.dead[code] += 1
                seen = await self._hold(translator, message, code)
                await self._write_dead_letter(batch, translator, message, result, place, None, seen)

    def _stop_at(self, dead: DeadLetter) -> None:
        """What the operator wants no dead letter of ends the process, before anything of the message is written.

        Raises:
            FatalError: it is of that kind.
        """
        if dead.code in self._target.stops:
            raise FatalError(f"{dead.code}: {dead.reason}; on_error says stop")

    async def _write_dead_letter(
        self,
        batch: Batch,
        translator: Translator,
        message: Message,
        dead: DeadLetter,
        place: int,
        output: str | None,
        seen: Callable[[int], None] | None = None,
    ) -> None:
        """Writes a dead letter; `output` names the projection when only that one is without the message."""
        if output is None and not self._target.repeats_letters:
            return
        to, version = self._target.dead_letters, self._target.version
        letter = dead_letter_record(message, dead, translator.source, version, to.max_bytes, output)
        await batch.send(to.topic, place % to.partitions, [letter], seen)

    async def _held(self, translator: Translator, message: Message, changes: Sequence[Change]) -> DeadLetter | None:
        """The dead letter of a message that could be translated, but comes after one of its table that could not."""
        if (message.topic, message.partition) not in self._holds:
            return None
        held = await self._holds.stands_before(message, tables_of(changes), self._waits.pause)
        if held is None:
            return None
        return translator.dead(message, MessageError(ErrorCode.HELD, str(held)))

    async def _hold(self, translator: Translator, message: Message, code: ErrorCode) -> Callable[[int], None] | None:
        """Holds what comes after a dead letter, where its code says so. Gives what is to be told where it lies.

        A message that is held itself holds all of its tables: the others have a hole now, too.
        """
        if code is not ErrorCode.HELD and code not in self._target.holds:
            return None
        mark = HoldMark(message.offset, code, translator.source, self._target.version)
        before = partial(self._delivery.flush_partition, message.topic, message.partition)
        return await self._holds.hold(message, translator.tables(message), mark, before)

    def _schemas_to_announce(
        self, translator: Translator, message: Message, events: Events, encoded: Encoded
    ) -> dict[str, Record] | DeadLetter:
        """The schemas to announce before the events of a message are written, by key, or why nothing of it can be.

        What the canonical topic cannot take, no output gets; what a projection cannot take is missing there alone.
        """
        _, canonical = encoded[0]
        if isinstance(canonical, DeadLetter):
            return canonical
        known = self._catalog.is_announced
        new = [schema for schema in events.schemas if schema is not None and not known(schema)]
        if not new:
            return {}
        schemas = {schema.topic_key: schema_record(schema) for schema in new}
        return self._too_large(translator, message, schemas.values(), self._target.schemas) or schemas

    async def _write(
        self,
        batch: Batch,
        translator: Translator,
        message: Message,
        schemas: Mapping[str, Record],
        encoded: Encoded,
        place: int,
    ) -> None:
        """Writes all events of a message, and before them the schemas that they name; see `_schemas_to_announce`.

        That is so for each output: one that cannot take them gets none, and the dead letter says why.
        """
        if self._target.stops:
            for _, records in encoded:
                if isinstance(records, DeadLetter):
                    self._stop_at(records)
        if schemas:
            await self._announce(schemas)
        for to, records in encoded:
            if isinstance(records, DeadLetter):
                batch.account.refused[to.topic, records.code] += 1
                await self._write_dead_letter(batch, translator, message, records, place, to.topic)
                continue
            await batch.send(to.topic, place % to.partitions, records)
            batch.account.written[to.topic] += len(records)

    def _encoded(self, translator: Translator, message: Message, result: Result | None) -> Encoded:
        """The events of a message for each output, all of them before the first is written."""
        if not isinstance(result, Events):
            return []
        return [(output.to, self._records(translator, message, result, output)) for output in self._target.outputs]

    def _records(
        self, translator: Translator, message: Message, result: Events, output: EventOutput
    ) -> list[Record] | DeadLetter:
        """All records of a message for one output, or the reason why it gets none."""
        records = translator.encode(output.codec, message, result)
        if isinstance(records, DeadLetter):
            return records
        return self._too_large(translator, message, records, output.to) or records

    @staticmethod
    def _too_large(
        translator: Translator, message: Message, records: Iterable[Record], to: OutputTopic
    ) -> DeadLetter | None:
        """The dead letter of a message of which a record does not fit its topic."""
        largest = max(map(record_size, records), default=0)
        return translator.too_large(message, to.topic, largest, to.max_bytes) if largest > to.max_bytes else None

    async def _announce(self, schemas: Mapping[str, Record]) -> None:
        """Returns when the schemas topic holds the schemas. One that another partition is writing is waited for.

        Args:
            schemas: records of schemas by their keys, which no row may name yet.
        """
        for key, record in schemas.items():
            if key not in self._announcing:
                self._announcing[key] = asyncio.create_task(self._write_schema(key, record))
        # Shielded: a partition that is given up while it waits must not take the schema from the others.
        await asyncio.gather(*(asyncio.shield(self._announcing[key]) for key in schemas))

    async def _write_schema(self, key: str, record: Record) -> None:
        await self._delivery.confirm(self._target.schemas.topic, record)
        self._catalog.announced(key)
        del self._announcing[key]  # a failure stays, and meets whoever needs the schema next

    async def _learn(
        self, batch: Batch, translator: Translator, message: Message, learned: Learned, place: int
    ) -> Learned | DeadLetter:
        """Takes metadata in, tells the other processes, then writes what it announces to consumers.

        What cannot be told, or cannot be announced, is not learned here either: the message is a dead letter.
        """
        record = document_record(translator.source, learned.key, learned.document)
        if too_large := self._too_large(translator, message, [record], self._target.metadata):
            return too_large
        announced = translator.announcement(message, learned) if learned.announces else None
        if isinstance(announced, DeadLetter):
            return announced
        encoded = self._encoded(translator, message, announced)
        schemas = self._schemas_to_announce(translator, message, announced, encoded) if announced else {}
        if isinstance(schemas, DeadLetter):
            return schemas
        try:
            newest = self._catalog.register(translator, learned.key, learned.document)
        except MessageError as error:
            return translator.dead(message, error)
        if newest:
            await self._delivery.confirm(self._target.metadata.topic, record)
        if held := await self._held(translator, message, learned.announces):
            return held  # what it announces; other messages can be read by it all the same
        if announced:
            await self._write(batch, translator, message, schemas, encoded, place)
            batch.account.count(announced.events)
        return learned


def raw_bytes(records: Sequence[RawRecord]) -> int:
    """Keys and values of a batch."""
    return sum(len(record.key or b"") + len(record.value or b"") for record in records)


def schema_record(schema: TableSchema) -> Record:
    """As it lies in the schemas topic."""
    return Record(schema.topic_key.encode(), msgspec.json.encode(schema), [])


def _message(route: Route, topic: str, partition: int, record: RawRecord | Any) -> Message:
    return Message(
        topic,
        partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers),
        route.topic_id,
    )
