"""Exactly once: records and the offsets that they come of are in one transaction, or neither is.

Read `docs/decisions/0006-exactly-once.md` first. A transaction holds whole messages, never a part of one, and belongs
to one generation of the group: the broker refuses it when the partitions were given to another process meanwhile.
"""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from translator.codecs.record import Record
from translator.errors import ConfigError, FatalError, RetryableError
from translator.service.delivery.at_least_once import DEFAULT_BOUNDS, Delivery, InFlight, failure, telling
from translator.service.metrics import BatchAccount
from translator.settings import Bounds

SECONDS = 0.2
"""How long a transaction takes records, unless so much is in flight that reading waits for its end."""

_PAUSE = 0.002
# A commit waits for records, too: whose topic cannot be written is to be said by their own reports, which come first.
_MORE_SECONDS = 5.0
# What a call may take beyond the time that it is given, as threads on a busy machine do.
_OVERSTAY_SECONDS = 2.0
# Below the time that a dying process has (app._FATAL_EXIT_SECONDS). What is not aborted, the broker aborts later.
_ABORT_SECONDS = 5.0

_MOVED = "the group has given the partitions to another process, or is about to; nothing of the transaction is visible"
_FENCED = (
    "the broker ended the transaction after timing.delivery, or another process has the same transactional.id: host "
    "name and web.port must not be those of another one of the group"
)
_MOVES: Mapping[int, str] = {
    KafkaError.ILLEGAL_GENERATION: _MOVED,
    KafkaError.UNKNOWN_MEMBER_ID: _MOVED,
    KafkaError.REBALANCE_IN_PROGRESS: _MOVED,
}
_CAUSES: Mapping[int, str] = {
    **_MOVES,
    KafkaError._FENCED: _FENCED,
    KafkaError.PRODUCER_FENCED: _FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH: _FENCED,
    KafkaError._TIMED_OUT: "no broker answered within timing.delivery; the next owner waits until it is known whether "
    "the transaction stands",
}
_OVERSTAYED = (
    "transaction failed: librdkafka has not come back within the time that it was given (timing.delivery): it waits "
    "for a coordinator that is gone; the next start asks for the new one"
)
# What the operator must change before any start can succeed.
_REFUSALS: Mapping[int, str] = {
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the user needs write and describe on it",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the user may not write as an idempotent producer",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "timing.delivery is above the brokers' transaction.max.timeout.ms",
}


def transactional_config(
    config: Mapping[str, Any], transactional_id: str, seconds: float, *, reports: bool = False
) -> dict[str, Any]:
    """The settings of a producer that writes transactions, over those of the idempotent one.

    Args:
        seconds: after which the broker aborts a transaction of a process that is gone; until then readers of committed
            records wait. At least the time that a record may take.
        reports: somebody wants to know where records lie (`Delivery.send`, `seen`).
    """
    return {
        **config,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": max(1000, int(seconds * 1000)),
        "delivery.report.only.error": not reports,  # good news come with the commit
        # After all brokers were away librdkafka 2.16 forgets them and begins anew ("rebootstrap"), but sends offsets to
        # the group's coordinator over a connection that it has given up, until it runs out of time.
        "metadata.recovery.strategy": "none",
    }


def group_metadata(group: str, generation: int, member: str) -> bytes:
    """A member of a group as librdkafka's consumers write themselves for `send_offsets_to_transaction`.

    The form is librdkafka's own: a test holds it against `Consumer.consumer_group_metadata()`. Only a member that has
    joined may be written: generation -1 would be committed without any check.
    """
    if generation < 0 or not member:
        raise ValueError(f"no member of {group}: generation {generation}")
    return b"CGMDv2:" + struct.pack("<i", generation) + group.encode() + b"\0" + member.encode() + b"\0\1"


