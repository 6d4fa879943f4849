"""Process records in batches. A Faust event is a fetch, which consists of batches, each with the records of one
partition.

Plain Faust handles one event per record (3 to 7 thousand a second). It loses messages when one acknowledgment overtakes
another, and commits nothing on a rebalance. Here, Faust handles one event per fetch, because each event costs as much
as 50 messages. `BatchConsumer.unpack` returns the batches of a fetch. They are processed and acknowledged separately.
Acknowledgments are strictly in order within a partition, so one offset per partition is enough bookkeeping. A rebalance
first waits for the work in flight. tests/translator/service/test_transport_contract.py checks every name from Faust,
mode and aiokafka that this module uses. Private names are used only in this module, in faust_pauses.py, in
fetched_records.py and in paced_fetcher.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, cast

import faust
from aiokafka.errors import CommitFailedError, NoOffsetForPartitionError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage
from mode.utils.futures import notify

from translator.config.settings import LatencySettings
from translator.errors import CdcError
from translator.kafka.transactional_producer import group_metadata
from translator.service.delivery.exactly_once import ExactlyOnceDelivery
from translator.service.fetched_records import FetchedRecord, make_fetched_records_small
from translator.service.paced_fetcher import pace_fetches
from translator.service.start_offsets import Partition, StartOffsets

_PAUSED_SECONDS = 0.01


class BatchConsumerThread(driver.AIOKafkaConsumerThread):
    """A consumer thread with features that Faust's own lacks. It reads only committed records, waits only briefly for
    idle partitions, and commits metadata with offsets.

    Args:
        note: returns the metadata to commit with a topic's offset.
        fetch_wait_ms: how long a broker may delay its response to a fetch without records. Each broker serves one fetch
            at a time, so an idle partition would block busy partitions for Faust's fixed 1.5 s. On a topic whose second
            partition was idle, 50 ms raised the rate from 3.2 to 9.7 thousand records a second.
    """

    def __init__(self, *args: Any, note: Callable[[str], str], fetch_wait_ms: int, **kwargs: Any) -> None:
        self._note = note
        self._fetch_wait_ms = fetch_wait_ms
        super().__init__(*args, **kwargs)

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"
        consumer._fetch_max_wait_ms = self._fetch_wait_ms
        return consumer

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Do nothing, because the lag metrics and the watchdog observe the progress. For every partition that is
        waiting or stopped, upstream logs a page of text about a possible bug.
        """

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Do the same as upstream, and also set the metadata."""
        mine = self.assignment()
        noted = {
            driver.ensure_aiokafka_TP(tp): OffsetAndMetadata(offset, self._note(tp.topic))
            for tp, offset in offsets.items()
            if tp in mine
        }
        try:
            await self._ensure_consumer().commit(noted)
        except CommitFailedError as error:
            if "already rebalanced" not in str(error):
                await self.crash(error)
            return False
        except Exception as error:
            await self.crash(error)
            return False
        return True


class Drain(NamedTuple):
    """The handover of partitions.

    `begin` is called first. It releases batches that wait for something other than delivery (`give_back`). The records
    in flight then have `seconds` to be delivered. This must be less than `broker_rebalance_timeout`. Otherwise, the
    broker reassigns the partitions during the delivery. If time runs out, `failed` is called, which stops the process.
    `given_up` is called once this process no longer owns the partitions. If `dead` returns true, nothing is delivered
    any more, so the handover does not wait.
    """

    seconds: float
    begin: Callable[[], None]
    failed: Callable[[BaseException], None]
    given_up: Callable[[], None]
    dead: Callable[[], bool]


class BatchConsumer(driver.Consumer):
    """Faust's consumer, but each event is a whole fetch, and it commits our own offsets. `attach` completes it."""

    drain: Drain
    positions: StartOffsets
    offsets: ExactlyOnceDelivery | None
    """The delivery that commits offsets instead of the consumer."""
    latency: LatencySettings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._next: dict[TP, int] = {}  # offset to commit: one past the last acknowledged record
        self._accepted: dict[TP, int] = {}  # the offsets accepted by the broker
        self._placed: dict[TP, int] = {}  # where the assigned partitions start
        self._placings = 0  # number of assignments
        self._joined = (-1, b"")  # generation and member id from the last assignment
        super().__init__(*args, **kwargs)

    def _new_consumer_thread(self) -> Any:
        wait = self.latency.fetch_wait_ms
        return BatchConsumerThread(
            self, note=self.positions.note, fetch_wait_ms=wait, loop=self.loop, beacon=self.beacon
        )

    def on_buffer_full(self, tp: TP) -> None:
        """Do nothing. A full queue blocks the fetch loop, which is all the back-pressure that is needed. Stock Faust
        sleeps for a second here.
        """

    @property
    def placed(self) -> Mapping[Partition, int]:
        """The assigned partitions, each with the offset at which we started to read it."""
        return {(tp.topic, tp.partition): offset for tp, offset in self._placed.items()}

    # -- offsets

    def unpack(self, fetch: Any) -> Sequence[Any]:
        """Return the batches of a fetch. From now on, the batches count as in flight instead of the fetch."""
        batches: Sequence[Any] = fetch.value
        self._unacked_messages.discard(fetch)
        self._unacked_messages |= set(batches)
        return batches

    def ack(self, message: Any) -> bool:
        """Mark a batch as done. Acknowledgments from an older generation must no longer be committed."""
        if message.acked:
            return False
        message.acked = True
        self._unacked_messages.discard(message)
        if self.offsets is None and message.generation_id == self.app.consumer_generation_id:
            self._next[message.tp] = message.offset + 1
            self._n_acked += 1
        notify(self._waiting_for_ack)
        return True

    def shorten(self, message: Any, offset: int) -> None:
        """Let a batch end at an earlier record, because nothing after it is processed."""
        message.offset = offset

    def give_back(self, message: Any) -> None:
        """Forget a batch that will not be completed. The records of the batch are read again from the last committed
        offset.
        """
        self._unacked_messages.discard(message)
        notify(self._waiting_for_ack)

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Any:
        return [tp for tp, offset in self._next.items() if self._accepted.get(tp) != offset]

    def _new_offset(self, tp: TP) -> int | None:
        return self._next.get(tp)

    def _should_commit(self, tp: TP, offset: int) -> bool:
        return True

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        # A rejected commit is retried at the next tick. Stock Faust would forget it.
        accepted: bool = await super()._commit(offsets)
        if accepted:
            self._accepted.update(offsets)
        return accepted

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Do nothing, because offsets without records (from compaction or transactions) need no bookkeeping here."""

    # -- rebalance

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Deliver, acknowledge and commit the work in flight while this process still owns the partitions."""
        if self.assignment():
            await self._drained()
        await super().on_partitions_revoked(revoked)
        self._next.clear()
        self._accepted.clear()
        self._placed.clear()
        self.drain.given_up()

    async def wait_empty(self) -> None:
        """Wait until nothing is in flight, then commit. Called before partitions are handed over or the service
        stops.
        """
        if self.drain.dead():
            return
        self.drain.begin()
        await super().wait_empty()
        if self.offsets is not None:
            await self.offsets.all_settled()

    async def _drained(self) -> None:
        self.stop_flow()
        self.app.flow_control.suspend()
        self.app.flow_control.clear()
        try:
            async with asyncio.timeout(self.drain.seconds):
                await self.wait_empty()
        except TimeoutError as error:
            self.drain.failed(error)
            await asyncio.Event().wait()

    async def perform_seek(self) -> None:
        """Set the start positions for assigned partitions. Upstream calls this after each assignment, before passing on
        records.

        If a partition has no committed offset, an offset is committed first. Its start position is therefore determined
        only once. If a position cannot be determined, the process stops.
        """
        assigned = self.assignment()
        if not assigned:
            return
        if self.offsets is not None and not self._join():
            await _moving()
        try:
            found = await self.positions.find(assigned)
            placed = not found.new or await self._place(found.new)
        except CdcError as error:
            await self._end(error)
        if not placed:
            await _moving()
        self._placed = {TP(*where): offset for where, offset in found.offsets.items()}
        await self.seek_wait(self._placed)
        self._placings += 1

    async def _place(self, new: Mapping[Partition, int]) -> bool:
        if self.offsets is not None:
            return await self.offsets.place(new, self._joined[1])
        return await self._commit({TP(*where): offset for where, offset in new.items()})

    def _join(self) -> bool:
        """Store our group membership for transactions. Returns False if we have none at the moment."""
        coordinator = self._thread._ensure_consumer()._coordinator
        # The member id is read before the generation. If the id is reset in between, the generation has also been
        # reset.
        member, generation = coordinator.member_id, coordinator.generation
        if generation < 0 or generation != self.app.consumer_generation_id:
            return False
        self._joined = generation, group_metadata(self.app.conf.id, generation, member)
        return True

    def membership(self, message: Any) -> bytes | None:
        """Return our group membership at the time when a batch was fetched, or None if it has changed since then."""
        generation, membership = self._joined
        return membership if message.generation_id == generation else None

    async def _end(self, error: CdcError) -> NoReturn:
        self.drain.failed(error)
        await _moving()

    async def resubscribe(self, topics: set[str]) -> bool:
        """Subscribe to other topics, which triggers a rebalance. It returns False if a rebalance is already in
        progress.

        Everything is delivered and committed first, because aiokafka forgets the assignment immediately. When the
        partitions are then revoked, nothing is in flight, and nothing can be committed.
        """
        generation = self.app.consumer_generation_id
        if self.app.rebalancing:
            return False
        if self.assignment():
            await self._drained()
        if self.app.rebalancing or generation != self.app.consumer_generation_id:
            return False
        await self.subscribe(topics)
        return True

    # -- fetching

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, ConsumerMessage]]:  # noqa: ASYNC109  upstream's
        """Yield one message per fetch. Its value is a list of batches, which are messages whose values are lists of
        records.
        """
        if self.flow_active and not self._get_active_partitions():
            # Every partition is full or waits for metadata. Upstream would sleep for a second. aiokafka considers a
            # consumer dead that does not fetch, and leaves the group.
            with self._thread._ensure_consumer()._subscription.fetch_context():
                pass
            await asyncio.sleep(_PAUSED_SECONDS)
            return
        placings = self._placings
        try:
            fetched, _ = await self._wait_next_records(timeout)
        except (OffsetOutOfRangeError, NoOffsetForPartitionError) as error:
            if not self.flow_active or placings != self._placings:
                return  # this fetch began before positions were set; a seek discards it
            await self._end(await self.positions.lost(self.assignment(), f"reading stopped: {error!r}"))
        generation = self.app.consumer_generation_id
        if fetched is None or self.should_stop:
            return
        if not self.flow_active:
            await self._seek_back()
            return
        # Fetched records are passed on even if the partition was paused in the meantime. Upstream would drop them, and
        # the next batch would commit past them.
        batches = [
            _batch(TP(tp.topic, tp.partition), records, generation) for tp, records in fetched.items() if records
        ]
        if batches:
            yield batches[0].tp, _fetch(batches, generation)

    async def _seek_back(self) -> None:
        """If records were fetched while the flow was stopped, fetch them again from the start positions.

        A fetch that began before a rebalance may end after the positions are set, and consume the first records.
        Upstream then seeks to the committed offsets, but never to offset 0, so these records would be lost.
        """
        try:
            await self.seek_wait(self._placed)
        except Exception as error:  # as upstream: during a rebalance any seek can fail, and the next one corrects it
            self.log.warning("seek while the flow is stopped: %r", error)


