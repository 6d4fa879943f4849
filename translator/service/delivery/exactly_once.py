"""Exactly once: records and the raw offsets from which they come are committed in one transaction, or not at all.

Read `docs/decisions/0006-exactly-once.md` first. A transaction contains whole messages and belongs to one group
generation. The broker rejects the transaction if the partitions were reassigned in the meantime.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaError

from translator.codecs.record import Record
from translator.config.settings import Bounds
from translator.errors import FatalError
from translator.kafka.producer import DEFAULT_BOUNDS, DEFAULT_LATENCY, write_failure
from translator.kafka.record_queue import DROPPED
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

_LONGEST_SECONDS = 0.2
_OPEN_BY_END = 4

# A commit also waits for outstanding records. If a topic cannot be written, the reports for the topic's records arrive
# first and contain the reason.
_MORE_SECONDS = 5.0
# The time by which a call can exceed its timeout because of thread scheduling on a busy machine.
_OVERSTAY_SECONDS = 2.0
# This is less time than a failing process has to exit (stopping._FATAL_EXIT_SECONDS). If we do not abort the
# transaction, the broker does.
_ABORT_SECONDS = 5.0

_OVERSTAYED = (
    "transaction failed: librdkafka did not return within the given time (timing.delivery), because it is waiting for "
    "a coordinator that no longer exists; the next start looks up the new one"
)


def open_seconds(end_seconds: float, least_seconds: float) -> float:
    """Return for how long a transaction accepts records, given how long it took to end the last transaction.

    Nothing is written while a transaction ends. If ending a transaction takes a long time, as with distant brokers,
    each transaction accepts records for longer, so that fewer transactions are needed.

    Args:
        least_seconds: the value of `latency.transaction_ms`.
    """
    return max(least_seconds, min(_OPEN_BY_END * end_seconds, _LONGEST_SECONDS))


class _Batch(InFlight):
    __slots__ = ("_delivery", "held", "membership", "messages")

    def __init__(
        self, delivery: ExactlyOnceDelivery, account: BatchAccount, acknowledge: Acknowledge, membership: bytes
    ) -> None:
        super().__init__(account, acknowledge)
        self._delivery = delivery
        self.membership = membership
        self.held: list[
            tuple[str, int, list[Record], OnStored | None]
        ] = []  # records to write for the batch's current messages
        self.messages = 0  # messages in a transaction

    async def send(self, topic: str, partition: int, records: list[Record], on_stored: OnStored | None = None) -> None:
        """Keep records until their message is complete, because a transaction must not end between two records of a
        message.

        `on_stored` is called before the transaction ends. If the transaction fails, the process stops.
        """
        self.held.append((topic, partition, records, on_stored))

    async def end_message(self, offset: int, count: int = 1) -> None:
        """Write the messages into the current transaction, completely and with the offset of the last message."""
        await self._delivery.write_messages(self, offset, count)

    def abandon(self) -> None:
        """Accept no more messages. Completed messages remain, with their offset, and the next owner resumes after
        these.
        """
        self.held.clear()
        if not self.messages:
            self._delivery.forget(self)
            return
        self.account.records = self.messages
        self.acknowledge = lambda: None
        self.close()


class ExactlyOnceDelivery:
    """Delivery in transactions. `reap` ends a transaction when it is due, and acknowledges the batches in it.

    Args:
        producer: `open` must be called first.
        outside: writes records that others must be able to read before the first event that refers to them.
        note: returns the metadata to commit with a topic's offset.
        on_commit: called with the number of seconds that ending a transaction took.
        seconds: the timeout for a record (`timing.delivery`) and for a library call. A commit can take slightly longer.
        transaction_seconds: time for which a transaction accepts records. It ends earlier if the reader has to wait
            because too much is in flight.
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
        transaction_seconds: float = DEFAULT_LATENCY.transaction_ms / 1000,
    ) -> None:
        self._producer = producer
        self._writer = RecordWriter(producer)
        self._queues: BatchQueues[_Batch] = BatchQueues(on_account)
        self._bounds = bounds
        self._outside = outside
        self._note = note
        self._on_commit = on_commit
        self._seconds = seconds
        # -- state of the current transaction
        self._membership = b""
        self._offsets: dict[tuple[str, int], int] = {}  # one past the last message of a partition
        self._began = 0.0
        self._least_seconds = transaction_seconds
        self._open_seconds = transaction_seconds
        self._hurry = False  # a caller waits for the transaction to end
        self._closing = False  # the transaction accepts no more messages
        self._writing = 0  # messages that are partly written
        self._ending: asyncio.Task[Any] | None = None
        # -- state across transactions
        self.overstayed = False
        """True if a call has not returned, so that its thread keeps the interpreter from exiting."""
        self._ended = 0

    def open(self, seconds: float) -> None:
        """Finish the transaction that an earlier process with the same transactional.id left open. Blocks.

        Raises:
            ConfigError: this user is not allowed to write transactions, or to keep them open this long.
            RetryableError: no broker responds.
        """
        self._producer.open(seconds)

    @property
    def batches(self) -> int:
        """The number of batches in flight."""
        return len(self._queues)

    @property
    def records(self) -> int:
        """The number of records whose reports have not been processed."""
        return len(self._writer)

    @property
    def progress(self) -> int | None:
        """A number that changes when a transaction ends, or None while no transaction is open."""
        outside = self._outside.progress
        if not self._offsets and self._ending is None and outside is None:
            return None
        return self._ended + (outside or 0)

    @property
    def may_still_write(self) -> bool:
        """Only records written outside transactions count, because readers never see records in an uncommitted
        transaction.
        """
        return self._outside.may_still_write

    # -- writing

    def begin(self, account: BatchAccount, acknowledge: Acknowledge, membership: bytes = b"") -> _Batch:
        """Add a batch."""
        batch = _Batch(self, account, acknowledge, membership)
        self._queues.add(batch)
        return batch

    def forget(self, batch: _Batch) -> None:
        """Never acknowledge the partition's last batch, because none of its messages is complete."""
        self._queues.remove(batch)

    async def write_messages(self, batch: _Batch, offset: int, count: int) -> None:
        """Write a batch's content, `count` messages, and note the last offset, both in the current transaction."""
        while not self._takes(batch.membership):
            await self._writer.pause()
        self._membership = batch.membership
        self._began = self._began or time.monotonic()
        self._writing += 1
        for topic, partition, records, on_stored in batch.held:
            if on_stored is None:
                # The end of the transaction covers every record, so the marks are not needed.
                await self._writer.write(topic, partition, records, {})
            else:
                await self._writer.write_reported(topic, partition, records, with_offset(self._report, on_stored))
        self._writing -= 1
        batch.held.clear()
        batch.messages += count
        self._offsets[batch.account.topic, batch.account.partition] = offset + 1

    def _takes(self, membership: bytes) -> bool:
        """Return whether the current transaction accepts a message. A message from another generation ends the
        transaction early.
        """
        if self._writer.stopped or self._closing or self._ending is not None:
            return False
        if (self._offsets or self._writing) and membership != self._membership:
            self._hurry = True
            return False
        return True

    def _report(self, error: KafkaError | None, message: Any) -> None:
        if error is not None and error.code() not in DROPPED:
            self._fail(message.topic(), error)

    def _fail(self, topic: str, error: KafkaError) -> None:
        self._writer.fail(FatalError(f"delivery failed: {write_failure(topic, error)}"))

    def _note_failure(self) -> None:
        if (failed := self._producer.failure()) is not None:
            self._fail(*failed)

    async def confirm(self, topic: str, record: Record) -> None:
        """Do the same as `Delivery.confirm`. The record is written outside transactions, so that other processes can
        read it immediately.
        """
        await self._outside.confirm(topic, record)

    # -- ends of transactions

    def reap(self) -> None:
        """Start ending a transaction when it is due.

        Raises:
            FatalError: a record was not delivered, or a transaction was not committed. Nothing is acknowledged any
                more.
        """
        with suppress(FatalError):  # the error is stored here and raised below
            self._writer.serve()
        self._outside.reap()
        if self._writer.stopped:
            return
        self._note_failure()
        if self._writer.failure is not None:
            raise self._writer.failure
        if self._ending is not None:
            return
        if self._offsets:
            self._closing = self._hurry or time.monotonic() - self._began >= self._open_seconds
            if self._closing and not self._writing:
                self._ending = asyncio.create_task(self._end())
        elif not self._writing:
            self._acknowledge()  # the batch was closed without messages, or after its last message was committed

    async def wait_for_capacity(self) -> None:
        """Return once another batch can be added. At the batch limit, the transaction ends early."""
        self._hurry = self._hurry or len(self._queues) >= self._bounds.batches
        await until_capacity(self, self._bounds.batches, self._bounds.events)

    async def flush_partition(self, topic: str, partition: int) -> None:
        """Return once a raw partition's completed messages are in a committed transaction."""
        while (topic, partition) in self._offsets:
            self._hurry = True
            await self._writer.pause()

    async def all_settled(self) -> None:
        """Return once no transaction is open. Called when partitions are about to be handed over."""
        while not self._writer.stopped and (self._offsets or self._writing or self._ending is not None):
            self._hurry = True
            await asyncio.sleep(PAUSE_SECONDS)
        self._hurry = False
        if not self._writer.stopped:
            self._acknowledge()

    async def place(self, offsets: Mapping[tuple[str, int], int], membership: bytes) -> bool:
        """Commit the start offsets of partitions before the partitions are read. Returns False if the partitions move
        again.

        Raises:
            FatalError: the offsets were not committed.
        """
        await self.all_settled()
        if self._writer.stopped:
            return False
        self._ending = asyncio.create_task(self._place(dict(offsets), membership))
        self._ending.add_done_callback(self._placed)
        # Shielded, because this call is cancelled when partitions move again, but the next transaction must wait for
        # the commit.
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
            self._note_failure()  # the cause of the error, if a record failed
            self._writer.fail(error)  # `_ending` stays set, so no other transaction begins
            return
        if self._writer.stopped:
            return
        self._offsets, self._began, self._hurry, self._closing = {}, 0.0, False, False
        self._ended += 1
        took = time.monotonic() - started
        self._open_seconds = open_seconds(took, self._least_seconds)
        self._on_commit(took)
        self._acknowledge()
        self._ending = None

    async def _send_offsets(self, offsets: Mapping[tuple[str, int], int], membership: bytes) -> None:
        noted = [(topic, partition, offset, self._note(topic)) for (topic, partition), offset in offsets.items()]
        await self._call(self._seconds, partial(self._producer.send_offsets, noted, membership))

    async def _commit(self) -> None:
        """End the transaction and begin the next one, which the broker does not see until it contains records."""
        await self._call(self._seconds + _MORE_SECONDS, self._producer.commit)

    async def _call(self, seconds: float, call: Callable[[float], None]) -> None:
        """Make one of the producer's blocking calls in a thread. The call receives its timeout.

        Raises:
            FatalError: the call failed, or did not return in time.
        """
        calling = asyncio.get_running_loop().run_in_executor(None, call, seconds)
        # The call's own timeout is not enough: librdkafka 2.16 exceeds it while waiting for a coordinator that is gone.
        await asyncio.wait({calling}, timeout=seconds + _OVERSTAY_SECONDS)
        if not calling.done():
            self.overstayed = True
            raise FatalError(_OVERSTAYED)
        calling.result()

    def _acknowledge(self) -> None:
        """Acknowledge closed batches. No transaction is open, so all of their messages are committed."""
        self._queues.acknowledge_while(lambda batch: batch.closed)

    def fail_stop(self) -> None:
        """Stop producing and acknowledging records for good, and abort the open transaction."""
        if self._writer.stopped:
            return
        self._writer.stopped = True
        self._outside.fail_stop()
        # Not a daemon thread, because the process should wait for it. Otherwise, consumers would wait until the broker
        # aborts the transaction.
        threading.Thread(target=self._producer.abort_last, args=(_ABORT_SECONDS,), name="abort").start()