class Transactions(Delivery):
    """Delivery in transactions: `reap` ends one when it is time, and acknowledges what it held.

    Args:
        producer: a transactional one; `open` comes before anything else.
        aside: writes what others must be able to read before the first event that names it.
        note: what to commit beside an offset of a topic.
        committed: is told how long the end of a transaction took.
        seconds: that a record may take (`timing.delivery`), and a call of the library; a commit may take little more.
    """

    def __init__(
        self,
        producer: Producer,
        aside: Delivery,
        account: Callable[[BatchAccount], None],
        note: Callable[[str], str],
        committed: Callable[[float], None],
        seconds: float,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        super().__init__(producer, account, bounds)
        self._aside = aside
        self._note = note
        self._committed = committed
        self._seconds = seconds
        # -- of the present transaction
        self._membership = b""
        self._offsets: dict[tuple[str, int], int] = {}  # one past the last message of a partition
        self._began = 0.0
        self._hurry = False  # something waits for its end
        self._closing = False  # it takes no more messages
        self._writing = 0  # messages of which a part is written
        self._ending: asyncio.Task[Any] | None = None
        # -- of all
        self.overstayed = False
        """A call has not come back: its thread keeps the interpreter from ending."""
        self._ended = 0
        self._failed: BaseException | None = None

    def open(self, seconds: float) -> None:
        """Ends what an earlier process of the same transactional.id left open; blocks.

        Raises:
            ConfigError: this user cannot write transactions, or not so long ones.
            RetryableError: no broker answers.
        """
        try:
            self._producer.init_transactions(seconds)
            self._producer.begin_transaction()
        except KafkaException as error:
            said: KafkaError = error.args[0]
            if said.code() in _REFUSALS:
                raise ConfigError(f"no transactions: {said.str()} ({_REFUSALS[said.code()]})") from None
            raise RetryableError(f"no transactions: {said.str()}") from None

    @property
    def moved(self) -> int | None:
        """Changes with each transaction that ends; None while none is open."""
        aside = self._aside.moved
        if not self._offsets and self._ending is None and aside is None:
            return None
        return self._ended + (aside or 0)

    # -- writing

    async def send(
        self,
        batch: InFlight,
        topic: str,
        partition: int,
        records: Sequence[Record],
        seen: Callable[[int], None] | None = None,
    ) -> None:
        """Keeps records until their message is sealed: a transaction must not end between two of them.

        `seen` is told before the transaction ends; when it does not stand, nor does the process.
        """
        report = telling(self._refused, seen)
        batch.held += [(topic, partition, record, report) for record in records]

    async def end_message(self, batch: InFlight, offset: int) -> None:
        """Writes a message into the present transaction, whole and with its offset."""
        while not self._takes(batch.membership):
            await self._pause()
        self._membership = batch.membership
        self._began = self._began or time.monotonic()
        self._writing += 1
        for topic, partition, record, report in batch.held:
            while not self._accepted(topic, partition, record, report):
                await self._pause()
        self._since_poll += len(batch.held)
        self._poll_now_and_then()
        self._writing -= 1
        batch.held.clear()
        batch.sealed += 1
        self._offsets[batch.account.topic, batch.account.partition] = offset + 1

    def _takes(self, membership: bytes) -> bool:
        """Whether the present transaction may take a message. One of another generation hurries its end."""
        if self._dead or self._closing or self._ending is not None:
            return False
        if (self._offsets or self._writing) and membership != self._membership:
            self._hurry = True
            return False
        return True

    def _refused(self, error: KafkaError | None, message: Any) -> None:
        if error is not None and self._failed is None:
            self._failed = FatalError(f"delivery failed: {failure(message.topic(), error)}")

    def _given_up(self, error: KafkaException) -> BaseException:
        self._failed = self._failed or _fatal(error)
        return self._failed

    def abandon(self, batch: InFlight) -> None:
        """Takes no more of a batch. What was sealed of it stays, with its offset: the next owner goes on behind it."""
        batch.held.clear()
        if not batch.sealed:
            super().abandon(batch)
            return
        batch.account.records = batch.sealed
        batch.acknowledge = lambda: None
        batch.closed = True

    async def confirm(self, topic: str, record: Record) -> None:
        """As `Delivery.confirm`, and in no transaction: other processes read it at once, whatever becomes of ours."""
        await self._aside.confirm(topic, record)

    # -- ends of transactions

    def reap(self) -> None:
        """Starts the end of a transaction when it is time.

        Raises:
            FatalError: a record was not delivered, or a transaction not committed; nothing is acknowledged any more.
        """
        with suppress(FatalError):  # kept, and raised below
            self._serve()
        self._aside.reap()
        if self._dead:
            return
        if self._failed is not None:
            raise self._failed
        if self._ending is None and self._offsets:
            self._closing = self._hurry or time.monotonic() - self._began >= SECONDS
            if self._closing and not self._writing:
                self._ending = asyncio.create_task(self._end())

    async def wait_for_capacity(self) -> None:
        """As in `Delivery`; at the bound of batches it does not wait for the time of the transaction to run out."""
        self._hurry = self._hurry or self._batches >= self._bounds.batches
        await super().wait_for_capacity()

    async def flush_partition(self, topic: str, partition: int) -> None:
        """As `Delivery.flush_partition`: what was ended of the partition is in a transaction that stands."""
        while (topic, partition) in self._offsets:
            self._hurry = True
            await self._pause()

    async def all_settled(self) -> None:
        """Returns when no transaction is open. Partitions are about to be given away."""
        while not self._dead and (self._offsets or self._writing or self._ending is not None):
            self._hurry = True
            await asyncio.sleep(_PAUSE)
        self._hurry = False
        if not self._dead:
            self._acknowledge()

    async def place(self, offsets: Mapping[tuple[str, int], int], membership: bytes) -> bool:
        """Commits where partitions begin, before anything of them is read; False: they move again.

        Raises:
            FatalError: it was not committed.
        """
        await self.all_settled()
        if self._dead:
            return False
        self._ending = asyncio.create_task(self._place(dict(offsets), membership))
        self._ending.add_done_callback(self._placed)
        # Shielded: when partitions move again this ends at once, but the next transaction must wait for it.
        return bool(await asyncio.shield(self._ending))

    def _placed(self, placing: asyncio.Task[Any]) -> None:
        self._failed = self._failed or placing.exception()
        self._ending = None

    async def _place(self, offsets: Mapping[tuple[str, int], int], membership: bytes) -> bool:
        try:
            await self._send_offsets(offsets, membership)
        except _MovedError:
            await self._called(self._seconds, self._give_up)
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
            self._failed = self._failed or error  # and `_ending` stays: no other transaction begins
            return
        if self._dead:
            return
        self._offsets, self._began, self._hurry, self._closing = {}, 0.0, False, False
        self._ended += 1
        self._committed(time.monotonic() - started)
        self._acknowledge()
        self._ending = None

    async def _send_offsets(self, offsets: Mapping[tuple[str, int], int], membership: bytes) -> None:
        send = self._producer.send_offsets_to_transaction
        await self._called(self._seconds, partial(send, self._noted(offsets), membership))

    async def _commit(self) -> None:
        """Ends the transaction and begins the next, which is nothing to the broker before it holds something."""
        await self._called(self._seconds + _MORE_SECONDS, self._commit_and_begin)

    def _commit_and_begin(self, seconds: float) -> None:
        self._producer.commit_transaction(seconds)
        self._producer.begin_transaction()

    def _give_up(self, seconds: float) -> None:
        """Aborts a transaction in which nothing was written."""
        self._producer.abort_transaction(seconds)
        self._producer.begin_transaction()

    async def _called(self, seconds: float, call: Callable[[float], None]) -> None:
        """Makes a call of the library, which blocks, in a thread. It is told how long it may take.

        Raises:
            FatalError: it failed, or it has not returned although its time is over.
        """
        calling = asyncio.get_running_loop().run_in_executor(None, call, seconds)
        # Not with the timeout of the call alone: librdkafka 2.16 waits beyond it for a coordinator that is gone.
        await asyncio.wait({calling}, timeout=seconds + _OVERSTAY_SECONDS)
        if not calling.done():
            self.overstayed = True
            raise FatalError(_OVERSTAYED)
        try:
            calling.result()
        except KafkaException as error:
            raise _fatal(error) from None

    def _noted(self, offsets: Mapping[tuple[str, int], int]) -> list[TopicPartition]:
        return [
            TopicPartition(topic, partition, offset, self._note(topic))
            for (topic, partition), offset in offsets.items()
        ]

    def _acknowledge(self) -> None:
        """Acknowledges closed batches. No transaction is open: each of their messages is in one that stands."""
        for queue in self._queues.values():
            while queue and queue[0].closed:
                self._acknowledge_first(queue)

    def fail_stop(self) -> None:
        """From here on nothing is produced and nothing acknowledged; what is open is aborted."""
        if self._dead:
            return
        self._dead = True
        self._aside.fail_stop()
        # No daemon: the process waits for it. That readers need not wait for the broker to abort it is worth seconds.
        threading.Thread(target=self._abort, name="abort").start()

    def _abort(self) -> None:
        with suppress(KafkaException):  # a commit is under way, or the broker aborted it: there is nothing to do
            self._producer.abort_transaction(_ABORT_SECONDS)


class _MovedError(FatalError):
    """The partitions are not ours any more."""


def _fatal(error: KafkaException) -> FatalError:
    said: KafkaError = error.args[0]
    cause = _CAUSES.get(said.code())
    kind = _MovedError if said.code() in _MOVES else FatalError
    return kind(f"transaction failed: {said.str()}" + (f" ({cause})" if cause else ""))
