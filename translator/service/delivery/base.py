"""The interface of a delivery, and the code that all deliveries share: the batches in flight, which are acknowledged in
order.

`tests/translator/service/delivery/test_contract.py` runs the same tests for every implementation.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, Protocol, TypeVar

from translator.codecs.record import Record
from translator.service.metrics import BatchAccount

PAUSE_SECONDS = 0.002
"""Seconds between checks for a report, for room in a queue, or for the end of a transaction."""

Acknowledge = Callable[[], object]
"""Called to allow a batch's offset to be committed."""

OnStored = Callable[[int], None]
"""Called with a written record's offset before its batch is acknowledged."""


class Batch(Protocol):
    """A raw partition's batch between reading and acknowledgment. The results of the batch are written through this
    object.
    """

    @property
    def account(self) -> BatchAccount: ...

    async def send(self, topic: str, partition: int, records: list[Record], on_stored: OnStored | None = None) -> None:
        """Write the current message's records. Waits until the delivery has room for these records.

        Raises:
            FatalError: the delivery has failed permanently.
        """
        ...

    async def end_message(self, offset: int, count: int = 1) -> None:
        """Record that all records for the next `count` messages, up to this raw offset, have been sent."""
        ...

    def close(self) -> None:
        """Record that the whole batch was sent. It is acknowledged once all of it has been delivered."""
        ...

    def abandon(self) -> None:
        """Record that nothing more from the batch will be sent, and that it will never be acknowledged. It is the
        partition's last batch.

        The partition's next owner reads the batch again and sends its records again, unless the delivery prevents that.
        """
        ...


class Delivery(Protocol):
    """Writes the results of batches. Each batch is acknowledged, in order, after everything from it was delivered.

    Any undelivered record is fatal: its batch and all later batches are never acknowledged, the process stops, and the
    next process starts at the committed offset.
    """

    @property
    def batches(self) -> int:
        """The number of batches in flight."""
        ...

    @property
    def records(self) -> int:
        """The number of records whose reports have not been processed."""
        ...

    @property
    def progress(self) -> int | None:
        """A number that changes with every delivery, or None while nothing is outstanding."""
        ...

    @property
    def may_still_write(self) -> bool:
        """Return whether a broker may still store visible records that have not been reported.

        If so, the partitions of these records must not be handed over yet. Otherwise, the next owner's records might be
        stored before the records in flight.
        """
        ...

    def begin(self, account: BatchAccount, acknowledge: Acknowledge, membership: bytes = b"") -> Batch:
        """Add a batch.

        Args:
            membership: the group member that fetched the batch, for use in transactions.
        """
        ...

    async def confirm(self, topic: str, record: Record) -> None:
        """Write a keyed record to a compacted topic (partition 0), and return once other processes can read the record.

        Raises:
            FatalError: the record was not delivered.
        """
        ...

    async def flush_partition(self, topic: str, partition: int) -> None:
        """Return once everything sent for a raw partition's finished messages has been delivered.

        Raises:
            FatalError: something was not delivered.
        """
        ...

    def reap(self) -> None:
        """Process delivery reports, and acknowledge completed batches in order per raw partition. Called every few
        milliseconds.

        Raises:
            FatalError: a record was not delivered; nothing is acknowledged any more.
        """
        ...

    async def wait_for_capacity(self) -> None:
        """Return once another batch can be added.

        Raises:
            FatalError: as `reap`.
        """
        ...

    def fail_stop(self) -> None:
        """Produce and acknowledge nothing from now on. Callers of the methods above wait until the process ends."""
        ...


class InFlight:
    """The state of a batch that all deliveries share."""

    __slots__ = ("account", "acknowledge", "closed")

    def __init__(self, account: BatchAccount, acknowledge: Acknowledge) -> None:
        self.account = account
        self.acknowledge = acknowledge
        self.closed = False

    def close(self) -> None:
        """Note that the whole batch was sent."""
        self.account.sent = time.monotonic()
        self.closed = True


B = TypeVar("B", bound=InFlight)


class BatchQueues(Generic[B]):
    """The batches in flight, by raw partition and in the order in which they began.

    Args:
        on_account: called with a batch's account when the batch is acknowledged.
    """

    def __init__(self, on_account: Callable[[BatchAccount], None]) -> None:
        self._on_account = on_account
        self._queues: dict[tuple[str, int], deque[B]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[deque[B]]:
        """Return each partition's queue, including empty ones."""
        return iter(self._queues.values())

    def of(self, topic: str, partition: int) -> list[B]:
        """Return a raw partition's batches, oldest first."""
        return [*self._queues.get((topic, partition), ())]

    def add(self, batch: B) -> None:
        self._queues.setdefault((batch.account.topic, batch.account.partition), deque()).append(batch)
        self._count += 1

    def remove(self, batch: B) -> None:
        self._queues[batch.account.topic, batch.account.partition].remove(batch)
        self._count -= 1

    def acknowledge_while(self, is_done: Callable[[B], bool]) -> None:
        """Acknowledge batches in order. In each partition, stop before the first unfinished batch."""
        for queue in self._queues.values():
            while queue and is_done(queue[0]):
                batch = queue.popleft()
                self._count -= 1
                self._on_account(batch.account)
                batch.acknowledge()


async def until_capacity(delivery: Delivery, batches: int, records: int) -> None:
    """Return once fewer batches and records than these limits are in flight. Below the limits, only the service's
    background task calls `reap`, because a call for each batch would cost as much as several messages.

    Raises:
        FatalError: as `Delivery.reap`.
    """

    def is_full() -> bool:
        return delivery.batches >= batches or delivery.records >= records

    while is_full():
        delivery.reap()
        if is_full():
            await asyncio.sleep(PAUSE_SECONDS)


def never() -> Awaitable[bool]:
    """Wait until the process ends."""
    return asyncio.Event().wait()
