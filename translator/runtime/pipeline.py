"""One batch of one partition: translate each record, write what comes of it, keep the account. No Faust here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from translator.catalog import Catalog
from translator.codecs import Codec
from translator.codecs.record import Record, record_size
from translator.dead_letter import DeadLetter, dead_letter_record
from translator.message import Learned, Message, Needs, Skip
from translator.runtime.delivery import Acknowledge, Delivery, InFlight
from translator.runtime.metrics import Tally
from translator.settings import Output
from translator.translate import Events, Translator

_METADATA_POLL = 0.05


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


class Target(Struct, frozen=True):
    """The output side."""

    output: Output
    partitions: int
    max_bytes: int
    version: str


class Pipeline:
    """Batches in, records out; one instance a process."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        codec: Codec,
        target: Target,
        catalog: Catalog,
        delivery: Delivery,
        metadata_wait: float,
    ) -> None:
        self._routes = routes
        self._codec = codec
        self._target = target
        self._catalog = catalog
        self._delivery = delivery
        self._metadata_wait = metadata_wait

    async def process(self, topic: str, partition: int, records: Sequence[RawRecord], done: Acknowledge) -> None:
        """Translates a batch and hands everything to the producer; `done` is called when all of it was delivered."""
        route = self._routes[topic]
        tally = Tally(route.translator.source, topic, partition, len(records))
        batch = self._delivery.begin(tally, done)
        # canonical partition: the whole order of a raw partition survives (design section 4, Partitioning)
        out = (route.partition_hash + partition) % self._target.partitions
        for record in records:
            message = _message(route, topic, partition, record)
            await self._one(batch, route.translator, message, out)
        batch.closed = True

    async def _one(self, batch: InFlight, translator: Translator, message: Message, out: int) -> None:
        result = translator.translate(message)
        while isinstance(result, Needs):
            if await self._came(translator.source, result.key):
                result = translator.translate(message)
            else:
                result = translator.missing(message, result)
        if isinstance(result, Events):
            result = await self._write(batch, translator, message, result, out)
        elif isinstance(result, Learned):
            result = await self._learn(translator, message, result)
        match result:
            case Events(events=events):
                batch.tally.translated += 1
                batch.tally.events.update(event.op or event.kind for event in events)
            case Skip(reason=reason):
                batch.tally.skipped[reason] += 1
            case Learned():
                batch.tally.learned += 1
            case DeadLetter(code=code):
                batch.tally.dead[code] += 1
                target = self._target
                letter = dead_letter_record(message, result, translator.source, target.version, target.max_bytes)
                await self._delivery.send(batch, target.output.dead_letter_topic, out, letter)

    async def _write(
        self, batch: InFlight, translator: Translator, message: Message, result: Events, out: int
    ) -> Events | DeadLetter:
        """Writes all events of a message, or none of them and the dead letter that says why."""
        records = translator.encode(self._codec, message, result)
        if isinstance(records, DeadLetter):
            return records
        new = [schema for schema in result.schemas if not self._catalog.is_announced(schema)]
        schemas = [Record(schema.topic_key.encode(), msgspec.json.encode(schema), []) for schema in new]
        largest = max(map(record_size, (*records, *schemas)), default=0)
        if largest > self._target.max_bytes:
            return translator.too_large(message, largest, self._target.max_bytes)
        if schemas:
            # acknowledged before the first row that names them
            await self._delivery.confirm(self._target.output.schemas_topic, schemas)
            for schema in new:
                self._catalog.announced(schema.topic_key)
        for record in records:
            await self._delivery.send(batch, self._target.output.topic, out, record)
        return result

    async def _learn(self, translator: Translator, message: Message, learned: Learned) -> Learned | DeadLetter:
        """Takes metadata in, then tells the other processes: what cannot be taken in must not be told."""
        record = Record(f"{translator.source}/{learned.key}".encode(), learned.document, [])
        if (size := record_size(record)) > self._target.max_bytes:
            return translator.too_large(message, size, self._target.max_bytes)
        self._catalog.learn(translator.source, learned.key, learned.document, translator.dialect)
        await self._delivery.confirm(self._target.output.metadata_topic, [record])
        return learned

    async def _came(self, source: str, key: str) -> bool:
        """Waits for metadata, once per key: true as soon as it is learned, false when the time is over."""
        found = self._catalog.lookup(source)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._metadata_wait
        while not self._catalog.is_given_up(source, key) and loop.time() < deadline:
            if found(key) is not None:
                return True
            await asyncio.sleep(_METADATA_POLL)
        self._catalog.give_up(source, key)
        return False


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
