"""Producing, and acknowledging a batch only when every report of it is good.

The producer is idempotent librdkafka; a batch is acknowledged when all its records, dead letters included, were
delivered, in order per partition. Any delivery error is fatal: the batch is not acknowledged, the process stops, and
the next one starts at the committed offset.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from translator.codecs.record import RECORD_OVERHEAD, Record
from translator.errors import FatalError
from translator.service.metrics import BatchAccount
from translator.settings import Bounds

DEFAULT_BOUNDS = Bounds()
NEVER = 0.0
"""As `delivery_seconds`: the producer never gives a record up."""

_POLL_EVERY = 256
_PAUSE = 0.002

Acknowledge = Callable[[], object]
Report = Callable[[KafkaError | None, Any], None]


def producer_config(
    connection: Mapping[str, Any], delivery_seconds: float, limits: Collection[int], bounds: Bounds = DEFAULT_BOUNDS
) -> dict[str, Any]:
    """The settings of the idempotent producer (facts: docs/decisions/0001-delivery.md).

    Args:
        delivery_seconds: after which the producer drops a record. What it was handed later it still sends: only who
            writes nothing after an error may let it drop some.
        bounds: of its queue; whatever they are, one record of the largest size has room.
        limits: `max.message.bytes` of the topics that are written. The broker applies it to a whole batch, and the
            producer has one size of batches for all topics: the smallest limit sets it. A record that is larger than
            that travels alone, up to the largest.
    """
    return {
        **connection,
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 10,
        "batch.size": min(1_000_000, min(limits) - RECORD_OVERHEAD),
        "batch.num.messages": 10_000,
        "compression.type": "lz4",
        "queue.buffering.max.messages": bounds.events,
        "queue.buffering.max.kbytes": max(bounds.bytes, 2 * max(limits)) // 1024,
        "delivery.timeout.ms": int(delivery_seconds * 1000),
        "partitioner": "murmur2_random",
        "message.max.bytes": max(limits),
    }


_LATE = (
    "not acknowledged within timing.delivery: no broker for its partition, or "
    "fewer replicas in sync than its min.insync.replicas"
)
# What to say of an error beside the library's own words, which name neither our setting nor what to look at.
_CAUSES: Mapping[int, str] = {
    KafkaError._MSG_TIMED_OUT: _LATE,
    KafkaError._UNKNOWN_TOPIC: "the topic is gone",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "the topic is gone",
    KafkaError._UNKNOWN_PARTITION: "the topic has fewer partitions than at the start",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the user may not write there",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the user may not write as an idempotent producer",
}


def failure(topic: str, error: KafkaError) -> str:
    """Why a record could not be written to a topic."""
    cause = _CAUSES.get(error.code())
    return f"cannot write to {topic}: {error.str()}" + (f" ({cause})" if cause else "")


def telling(report: Report, seen: Callable[[int], None] | None) -> Report:
    """A report that also tells where the record lies, when somebody wants to know."""
    if seen is None:
        return report

    def delivered(error: KafkaError | None, message: Any) -> None:
        report(error, message)
        if error is None:
            seen(message.offset())

    return delivered


class InFlight:
    """One batch between reading and acknowledging."""

    __slots__ = ("account", "acknowledge", "closed", "error", "held", "membership", "pending", "sealed", "topics")

    def __init__(self, account: BatchAccount, acknowledge: Acknowledge, membership: bytes) -> None:
        self.account = account
        self.acknowledge = acknowledge
        self.closed = False  # everything of the batch was handed to the producer
        self.error: str | None = None
        self.pending = 0  # reports that are to come
        self.topics: set[str] = set()  # that were written
        # -- of transactions
        self.membership = membership
        self.held: list[tuple[str, int, Record, Report]] = []  # what its present message has to write
        self.sealed = 0  # messages that are in one

    def expect(self, topic: str, records: int) -> None:
        """That many reports are to come."""
        self.pending += records
        self.topics.add(topic)

    def delivered(self, error: KafkaError | None, message: Any) -> None:
        """The report of one record."""
        self.pending -= 1
        if error is not None:
            self.error = failure(message.topic(), error)

    @property
    def done(self) -> bool:
        return self.closed and self.pending == 0


class Delivery:
    """The producer and the batches in flight.

    Args:
        seconds: how long nothing may be heard of the oldest batch of a partition that waits for reports. The producer
            must not give records up by itself (NEVER): it would go on with those behind them, and they would stand
            before those that the next process writes again.
    """

    def __init__(
        self,
        producer: Producer,
        account: Callable[[BatchAccount], None],
        bounds: Bounds = DEFAULT_BOUNDS,
        seconds: float = math.inf,
    ) -> None:
        self._producer = producer
        self._account = account
        self._bounds = bounds
        self._seconds = seconds
        self._heard: dict[tuple[str, int], tuple[InFlight, int, float]] = {}  # oldest batch, its reports to come, when
        self._queues: dict[tuple[str, int], deque[InFlight]] = {}
        self._batches = 0
        self._since_poll = 0
        self._reports = 0
        self._dead = False

    @property
    def batches(self) -> int:
        """Batches in flight."""
        return self._batches

    @property
    def events(self) -> int:
        """Records with the producer whose reports have not been taken."""
        return len(self._producer)

    @property
    def moved(self) -> int | None:
        """Changes with each report that comes in; None while none is to come."""
        return self._reports if self.events else None

    def begin(self, account: BatchAccount, acknowledge: Acknowledge, membership: bytes = b"") -> InFlight:
        """Takes a batch on; it is acknowledged in its turn.

        Args:
            membership: who we were in the group when it was fetched; transactions name it.
        """
        batch = InFlight(account, acknowledge, membership)
        self._queues.setdefault((account.topic, account.partition), deque()).append(batch)
        self._batches += 1
        return batch

    def abandon(self, batch: InFlight) -> None:
        """Forgets the last batch of its partition: it is never acknowledged, whatever was sent of it comes again."""
        self._queues[batch.account.topic, batch.account.partition].remove(batch)
        self._batches -= 1

    async def send(
        self,
        batch: InFlight,
        topic: str,
        partition: int,
        records: Sequence[Record],
        seen: Callable[[int], None] | None = None,
    ) -> None:
        """Hands records to the producer; waits while its queue is full. `seen` is told where each of them lies."""
        batch.expect(topic, len(records))
        report = telling(batch.delivered, seen)
        for record in records:
            while not self._accepted(topic, partition, record, report):
                await self._pause()
        self._since_poll += len(records)
        self._poll_now_and_then()

    async def end_message(self, batch: InFlight, offset: int) -> None:
        """Everything of the message at this offset was sent. It matters to transactions only."""

    def _poll_now_and_then(self) -> None:
        if self._since_poll >= _POLL_EVERY:
            self._since_poll = 0
            self._serve()

    def _serve(self) -> None:
        """Lets reports come in.

        Raises:
            FatalError: the producer has given up for good. Any poll may be the one that is told.
        """
        try:
            self._reports += self._producer.poll(0)
        except KafkaException as error:
            raise self._given_up(error) from None

    def _given_up(self, error: KafkaException) -> BaseException:
        return FatalError(f"delivery failed: {error.args[0].str()}")

    async def flush_partition(self, topic: str, partition: int) -> None:
        """Returns when all that was sent of a raw partition is delivered.

        Raises:
            FatalError: something was not.
        """
        for batch in [*self._queues.get((topic, partition), ())]:
            while batch.pending:
                await self._pause()
            if batch.error is not None:
                raise FatalError(f"delivery failed for a batch of {topic}: {batch.error}")

    async def confirm(self, topic: str, record: Record) -> None:
        """Writes a keyed record to a compacted topic (partition 0) and returns when it is acknowledged.

        Raises:
            FatalError: it was not delivered.
        """
        reports: list[KafkaError | None] = []
        while not self._accepted(topic, 0, record, lambda error, _message: reports.append(error)):
            await self._pause()
        began = time.monotonic()
        while self._dead or not reports:
            await self._pause()
            if time.monotonic() - began > self._seconds and not reports:
                raise FatalError(f"cannot write to {topic}: {_LATE}")
        if reports[0] is not None:
            raise FatalError(failure(topic, reports[0]))

    def _accepted(self, topic: str, partition: int, record: Record, report: Report) -> bool:
        """Whether the producer took the record; false while its queue is full, and for ever after the end."""
        if self._dead:
            return False
        try:
            self._producer.produce(
                topic, record.value, record.key, partition, on_delivery=report, headers=record.headers
            )
        except BufferError:
            return False
        except KafkaException as error:
            raise self._given_up(error) from None
        return True

    async def _pause(self) -> None:
        """Lets reports come in and others work; after the end it does not return."""
        if self._dead:
            await asyncio.Event().wait()
        self._serve()
        await asyncio.sleep(_PAUSE)

    def reap(self) -> None:
        """Acknowledges what is done, in order per partition.

        Raises:
            FatalError: a record was not delivered; nothing is acknowledged any more.
        """
        self._serve()
        if self._dead:
            return
        for (topic, partition), queue in self._queues.items():
            while queue and (queue[0].done or queue[0].error is not None):
                batch = queue[0]
                if batch.error is not None:
                    raise FatalError(f"delivery failed for a batch of {topic}: {batch.error}")
                self._acknowledge_first(queue)
            if queue:
                self._listen(topic, partition, queue[0])

    def _acknowledge_first(self, queue: deque[InFlight]) -> None:
        batch = queue.popleft()
        self._batches -= 1
        self._account(batch.account)
        batch.acknowledge()

    def _listen(self, topic: str, partition: int, batch: InFlight) -> None:
        """Notes when something was last heard of the oldest batch of a partition.

        Raises:
            FatalError: it is too long ago.
        """
        now = time.monotonic()
        before, pending, since = self._heard.get((topic, partition), (None, 0, now))
        if before is not batch or pending != batch.pending or not pending:
            self._heard[topic, partition] = batch, batch.pending, now
        elif now - since > self._seconds:
            written = " or ".join(sorted(batch.topics))
            raise FatalError(f"delivery failed for a batch of {topic}: cannot write to {written}: {_LATE}")

    async def wait_for_capacity(self) -> None:
        """Waits until another batch may be taken on."""
        self.reap()
        while self._batches >= self._bounds.batches or self.events >= self._bounds.events:
            await asyncio.sleep(_PAUSE)
            self.reap()

    def fail_stop(self) -> None:
        """From here on nothing is produced and nothing acknowledged."""
        self._dead = True
        self._producer.purge()


def open_delivery(
    connection: Mapping[str, Any],
    limits: Collection[int],
    account: Callable[[BatchAccount], None],
    bounds: Bounds,
    seconds: float,
) -> Delivery:
    """The delivery of the service, with a producer of its own; see `producer_config` and `Delivery`."""
    return Delivery(Producer(producer_config(connection, NEVER, limits, bounds)), account, bounds, seconds)
