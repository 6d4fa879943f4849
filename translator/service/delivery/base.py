"""The protocol of a delivery, and the part that all deliveries share: batches in flight, acknowledged in order.

`tests/translator/service/delivery/test_contract.py` holds every implementation to the same behaviour.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from translator.codecs.record import Record
from translator.service.metrics import BatchAccount

PAUSE_SECONDS = 0.002
"""Between two looks at something that comes by itself: a report, room in a queue, the end of a transaction."""

Acknowledge = Callable[[], object]
"""Lets the offset of a batch be committed."""

OnStored = Callable[[int], None]
"""Is told the offset of a record that was written, before its batch is acknowledged."""


class Batch(Protocol):
    """A batch of a raw partition between reading and acknowledging: what comes of it is written through it."""

    @property
    def account(self) -> BatchAccount: ...

    async def send(
        self, topic: str, partition: int, records: Sequence[Record], on_stored: OnStored | None = None
    ) -> None:
        """Write records of the present message; wait while there is no room for them.

        Raises:
            FatalError: the delivery has failed for good.
        """
        ...

    async def end_message(self, offset: int, count: int = 1) -> None:
        """Tell that everything of the message at this raw offset was sent, and of those before it, `count` in all."""
        ...

    def close(self) -> None:
        """Tell that everything of the batch was sent: it is acknowledged when all of that is delivered."""
        ...

    def abandon(self) -> None:
        """Tell that no more of the batch is sent, and that it is never acknowledged. It is the last of its partition.

        What was sent of it comes again when the next owner of the partition reads it, unless a delivery says more.
        """
        ...


class Delivery(Protocol):
    """Writes what comes of batches, and acknowledges each in its turn when all of it was delivered.

    Any record that is not delivered is fatal: its batch and all after it are never acknowledged, the process stops, and
    the next one starts at the committed offset.
    """

    @property
    def batches(self) -> int:
        """The number of batches in flight."""
        ...

    @property
    def records(self) -> int:
        """The number of records whose reports have not been taken."""
        ...

    @property
    def progress(self) -> int | None:
        """A number that changes with whatever is delivered; None while nothing is to be."""
        ...

    @property
    def may_still_write(self) -> bool:
        """Say whether a broker may still store records for readers that have not been reported on.

        Then the partitions that they come of must not be given away at once: what another process writes of them would
        stand before what is under way.
        """
        ...

    def begin(self, account: BatchAccount, acknowledge: Acknowledge, membership: bytes = b"") -> Batch:
        """Take a batch on.

        Args:
            membership: the member of the group that fetched it; transactions name it.
        """
        ...

    async def confirm(self, topic: str, record: Record) -> None:
        """Write a keyed record to a compacted topic (partition 0), and return when others can read it.

        Raises:
            FatalError: it was not delivered.
        """
        ...

    async def flush_partition(self, topic: str, partition: int) -> None:
        """Return when all that was sent of the ended messages of a raw partition is delivered.

        Raises:
            FatalError: something was not.
        """
        ...

    def reap(self) -> None:
        """Take reports, and acknowledge what is done, in order per raw partition. Called every few milliseconds.

        Raises:
            FatalError: a record was not delivered; nothing is acknowledged any more.
        """
        ...

    async def wait_for_capacity(self) -> None:
        """Return when another batch may be taken on.

        Raises:
            FatalError: as `reap`.
        """
        ...

    def fail_stop(self) -> None:
        """Produce and acknowledge nothing from here on. Who waits in a call above waits for the end of the process."""
        ...


class InFlight:
    """The part of a batch that every delivery has."""

    __slots__ = ("account", "acknowledge", "closed")

    def __init__(self, account: BatchAccount, acknowledge: Acknowledge) -> None:
        self.account = account
        self.acknowledge = acknowledge
        self.closed = False

    def close(self) -> None:
        """Tell that everything of the batch was sent."""
        self.closed = True


B = TypeVar("B", bound=InFlight)


class BatchQueues(Generic[B]):
    """The batches in flight by raw partition, in the order in which they began.

    Args:
        on_account: is told what became of a batch when it is acknowledged.
    """

    def __init__(self, on_account: Callable[[BatchAccount], None]) -> None:
        self._on_account = on_account
        self._queues: dict[tuple[str, int], deque[B]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[deque[B]]:
        """Give the queue of each partition; an empty one, too."""
        return iter(self._queues.values())

    def of(self, topic: str, partition: int) -> list[B]:
        """Return the batches of a raw partition, the oldest first."""
        return [*self._queues.get((topic, partition), ())]

    def add(self, batch: B) -> None:
        self._queues.setdefault((batch.account.topic, batch.account.partition), deque()).append(batch)
        self._count += 1

    def remove(self, batch: B) -> None:
        self._queues[batch.account.topic, batch.account.partition].remove(batch)
        self._count -= 1

    def acknowledge_while(self, is_done: Callable[[B], bool]) -> None:
        """Acknowledge batches in order, of each partition up to the first that is not done."""
        for queue in self._queues.values():
            while queue and is_done(queue[0]):
                batch = queue.popleft()
                self._count -= 1
                self._on_account(batch.account)
                batch.acknowledge()


async def until_capacity(delivery: Delivery, batches: int, records: int) -> None:
    """Reap until fewer batches and fewer records than these bounds are in flight.

    Raises:
        FatalError: as `Delivery.reap`.
    """
    delivery.reap()
    while delivery.batches >= batches or delivery.records >= records:
        await asyncio.sleep(PAUSE_SECONDS)
        delivery.reap()


def never() -> Awaitable[bool]:
    """Wait for the end of the process."""
    return asyncio.Event().wait()