async def _moving() -> NoReturn:
    """Wait until the next rebalance, or the end of the process, cancels this."""
    await asyncio.Event().wait()
    raise AssertionError


def _batch(tp: TP, records: list[FetchedRecord], generation: int) -> ConsumerMessage:
    last = records[-1]
    return _message(tp, last.offset, last.timestamp / 1000, last.timestamp_type, records, generation)


def _fetch(batches: list[ConsumerMessage], generation: int) -> ConsumerMessage:
    """Return one message for Faust, which looks only at the first batch's partition and offset."""
    first = batches[0]
    return _message(first.tp, first.offset, first.timestamp, first.timestamp_type, batches, generation)


def _message(
    tp: TP, offset: int, timestamp: float, timestamp_type: int, value: list[Any], generation: int
) -> ConsumerMessage:
    return ConsumerMessage(
        tp.topic,
        tp.partition,
        offset,
        timestamp,
        timestamp_type,
        None,
        None,
        value,  # type: ignore[arg-type]  # the value is what the agent receives
        None,
        0,
        0,
        tp,
        time_in=time.monotonic(),
        generation_id=generation,
    )


def attach(
    app: faust.App,
    drain: Drain,
    positions: StartOffsets,
    transactions: ExactlyOnceDelivery | None,
    latency: LatencySettings,
) -> None:
    """Install the batch transport in a new app before its consumer is created.

    Args:
        transactions: the delivery that commits all offsets. If None, the consumer commits them.
    """

    class Consumer(BatchConsumer):
        pass

    class Transport(driver.Transport):
        pass

    make_fetched_records_small()
    pace_fetches(latency.fetch_ms / 1000)
    Consumer.drain = drain
    Consumer.positions = positions
    Consumer.offsets = transactions
    Consumer.latency = latency
    Transport.Consumer = Consumer
    app.transport = Transport(app.conf.broker_consumer, app)


def batches(app: faust.App) -> BatchConsumer:
    """Return an app's consumer, which uses the batch transport."""
    return cast(BatchConsumer, app.consumer)


async def resubscribe(app: faust.App, topics: set[str]) -> bool:
    """Make the app's only agent read these topics; see `BatchConsumer.resubscribe`."""
    conductor: Any = app.topics
    for channel in conductor:
        channel.topics = sorted(topics)
    await conductor._update_indices()
    return await batches(app).resubscribe(topics)
