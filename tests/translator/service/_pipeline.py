"""A pipeline over fresh topics of a real broker: what the tests of pipelines share."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from translator import dialects
from translator.codecs import Codec
from translator.codecs.json import JsonCodec
from translator.kafka.topics import TopicAdmin
from translator.message import Dialect, Limits, Setup
from translator.service.delivery.at_least_once import Delivery, producer_config
from translator.service.metadata_wait import FetchSchema, MetadataWaiter
from translator.service.metrics import BatchAccount
from translator.service.pipeline import EventOutput, OutputTopic, Pipeline, Route, Target
from translator.settings import Kafka, Projection, Settings, Source
from translator.settings import Output as OutputSettings
from translator.state.contradiction_marks import Contradictions
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.translate import Translator

CANAL_ROW = {
    "data": [{"id": "1", "name": "a"}],
    "old": None,
    "database": "shop",
    "table": "t",
    "type": "INSERT",
    "isDdl": False,
    "sql": "",
    "es": 1000,
    "ts": 1000,
    "id": 1,
    "mysqlType": {"id": "bigint", "name": "varchar(10)"},
    "pkNames": ["id"],
}


@dataclass
class Record:
    """What the pipeline reads of a consumer record."""

    offset: int
    value: bytes | None
    timestamp: int = 1_700_000_000_000
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def record(offset: int, document: Any) -> Record:
    return Record(offset, json.dumps(document).encode())


class Bench:
    """A pipeline over fresh topics, and a look at what it wrote. Projections have three partitions.

    Args:
        projections: codecs by the last part of the topic's name.
        limits: largest record by topic, likewise; the others take what the broker's default is.
        dialect: its name, or what builds one.
        options: of the dialect.
        fetch: the schema registry.
    """

    def __init__(
        self,
        bootstrap: str,
        dialect: str | Callable[[Setup], Dialect],
        projections: Mapping[str, Codec] | None = None,
        limits: Mapping[str, int] | None = None,
        producer: type[Producer] = Producer,
        options: Mapping[str, Any] | None = None,
        fetch: FetchSchema | None = None,
    ) -> None:
        self.said: list[str] = []
        self._bootstrap = bootstrap
        self.output = OutputSettings(topic=f"out-{uuid.uuid4().hex[:8]}", codec="json")
        codecs = {self._named(name): codec for name, codec in (projections or {}).items()}
        self.settings = Settings(
            kafka=Kafka(bootstrap_servers=bootstrap),
            output=self.output,
            projections=tuple(Projection(topic=topic, codec=codec.name) for topic, codec in codecs.items()),
            sources=(Source(name="src", dialect=str(dialect), topics=("raw",)),),
        )
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for future in admin.create_topics([NewTopic(topic, 3, 1) for topic in codecs]).values() if codecs else ():
            future.result(20)
        topics = TopicAdmin({"bootstrap.servers": bootstrap})
        topics.ensure(self.settings)
        self.catalog = MetadataCatalog()
        setup = Setup("src", lookup=self.catalog.lookup("src"))
        self.dialect = dialects.build(dialect, setup, options or {}) if isinstance(dialect, str) else dialect(setup)
        translator = Translator("src", self.dialect, Limits())
        sizes = topics.max_message_bytes(self.settings.written_topics)
        sizes |= {self._named(name): size for name, size in (limits or {}).items()}
        facts = topics.describe(self.settings.written_topics)
        to = {name: OutputTopic(name, facts[name].partitions, sizes[name]) for name in self.settings.written_topics}
        config = producer_config({"bootstrap.servers": bootstrap, "log_level": 0}, 60, sizes.values())
        self.accounted: list[BatchAccount] = []
        self.producer = producer(config)
        self.delivery = Delivery(self.producer, self.accounted.append)
        self.contradictions = Contradictions(self.settings.sources)
        self.waiter = MetadataWaiter(self.catalog, 1.0, fetch, self.said.append)
        self.pipeline = Pipeline(
            {"raw": Route(translator, "topic-id", 6)},
            Target(
                outputs=tuple(
                    EventOutput(codec, to[name]) for name, codec in {self.output.topic: JsonCodec(), **codecs}.items()
                ),
                dead_letters=to[self.output.dead_letter_topic],
                schemas=to[self.output.schemas_topic],
                metadata=to[self.output.metadata_topic],
                version="0",
            ),
            self.catalog,
            self.delivery,
            self.contradictions,
            self.waiter,
        )

    def _named(self, name: str) -> str:
        return f"{self.output.topic}.{name}" if name else self.output.topic

    async def run(self, *batches: list[Record]) -> None:
        """Processes batches of raw partition 3 and waits for their acknowledgement."""
        done: list[int] = []
        for batch in batches:
            await self.pipeline.process("raw", 3, batch, lambda: done.append(1))
        await self._reap_until(lambda: len(done) == len(batches))

    async def process(self, partition: int, batch: list[Record]) -> bool:
        """Processes a batch of a raw partition; False: it was given back."""
        return await self.pipeline.process("raw", partition, batch, lambda: None)

    async def acknowledged(self, batches: int) -> None:
        """Waits until so many batches are acknowledged in all."""
        await self._reap_until(lambda: len(self.accounted) == batches)

    async def _reap_until(self, ready: Callable[[], bool]) -> None:
        for _ in range(12_000):
            self.delivery.reap()
            if ready():
                return
            await asyncio.sleep(0.005)
        raise AssertionError("not acknowledged")

    def projected(self, name: str, partition: int) -> list[Any]:
        """What lies in a projection."""
        return self.read(self._named(name), partition)

    def read(self, topic: str, partition: int) -> list[Any]:
        """What lies in a partition."""
        reader = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "unused"})
        low, high = _watermarks(reader, TopicPartition(topic, partition))
        reader.assign([TopicPartition(topic, partition, low)])
        found: list[Any] = []
        while len(found) < high - low:
            found += reader.consume(100, 1.0)
        reader.close()
        return found

    def close(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        for future in admin.delete_topics(self.settings.written_topics).values():
            future.result(20)


_NO_LEADER_YET = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE}


def _watermarks(reader: Consumer, place: TopicPartition) -> tuple[int, int]:
    """First and next offset; a topic that was made a moment ago may have no leader yet, or another one."""
    for _ in range(50):
        try:
            return reader.get_watermark_offsets(place, timeout=10)
        except KafkaException as error:
            if error.args[0].code() not in _NO_LEADER_YET:
                raise
            time.sleep(0.1)
    raise AssertionError(f"{place.topic} has no leader")


async def soon(ready: Callable[[], bool]) -> None:
    """Waits until something is so, as long as a busy machine may take to make it so."""
    for _ in range(12_000):
        if ready():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("not within 60 s")


class Holding(Producer):
    """The real producer, which keeps the reports about one topic to itself until they are released."""

    holds = ".schemas"
    """How the name of that topic ends."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self.open = False
        self._held: list[tuple[Any, ...]] = []

    def produce(self, topic: str, *fields: Any, on_delivery: Any, **more: Any) -> None:
        if topic.endswith(self.holds) and not self.open:
            kept = on_delivery
            on_delivery = lambda *report: self._held.append((kept, *report))  # noqa: E731
        super().produce(topic, *fields, on_delivery=on_delivery, **more)

    async def reports(self, count: int) -> None:
        """Waits until so many reports are held back."""
        while len(self._held) < count:
            self.poll(0)
            await asyncio.sleep(0.01)

    def release(self, error: KafkaError | None = None) -> None:
        """Lets the reports go, as they are or as an error."""
        self.open = True
        for report, was, message in self._held:
            report(error or was, message)


# Of the canonical topic, of a projection: (hash of the raw topic + raw partition) mod the partitions that it has.
PARTITION = (6 + 3) % 4
PROJECTED = (6 + 3) % 3
