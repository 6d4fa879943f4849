"""A pipeline with a delivery in memory, shared by the tests of pipelines."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from translator import codecs, dialects
from translator.codecs import Codec
from translator.codecs.json import JsonCodec
from translator.config.settings import Kafka, Settings, Source
from translator.config.settings import Output as OutputSettings
from translator.kafka.partitioner import output_partition
from translator.message import Dialect, Limits, Setup
from translator.resolution.resolve import EventOutput, Outputs, OutputTopic
from translator.resolution.routes import Routes
from translator.service.delivery.memory import InMemoryDelivery
from translator.service.metadata_wait import FetchSchema, MetadataWaiter, RegisterSchema
from translator.service.metrics import BatchAccount
from translator.service.pipeline import Pipeline, Route, Target
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
    "es": 1_700_000_000_000,
    "ts": 1_700_000_000_000,
    "id": 1,
    "mysqlType": {"id": "bigint", "name": "varchar(10)"},
    "pkNames": ["id"],
}


@dataclass
class Record:
    """The fields of a consumer record that the pipeline reads."""

    offset: int
    value: bytes | None
    timestamp: int = 1_700_000_000_000
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def record(offset: int, document: Any) -> Record:
    return Record(offset, json.dumps(document).encode())


@dataclass
class Stored:
    """A written record as a consumer receives it."""

    record: codecs.record.Record

    def key(self) -> Any:
        return self.record.key

    def value(self) -> Any:
        return self.record.value

    def headers(self) -> list[tuple[str, bytes]]:
        headers: list[tuple[str, Any]] = self.record.headers
        return [(name, value.encode() if isinstance(value, str) else value) for name, value in headers]


MAX_MESSAGE_BYTES = 1_048_588
"""The broker's default."""


class Bench:
    """A pipeline and its output. Events and dead letters have four partitions, and projections have three.

    Args:
        projections: codecs by the last part of the topic's name.
        limits: maximum record size by topic, named the same way. Others have the broker's default.
        dialect: its name, or a function that builds one.
        options: of the dialect.
        fetch: the schema registry.
        tables: the existing table topics with their number of partitions.
        routes: of projections, named the same way.
        register: the schema registry that assigns ids.
        allowed: the limits of the input.
    """

    def __init__(
        self,
        dialect: str | Callable[[Setup], Dialect],
        projections: Mapping[str, Codec] | None = None,
        limits: Mapping[str, int] | None = None,
        options: Mapping[str, Any] | None = None,
        fetch: FetchSchema | None = None,
        tables: Mapping[str, int] | None = None,
        routes: Mapping[str, Routes] | None = None,
        register: RegisterSchema | None = None,
        allowed: Limits = Limits(),  # noqa: B008  immutable
    ) -> None:
        self.said: list[str] = []
        self.output = OutputSettings(topic="out", codec="json")
        self.settings = Settings(
            kafka=Kafka(bootstrap_servers="none:1"),
            output=self.output,
            sources=(Source(name="src", dialect=str(dialect), topics=("raw",)),),
        )
        self.catalog = MetadataCatalog()
        setup = Setup("src", allowed, lookup=self.catalog.lookup("src"))
        self.dialect = dialects.build(dialect, setup, options or {}) if isinstance(dialect, str) else dialect(setup)
        translator = Translator("src", self.dialect, allowed)
        projected = {self._named(name): codec for name, codec in (projections or {}).items()}
        partitions = {
            **dict.fromkeys((self.output.topic, self.output.dead_letter_topic), self.settings.topics.partitions),
            **dict.fromkeys((self.output.schemas_topic, self.output.metadata_topic), 1),
            **dict.fromkeys(projected, 3),
        }
        sizes = {self._named(name): size for name, size in (limits or {}).items()}
        to = {name: OutputTopic(name, count, sizes.get(name, MAX_MESSAGE_BYTES)) for name, count in partitions.items()}
        self.accounted: list[BatchAccount] = []
        self.ends: list[int] = []
        """Of batches that a stop has shortened: one past the last offset."""
        self.delivery = InMemoryDelivery(self.accounted.append, {**partitions, **(tables or {})})
        routed = {self._named(name): found for name, found in (routes or {}).items()}
        self.contradictions = Contradictions(self.settings.sources)
        self.waiter = MetadataWaiter(self.catalog, 1.0, fetch, self.said.append, register)
        self.pipeline = Pipeline(
            {"raw": Route(translator, "topic-id")},
            Target(
                outputs=Outputs(
                    events=tuple(
                        EventOutput(codec, to[name], routed.get(name))
                        for name, codec in {self.output.topic: JsonCodec(), **projected}.items()
                    ),
                    schemas=to[self.output.schemas_topic],
                    metadata=to[self.output.metadata_topic],
                ),
                dead_letters=to[self.output.dead_letter_topic],
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
        """Process batches of raw partition 3 and wait for their acknowledgement."""
        done: list[int] = []
        for batch in batches:
            await self.pipeline.process("raw", 3, batch, lambda: done.append(1), shorten=self._shorten)
        await self._reap_until(lambda: len(done) == len(batches))

    def _shorten(self, last: int) -> None:
        self.ends.append(last + 1)

    async def process(self, partition: int, batch: list[Record]) -> bool:
        """Process a batch of a raw partition. Return False if it was given back."""
        return await self.pipeline.process("raw", partition, batch, lambda: None)

    async def acknowledged(self, batches: int) -> None:
        """Wait until this many batches in total are acknowledged."""
        await self._reap_until(lambda: len(self.accounted) == batches)

    async def _reap_until(self, ready: Callable[[], bool]) -> None:
        def reaped() -> bool:
            self.delivery.reap()
            return ready()

        await soon(reaped)

    async def withheld(self, topic: str, count: int) -> None:
        """Wait until this many reports of a topic are held back."""
        await soon(lambda: self.delivery.withheld(topic) == count)

    def projected(self, name: str, partition: int) -> list[Stored]:
        """Return the records of a projection."""
        return self.read(self._named(name), partition)

    def read(self, topic: str, partition: int) -> list[Stored]:
        """Return the records of a partition."""
        return [Stored(record) for record in self.delivery.written(topic, partition)]


async def soon(ready: Callable[[], bool]) -> None:
    """Wait until a condition holds, long enough for a busy machine."""
    for _ in range(12_000):
        if ready():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("not within 60 s")


PARTITION = output_partition("raw", 3, 4)
"""Partitions of the canonical topic and of the dead letters."""
PROJECTED = output_partition("raw", 3, 3)
"""Partitions of a projection."""
