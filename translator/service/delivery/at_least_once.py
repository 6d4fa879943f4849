"""At least once: a batch is acknowledged once all of its records, including dead letters, have been reported as
delivered.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError

from translator.codecs.record import Record
from translator.config.settings import Bounds
from translator.errors import FatalError
from translator.kafka.producer import (
    DEFAULT_BOUNDS,
    DEFAULT_LATENCY,
    NEVER,
    NOT_ACKNOWLEDGED,
    RecordProducer,
    producer_config,
    write_failure,
)
from translator.service.delivery.base import Acknowledge, BatchQueues, InFlight, OnStored, until_capacity
from translator.service.delivery.record_writer import Marks, RecordWriter, with_offset
from translator.service.metrics import BatchAccount


class _Batch(InFlight):
    __slots__ = ("_delivery", "_error", "_marks", "_unreported", "topics")

    def __init__(self, delivery: AtLeastOnceDelivery, account: BatchAccount, acknowledge: Acknowledge) -> None:
        super().__init__(account, acknowledge)
        self._delivery = delivery
        self.topics: set[str] = set()  # records written
        self._marks: Marks = {}
        # The records with a callback, which are not in the marks.
        self._unreported = 0
        self._error: str | None = None

    async def send(self, topic: str, partition: int, records: list[Record], on_stored: OnStored | None = None) -> None:
        """Pass records to the producer; wait while its queue is full."""
        writer = self._delivery.writer
        self.topics.add(topic)
        if on_stored is None:
            await writer.write(topic, partition, records, self._marks)
            return
        self._unreported += len(records)
        await writer.write_reported(topic, partition, records, with_offset(self._report, on_stored))

    def _report(self, error: KafkaError | None, message: Any) -> None:
        self._unreported -= 1
        if error is not None:
            self._error = write_failure(message.topic(), error)

    async def end_message(self, offset: int, count: int = 1) -> None:
        """Do nothing: offsets are committed for whole batches."""

    def abandon(self) -> None:
        """Forget the batch. Its records that were already sent are sent again later."""
        self._delivery.forget(self)

    @property
    def pending(self) -> int:
        """The number of queued records that have not been delivered.

        Raises:
            FatalError: a record was not delivered.
        """
        error = self._error or self._delivery.writer.error(self._marks)
        if error is not None:
            raise FatalError(f"delivery failed for a batch of {self.account.topic}: {error}")
        return self._unreported + self._delivery.writer.pending(self._marks)


class AtLeastOnceDelivery:
    """The idempotent producer, and the batches with outstanding reports.

    Args:
        seconds: maximum time without a report for a partition's oldest unfinished batch. The producer itself must never
            drop records (NEVER): it would send later records, which would then precede those that the next process
            writes again.
    """

    def __init__(
        self,
        producer: RecordProducer,
        on_account: Callable[[BatchAccount], None],
        bounds: Bounds = DEFAULT_BOUNDS,
        seconds: float = math.inf,
    ) -> None:
        self.writer = RecordWriter(producer)
        self._bounds = bounds
        self._seconds = seconds
        self._queues: BatchQueues[_Batch] = BatchQueues(on_account)
        self._heard: dict[
            tuple[str, int], tuple[_Batch, int, float]
        ] = {}  # oldest batch, its outstanding reports, and since when

    @property
    def batches(self) -> int:
        """The number of batches in flight."""
        return len(self._queues)

    @property
    def records(self) -> int:
        """The number of records whose reports have not been processed."""
        return len(self.writer)

    @property
    def progress(self) -> int | None:
        """A number that changes with each report, or None if no report is outstanding."""
        return self.writer.reports if self.records else None

    @property
    def may_still_write(self) -> bool:
        """Return whether reports are outstanding. The corresponding records may have been sent, so a broker may still
        store them at any time.
        """
        return self.records > 0

    def begin(self, account: BatchAccount, acknowledge: Acknowledge, membership: bytes = b"") -> _Batch:
        """Add a batch. Group membership does not matter."""
        batch = _Batch(self, account, acknowledge)
        self._queues.add(batch)
        return batch

    def forget(self, batch: _Batch) -> None:
        """Never acknowledge the partition's last batch."""
        self._queues.remove(batch)

    async def flush_partition(self, topic: str, partition: int) -> None:
        """Return once everything sent for a raw partition has been delivered.

        Raises:
            FatalError: something was not delivered.
        """
        for batch in self._queues.of(topic, partition):
            while batch.pending:
                await self.writer.pause()

    async def confirm(self, topic: str, record: Record) -> None:
        """Write a keyed record to a compacted topic (partition 0), and return once the record is acknowledged.

        Raises:
            FatalError: the record was not delivered.
        """
        reports: list[KafkaError | None] = []
        await self.writer.write_reported(topic, 0, [record], lambda error, _message: reports.append(error))
        began = time.monotonic()
        while self.writer.stopped or not reports:
            await self.writer.pause()
            if time.monotonic() - began > self._seconds and not reports:
                raise FatalError(f"cannot write to {topic}: {NOT_ACKNOWLEDGED}")
        if reports[0] is not None:
            raise FatalError(write_failure(topic, reports[0]))

    def reap(self) -> None:
        """Acknowledge completed batches, in order per partition.

        Raises:
            FatalError: a record was not delivered; nothing is acknowledged any more.
        """
        self.writer.serve()
        if self.writer.stopped:
            return
        self._queues.acknowledge_while(lambda batch: batch.closed and not batch.pending)
        for queue in self._queues:
            if queue:
                self._check_silence(queue[0])

    def _check_silence(self, batch: _Batch) -> None:
        """Note when a partition's oldest batch last made progress.

        Raises:
            FatalError: the last progress was too long ago.
        """
        now = time.monotonic()
        place = batch.account.topic, batch.account.partition
        before, earlier, since = self._heard.get(place, (None, 0, now))
        pending = batch.pending
        if before is not batch or earlier != pending or not earlier:
            self._heard[place] = batch, pending, now
        elif now - since > self._seconds:
            written = " or ".join(sorted(batch.topics))
            raise FatalError(
                f"delivery failed for a batch of {batch.account.topic}: cannot write to {written}: {NOT_ACKNOWLEDGED}"
            )

    async def wait_for_capacity(self) -> None:
        """Return once another batch can be added."""
        await until_capacity(self, self._bounds.batches, self._bounds.events)

    def fail_stop(self) -> None:
        """Stop producing and acknowledging records for good."""
        self.writer.stop()


def open_delivery(
    connection: Mapping[str, Any],
    limits: Collection[int],
    on_account: Callable[[BatchAccount], None],
    bounds: Bounds,
    seconds: float,
    linger_ms: int = DEFAULT_LATENCY.linger_ms,
) -> AtLeastOnceDelivery:
    """Return the service's delivery, with its own producer. See `producer_config`."""
    producer = RecordProducer.from_config(producer_config(connection, NEVER, limits, bounds, linger_ms))
    return AtLeastOnceDelivery(producer, on_account, bounds, seconds)


async def confirm_all(producer: RecordProducer, topic: str, records: Iterable[Record]) -> None:
    """Write records, and return once the topic contains them.

    Raises:
        FatalError: a record was not delivered.
    """
    delivery = AtLeastOnceDelivery(producer, lambda _: None)
    await asyncio.gather(*(delivery.confirm(topic, record) for record in records))
