"""Measure the translator's pipeline with delivery in memory: `python -m bench.steps.pipeline`.

The pipeline is everything in the service between the consumer's records and the producer. It does not include the Kafka
clients and Faust. Before the measurement, schemas are announced and metadata is learned.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bench.generators import WRITERS, MessageStream, RawMessage, generate
from bench.generators.history import StreamSpec
from bench.measure import machine, rate, table
from translator import dialects
from translator.codecs import Codec
from translator.codecs.avro import AvroCodec
from translator.config.settings import Output, Source
from translator.message import DeclaredTable, Dialect, Learned, Limits, Message, Setup
from translator.resolution.resolve import EventOutput, Outputs, OutputTopic
from translator.service.delivery.memory import InMemoryDelivery
from translator.service.metadata_wait import MetadataWaiter
from translator.service.metrics import BatchAccount
from translator.service.pipeline import Pipeline, Route, Target
from translator.state.contradiction_marks import Contradictions
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.native_path import NativePath, native_path
from translator.translation.translate import RUN, Events, Translator

COLUMNS = 12
MESSAGES = 6_000
ROUNDS = 5
BATCH = 500
"""The maximum number of records per fetch by the consumer."""

_OUTPUT = Output()
_MAX_BYTES = 1_048_588
_PARTITIONS = 4


class _ConsumerRecord(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


class RawBatch(NamedTuple):
    """The records from one partition, as the consumer returns them."""

    partition: int
    records: Sequence[_ConsumerRecord]


class MemoryPipeline:
    """The service's pipeline for one stream. Its delivery counts the records and drops them.

    Args:
        projections: the codecs for outputs in addition to the canonical topic.
        native: whether to measure the native path. False measures the plain path.
    """

    def __init__(self, stream: MessageStream, projections: Sequence[Codec] = (), *, native: bool = True) -> None:
        self._codecs: Sequence[Codec] = (AvroCodec(), *projections)
        self._native = native
        self.accounts: list[BatchAccount] = []
        self._catalog = MetadataCatalog()
        self.dialect = _dialect(stream, self._catalog)
        self.translator = Translator("bench", self.dialect, Limits())
        self._delivery = InMemoryDelivery(self.accounts.append, keeps=False)
        self._pipeline = self._build()
        self._offsets: defaultdict[int, int] = defaultdict(int)

    def _build(self) -> Pipeline:
        topics = (_OUTPUT.topic, _OUTPUT.dead_letter_topic, _OUTPUT.schemas_topic, _OUTPUT.metadata_topic)
        canonical, letters, schemas, metadata = (OutputTopic(name, _PARTITIONS, _MAX_BYTES) for name in topics)
        projected = [OutputTopic(f"p{number}", _PARTITIONS, _MAX_BYTES) for number in range(1, len(self._codecs))]
        events = tuple(map(EventOutput, self._codecs, (canonical, *projected)))
        outputs = Outputs(events=events, schemas=schemas, metadata=metadata)
        source = Source(name="bench", dialect=self.dialect.name, topics=("raw",))
        path = native_path(self.translator, [(codec, _MAX_BYTES) for codec in self._codecs]) if self._native else None
        return Pipeline(
            {"raw": Route(self.translator, "dGhlLXRvcGljLWlkLS0tLQ")},
            Target(outputs=outputs, dead_letters=letters, version="0"),
            self._catalog,
            self._delivery,
            Contradictions([source]),
            MetadataWaiter(self._catalog, 0.0, None, lambda text: None),
            native={"bench": path} if isinstance(path, NativePath) else None,
        )

    def batches(self, messages: Sequence[RawMessage]) -> list[RawBatch]:
        """Return the next records from the raw topic by partition. The records' bytes are copies, as if read from a
        socket.
        """
        by_partition: defaultdict[int, list[_ConsumerRecord]] = defaultdict(list)
        batches = []
        for message in messages:
            waiting = by_partition[message.partition]
            value = None if message.value is None else bytes(bytearray(message.value))
            waiting.append(_ConsumerRecord(self._offsets[message.partition], 1_767_600_000_000, None, value))
            self._offsets[message.partition] += 1
            if len(waiting) == BATCH:
                batches.append(RawBatch(message.partition, by_partition.pop(message.partition)))
        return [*batches, *(RawBatch(partition, records) for partition, records in by_partition.items())]

    async def process(self, batches: Sequence[RawBatch]) -> None:
        """Run all steps for several batches, including the acknowledgement of each batch."""
        for partition, records in batches:
            await self._pipeline.process("raw", partition, records, _nothing)
            self._delivery.reap()


def _nothing() -> None:
    return None


def _dialect(stream: MessageStream, catalog: MetadataCatalog) -> Dialect:
    """Return a stream's dialect, with the stream's metadata."""
    declared = tuple(DeclaredTable(given["table"], tuple(given["key"]), given["columns"]) for given in stream.declared)
    setup = Setup("bench", tables=declared, lookup=catalog.lookup("bench"))
    dialect = dialects.build(stream.dialect, setup, stream.options)
    for number, value in enumerate(stream.metadata):
        outcome = dialect.decode(Message("raw.metadata", 0, number, 0, None, value))
        assert isinstance(outcome, Learned), outcome
        catalog.learn("bench", outcome.key, outcome.document, dialect)
    return dialect


class StepCosts(NamedTuple):
    """Microseconds of CPU time per message. Each step includes all the ones before it."""

    decode: float
    translate: float
    encode: float
    pipeline: float


def step_costs(name: str, spec: StreamSpec, rounds: int) -> StepCosts:
    """Return the costs of a format. Each of them is the minimum of several alternating rounds after a warm-up."""
    stream = generate(name, spec)
    pipeline = MemoryPipeline(stream)
    asyncio.run(pipeline.process(pipeline.batches(stream.messages)))
    assert not any(account.dead for account in pipeline.accounts)
    steps = _steps(pipeline)
    best = dict.fromkeys(steps, float("inf"))
    for turn in range(rounds):
        for step in steps if turn % 2 == 0 else reversed(tuple(steps)):
            best[step] = min(best[step], _timed(steps[step], pipeline.batches(stream.messages)) / len(stream.messages))
    return StepCosts(**best)


def _timed(step: Callable[[Sequence[RawBatch]], None], batches: Sequence[RawBatch]) -> float:
    start = time.process_time()
    step(batches)
    return (time.process_time() - start) * 1e6


def _steps(pipeline: MemoryPipeline) -> Mapping[str, Callable[[Sequence[RawBatch]], None]]:
    translator, codec, decode = pipeline.translator, AvroCodec(), pipeline.dialect.decode

    def decoded(batches: Sequence[RawBatch]) -> None:
        for batch in batches:
            for run in _runs(batch):
                for message in run:
                    decode(message)

    def translated(batches: Sequence[RawBatch]) -> None:
        for batch in batches:
            for run in _runs(batch):
                translator.translate_run(run)

    def encoded(batches: Sequence[RawBatch]) -> None:
        for batch in batches:
            for run in _runs(batch):
                for message, result in zip(run, translator.translate_run(run), strict=True):
                    if isinstance(result, Events):
                        translator.encode(codec, message, result)

    def whole(batches: Sequence[RawBatch]) -> None:
        asyncio.run(pipeline.process(batches))

    return {"decode": decoded, "translate": translated, "encode": encoded, "pipeline": whole}


def _runs(batch: RawBatch) -> list[list[Message]]:
    """Return the messages in a batch, split into runs as in the service."""
    messages = [
        Message("raw", batch.partition, record.offset, record.timestamp, record.key, record.value)
        for record in batch.records
    ]
    return [messages[start : start + RUN] for start in range(0, len(messages), RUN)]


def report(messages: int, rounds: int) -> str:
    """Return a table with one line per format."""
    head = ("format", "decode", "build", "encode", "pipeline", "sum", "rate")
    rows = []
    for name in WRITERS:
        costs = step_costs(name, StreamSpec(messages, COLUMNS), rounds)
        steps = (costs.decode, costs.translate - costs.decode, costs.encode - costs.translate)
        figures = (*steps, costs.pipeline - costs.encode, costs.pipeline)
        rows.append([name, *(f"{figure:.1f}" for figure in figures), rate(costs.pipeline)])
    return table(head, rows)


def main() -> None:
    """Measure and print the results."""
    print(machine("msgspec"))
    print(f"\nTime from raw records to delivery in memory, for changes of {COLUMNS} columns, in us per message.\n")
    print(report(MESSAGES, ROUNDS))


if __name__ == "__main__":
    main()
