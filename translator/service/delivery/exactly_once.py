"""Exactly once: records and the offsets that they come of are in one transaction, or neither is.

Read `docs/decisions/0006-exactly-once.md` first. A transaction holds whole messages, never a part of one, and belongs
to one generation of the group: the broker refuses it when the partitions were given to another process meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaError

from translator.codecs.record import Record
from translator.config.settings import Bounds
from translator.errors import FatalError
from translator.kafka.producer import DEFAULT_BOUNDS, Report, write_failure
from translator.kafka.transactional_producer import PartitionsMovedError, TransactionalProducer
from translator.service.delivery.base import (
    PAUSE_SECONDS,
    Acknowledge,
    BatchQueues,
    Delivery,
    InFlight,
    OnStored,
    until_capacity,
)
from translator.service.delivery.record_writer import RecordWriter, with_offset
from translator.service.metrics import BatchAccount

TRANSACTION_SECONDS = 0.08
"""The time for which a transaction takes records, unless so much is in flight that reading waits for its end.

It is the delay of readers. Below it the marks of transactions cost more than the time is worth.
"""
_LONGEST_SECONDS = 0.2
_OPEN_BY_END = 4

# A commit waits for records, too: whose topic cannot be written is to be said by their own reports, which come first.
_MORE_SECONDS = 5.0
# What a call may take beyond the time that it is given, as threads on a busy machine do.
_OVERSTAY_SECONDS = 2.0
# Below the time that a dying process has (stopping._FATAL_EXIT_SECONDS). What is not aborted, the broker aborts later.
_ABORT_SECONDS = 5.0

# librdkafka drops what is queued when a record of the transaction fails, and may report these first. The transaction
# cannot be committed then, whatever is made of the reports.
_DROPPED = frozenset((KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT))

_OVERSTAYED = (
    "transaction failed: librdkafka has not come back within the time that it was given (timing.delivery): it waits "
    "for a coordinator that is gone; the next start asks for the new one"
)


def open_seconds(end_seconds: float) -> float:
    """Return for how long a transaction takes records when the end of the last one took so long.

    Nothing is written while a transaction ends: where that takes long, as with far brokers, there are fewer of them.
    """
    return max(TRANSACTION_SECONDS, min(_OPEN_BY_END * end_seconds, _LONGEST_SECONDS))


class _Batch(InFlight):
    __slots__ = ("_delivery", "held", "membership", "messages")

    def __init__(
        self, delivery: ExactlyOnceDelivery, account: BatchAccount, acknowledge: Acknowledge, membership: bytes
    ) -> None:
        super().__init__(account, acknowledge)
        self._delivery = delivery
        self.membership = membership
        self.held: list[tuple[str, int, Sequence[Record], Report]] = []  # what its present messages have to write
        self.messages = 0  # that are in a transaction

    async def send(
        self, topic: str, partition: int, records: Sequence[Record], on_stored: OnStored | None = None
    ) -> None:
        """Keep records until their message has ended: a transaction must not end between two of them.

        `on_stored` is called before the transaction ends; when it does not stand, nor does the process.
        """
        self.held.append((topic, partition, records, with_offset(self._delivery.report, on_stored)))

    async def end_message(self, offset: int, count: int = 1) -> None:
        """Write the messages into the present transaction, whole and with the offset of the last."""
        await self._delivery.write_messages(self, offset, count)

    def abandon(self) -> None:
        """Take no more. The messages that ended stand, with their offset: the next owner goes on behind them."""
        self.held.clear()
        if not self.messages:
            self._delivery.forget(self)
            return
        self.account.records = self.messages
        self.acknowledge = lambda: None
        self.close()


class ExactlyOnceDelivery:
    """Delivery in transactions: `reap` ends one when it is time, and acknowledges what it held.

    Args:
        producer: `open` comes before anything else.
        outside: writes what others must be able to read before the first event that names it.
        note: gives what to commit beside an offset of a topic.
        on_commit: is told how many seconds the end of a transaction took.
        seconds: that a record may take (`timing.delivery`), and a call of the library; a commit may take little more.
    """

    def __init__(
        self,
        producer: TransactionalProducer,
        outside: Delivery,
        on_account: Callable[[BatchAccount], None],
        note: Callable[[str], str],
        on_commit: Callable[[float], None],
        seconds: float,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self._producer = producer
        self._writer = RecordWriter(producer)
        self._queues: BatchQueues[_Batch] = BatchQueues(on_account)
        self._bounds = bounds
        self._outside = outside
        self._note = note
        self._on_commit = on_commit
        self._seconds = seconds
        # -- of the present transaction
        self._membership = b""
        self._offsets: dict[tuple[str, int], int] = {}  # one past the last message of a partition
        self._began = 0.0
        self._open_seconds = TRANSACTION_SECONDS
        self._hurry = False  # something waits for its end
        self._closing = False  # it takes no more messages
        self._writing = 0  # messages of which a part is written
        self._ending: asyncio.Task[Any] | None = None
        # -- of all
        self.overstayed = False
        """A call has not come back: its thread keeps the interpreter from ending."""
        self._ended = 0

    def open(self, seconds: float) -> None:
        """End what an earlier process of the same transactional.id left open; blocks.

        Raises:
            ConfigError: this user cannot write transactions, or not so long ones.
            RetryableError: no broker answers.
        """
        self._producer.open(seconds)

    @property
    def batches(self) -> int:
        """The number of batches in flight."""
        return len(self._queues)

    @property
    def records(self) -> int:
        """The number of records whose reports have not been taken."""
        return len(self._writer)

    @property
    def progress(self) -> int | None:
        """A number that changes with each transaction that ends; None while none is open."""
        outside = self._outside.progress
        if not self._offsets and self._ending is None and outside is None:
            return None
        return self._ended + (outside or 0)

    @property
    def may_still_write(self) -> bool:
        """Say so of what is written outside of transactions: a transaction that nobody commits is never read."""
        return self._outside.may_still_write

    # -- writing

    def begin(self, account: BatchAccount, acknowledge: Acknowledge, membership: bytes = b"") -> _Batch:
        """Take a batch on."""
        batch = _Batch(self, account, acknowledge, membership)
        self._queues.add(batch)
        return batch

    def forget(self, batch: _Batch) -> None:
        """Never acknowledge the last batch of its partition, of which no message has ended."""
        self._queues.remove(batch)

    async def write_messages(self, batch: _Batch, offset: int, count: int) -> None:
        """Write what a batch holds, of so many messages, and note the last offset, both in the present transaction."""
        while not self._takes(batch.membership):
            await self._writer.pause()
        self._membership = batch.membership
        self._began = self._began or time.monotonic()
        self._writing += 1
        for topic, partition, records, report in batch.held:
            await self._writer.write(topic, partition, records, report)
        self._writing -= 1
        batch.held.clear()
        batch.messages += count
        self._offsets[batch.account.topic, batch.account.partition] = offset + 1

    def _takes(self, membership: bytes) -> bool:
        """Say whether the present transaction may take a message. One of another generation hurries its end."""
        if self._writer.stopped or self._closing or self._ending is not None:
            return False
        if (self._offsets or self._writing) and membership != self._membership:
            self._hurry = True
            return False
        return True

    def report(self, error: KafkaError | None, message: Any) -> None:
        """Take the report of one record. One that was dropped was so for another, whose report names the cause."""
        if error is not None and error.code() not in _DROPPED:
            self._writer.fail(FatalError(f"delivery failed: {write_failure(message.topic(), error)}"))

    async def confirm(self, topic: str, record: Record) -> None:
        """As `Delivery.confirm`, and in no transaction: other processes read it at once, whatever becomes of ours."""
        await self._outside.confirm(topic, record)

    # -- ends of transactions

    def reap(self) -> None:
        """Start the end of a transaction when it is time.

        Raises:
            FatalError: a record was not delivered, or a transaction not committed; nothing is acknowledged any more.
        """
        with suppress(FatalError):  # kept, and raised below
            self._writer.serve()
        self._outside.reap()
        if self._writer.stopped:
            return
        if self._writer.failure is not None:
            raise self._writer.failure
        if self._ending is not None:
            return
        if self._offsets:
            self._closing = self._hurry or time.monotonic() - self._began >= self._open_seconds
            if self._closing and not self._writing:
                self._ending = asyncio.create_task(self._end())
        elif not self._writing:
            self._acknowledge()  # what was closed after its last message stood, or without any

    async def wait_for_capacity(self) -> None:
        """Return when another batch may be taken on; at the bound of batches the transaction ends before its time."""
        self._hurry = self._hurry or len(self._queues) >= self._bounds.batches
        await until_capacity(self, self._bounds.batches, self._bounds.events)

    async def flush_partition(self, topic: str, partition: int) -> None:
        """Return when what was ended of a raw partition is in a transaction that stands."""
        while (topic, partition) in self._offsets:
            self._hurry = True
            await self._writer.pause()

    async def all_settled(self) -> None:
        """Return when no transaction is open. Partitions are about to be given away."""
        while not self._writer.stopped and (self._offsets or self._writing or self._ending is not None):
            self._hurry = True
            await asyncio.sleep(PAUSE_SECONDS)
        self._hurry = False
        if not self._writer.stopped:
            self._acknowledge()

    async def place(self, offsets: Mapping[tuple[str, int], int], membership: bytes) -> bool:
        """Commit where partitions begin, before anything of them is read; False: they move again.

        Raises:
            FatalError: it was not committed.
        """
        await self.all_settled()
        if self._writer.stopped:
            return False
        self._ending = asyncio.create_task(self._place(dict(offsets), membership))
        self._ending.add_done_callback(self._placed)
        # Shielded: when partitions move again this ends at once, but the next transaction must wait for it.
        return bool(await asyncio.shield(self._ending))

    def _placed(self, placing: asyncio.Task[Any]) -> None:
        if (error := placing.exception()) is not None:
            self._writer.fail(error)
        self._ending = None

    async def _place(self, offsets: Mapping[tuple[str, int], int], membership: bytes) -> bool:
        try:
            await self._send_offsets(offsets, membership)
        except PartitionsMovedError:
            await self._call(self._seconds, self._producer.abort)
            return False
        await self._commit()
        return True

    async def _end(self) -> None:
        offsets, membership = self._offsets, self._membership
        started = time.monotonic()
        try:
            await self._send_offsets(offsets, membership)
            await self._commit()
        except Exception as error:
            self._writer.fail(error)  # and `_ending` stays: no other transaction begins
            return
        if self._writer.stopped:
            return
        self._offsets, self._began, self._hurry, self._closing = {}, 0.0, False, False
        self._ended += 1
        took = time.monotonic() - started
        self._open_seconds = open_seconds(took)
        self._on_commit(took)
        self._acknowledge()
        self._ending = None

    async def _send_offsets(self, offsets: Mapping[tuple[str, int], int], membership: bytes) -> None:
        noted = [(topic, partition, offset, self._note(topic)) for (topic, partition), offset in offsets.items()]
        await self._call(self._seconds, partial(self._producer.send_offsets, noted, membership))

    async def _commit(self) -> None:
        """End the transaction and begin the next, which is nothing to the broker before it holds something."""
        await self._call(self._seconds + _MORE_SECONDS, self._producer.commit)

    async def _call(self, seconds: float, call: Callable[[float], None]) -> None:
        """Make a call of the producer, which blocks, in a thread. It is told how long it may take.

        Raises:
            FatalError: it failed, or it has not returned although its time is over.
        """
        calling = asyncio.get_running_loop().run_in_executor(None, call, seconds)
        # Not with the timeout of the call alone: librdkafka 2.16 waits beyond it for a coordinator that is gone.
        await asyncio.wait({calling}, timeout=seconds + _OVERSTAY_SECONDS)
        if not calling.done():
            self.overstayed = True
            raise FatalError(_OVERSTAYED)
        calling.result()

    def _acknowledge(self) -> None:
        """Acknowledge closed batches. No transaction is open: each of their messages is in one that stands."""
        self._queues.acknowledge_while(lambda batch: batch.closed)

    def fail_stop(self) -> None:
        """Produce and acknowledge nothing from here on; what is open is aborted."""
        if self._writer.stopped:
            return
        self._writer.stopped = True
        self._outside.fail_stop()
        # No daemon: the process waits for it. That readers need not wait for the broker to abort it is worth seconds.
        threading.Thread(target=self._producer.abort_last, args=(_ABORT_SECONDS,), name="abort").start()
