"""A delivery that collects records in lists, for tests and dry runs. It needs no broker and no thread."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from translator.codecs.record import Record
from translator.config.settings import Bounds
from translator.errors import FatalError
from translator.kafka.producer import DEFAULT_BOUNDS
from translator.service.delivery.base import (
    PAUSE_SECONDS,
    Acknowledge,
    BatchQueues,
    InFlight,
    OnStored,
    never,
    until_capacity,
)
from translator.service.metrics import BatchAccount


class _Batch(InFlight):
    __slots__ = ("_delivery", "pending")

    def __init__(self, delivery: InMemoryDelivery, account: BatchAccount, acknowledge: Acknowledge) -> None:
        super().__init__(account, acknowledge)
        self._delivery = delivery
        self.pending = 0

    async def send(self, topic: str, partition: int, records: list[Record], on_stored: OnStored | None = None) -> None:
        """Store records."""
        await self._delivery.until_running()
        for record in records:
            self.pending += 1
            self._delivery.store(topic, partition, record, self._stored(on_stored))

    def _stored(self, on_stored: OnStored | None) -> OnStored:
        def report(offset: int) -> None:
            self.pending -= 1
            if on_stored is not None:
                on_stored(offset)

        return report

    async def end_message(self, offset: int, count: int = 1) -> None:
        """Do nothing: offsets are acknowledged for whole batches."""

    def abandon(self) -> None:
        """Forget the batch. Records that were already stored remain."""
        self._delivery.forget(self)


class InMemoryDelivery:
    """Stores written records where the caller can inspect them, and acknowledges batches as the deliveries with a
    broker do.

    Args:
        partitions: number of partitions per topic. A record for any other topic or partition fails, as with a broker.
            None allows any.
        keeps: whether records can be inspected. A dry run only counts them.
    """

    def __init__(
        self,
        on_account: Callable[[BatchAccount], None],
        partitions: Mapping[str, int] | None = None,
        bounds: Bounds = DEFAULT_BOUNDS,
        *,
        keeps: bool = True,
    ) -> None:
        self._keeps = keeps
        self._partitions = partitions
        self._bounds = bounds
        self._queues: BatchQueues[_Batch] = BatchQueues(on_account)
        self._counts: Counter[tuple[str, int]] = Counter()
        self._logs: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)
        self._withheld: dict[str, list[Callable[[], None]]] = {}  # outstanding reports by topic
        self._reports = 0
        self._stopped = False
        self._failure: FatalError | None = None

    def written(self, topic: str, partition: int) -> list[Record]:
        """Return a partition's records. The index of each record is its offset."""
        return [*self._logs.get((topic, partition), ())]

    def withhold(self, topic: str) -> None:
        """Delay the reports for a topic's records, like a broker that is slow to acknowledge."""
        self._withheld.setdefault(topic, [])

    def withheld(self, topic: str) -> int:
        """Return the number of delayed reports."""
        return len(self._withheld.get(topic, ()))

    def release(self, topic: str, failure: str | None = None) -> None:
        """Release the delayed reports and stop delaying.

        Args:
            failure: the error that they report, or None if the records were delivered.
        """
        if failure is not None:
            self._fail(topic, failure)
            return
        for report in self._withheld.pop(topic):
            report()

    @property
    def batches(self) -> int:
        """The number of batches in flight."""
        return len(self._queues)

    @property
    def records(self) -> int:
        """The number of records with outstanding reports."""
        return sum(map(len, self._withheld.values()))

    @property
    def progress(self) -> int | None:
        """A number that changes with each report, or None if no report is outstanding."""
        return self._reports if self.records else None

    @property
    def may_still_write(self) -> bool:
        """Return whether reports are delayed."""
        return self.records > 0

    def begin(self, account: BatchAccount, acknowledge: Acknowledge, membership: bytes = b"") -> _Batch:
        """Add a batch. Group membership does not matter."""
        batch = _Batch(self, account, acknowledge)
        self._queues.add(batch)
        return batch

    def forget(self, batch: _Batch) -> None:
        """Never acknowledge the partition's last batch."""
        self._queues.remove(batch)

    async def until_running(self) -> None:
        """Return immediately or, after `fail_stop`, never."""
        if self._stopped:
            await never()

    def store(self, topic: str, partition: int, record: Record, on_stored: OnStored) -> None:
        """Append a record to its partition's log."""
        if self._partitions is not None and partition >= self._partitions.get(topic, 0):
            self._fail(topic, "the topic or partition does not exist")
            return
        offset = self._counts[topic, partition]
        self._counts[topic, partition] += 1
        if self._keeps:
            self._logs[topic, partition].append(record)

        def report() -> None:
            self._reports += 1
            on_stored(offset)

        if topic in self._withheld:
            self._withheld[topic].append(report)
        else:
            report()

    def _fail(self, topic: str, reason: str) -> None:
        self._failure = self._failure or FatalError(f"delivery failed: cannot write to {topic}: {reason}")

    async def confirm(self, topic: str, record: Record) -> None:
        """Store a record in partition 0, and return once its report has arrived."""
        await self.until_running()
        stored: list[int] = []
        self.store(topic, 0, record, stored.append)
        while not stored:
            await self._pause()

    async def flush_partition(self, topic: str, partition: int) -> None:
        """Return once everything sent for a raw partition has been reported."""
        for batch in self._queues.of(topic, partition):
            while batch.pending:
                await self._pause()

    async def _pause(self) -> None:
        await self.until_running()
        if self._failure is not None:
            raise self._failure
        await asyncio.sleep(PAUSE_SECONDS)

    def reap(self) -> None:
        """Acknowledge completed batches, in order per partition.

        Raises:
            FatalError: a record was rejected.
        """
        if self._stopped:
            return
        if self._failure is not None:
            raise self._failure
        self._queues.acknowledge_while(lambda batch: batch.closed and not batch.pending)

    async def wait_for_capacity(self) -> None:
        """Return once another batch can be added."""
        await until_capacity(self, self._bounds.batches, self._bounds.events)

    def fail_stop(self) -> None:
        """Stop storing and acknowledging records for good."""
        self._stopped = True
