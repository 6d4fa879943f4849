"""Batch transport: one Faust event is one batch of one partition.

Plain Faust hands over one event a record (3 to 7 thousand a second), keeps offsets in a way that loses messages when
an acknowledgement overtakes another, and commits nothing on a rebalance. Here one event carries the records of one
fetch of one partition, acknowledgements come strictly in order per partition, so that one number per partition is the
whole bookkeeping, and a rebalance drains first. Every name of Faust, mode and aiokafka used here is pinned by
tests/translator/service/test_transport_contract.py; private ones are used here, in faust_pauses.py and in
fetched_records.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple, NoReturn, cast

import faust
from aiokafka.errors import CommitFailedError, NoOffsetForPartitionError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage
from mode.utils.futures import notify

from translator.errors import CdcError
from translator.kafka.transactional_producer import group_metadata
from translator.service.delivery.exactly_once import ExactlyOnceDelivery
from translator.service.fetched_records import FetchedRecord, make_fetched_records_small
from translator.service.start_offsets import Partition, StartOffsets

_PAUSED_SECONDS = 0.01

# How long the broker may hold a fetch that finds nothing. One fetch at a time is under way per broker, so an idle
# partition would keep the busy ones waiting for Faust's fixed 1.5 s: 3.2 against 9.7 thousand records a second were
# measured on a topic whose second partition had ended.
FETCH_WAIT_MS = 50


class BatchConsumerThread(driver.AIOKafkaConsumerThread):
    """A fetcher with what Faust's lacks: committed records only, short waits for idle partitions, notes beside offsets.

    Args:
        note: what to commit beside an offset of a topic.
    """

    def __init__(self, *args: Any, note: Callable[[str], str], **kwargs: Any) -> None:
        self._note = note
        super().__init__(*args, **kwargs)

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        return consumer

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """As upstream, but for the note."""
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
    """The way in which partitions are given away.

    `begin` is called first: what waits for something else than delivery is to be given back (`give_back`). Then there
    are `seconds` to deliver what is in flight; it must be below `broker_rebalance_timeout`, or the broker gives the
    partitions away while we still deliver. After that `failed` is called, which ends the process. `given_up` is called
    when they are no longer ours. While `dead`, nothing is delivered any more, and nothing is waited for.
    """

    seconds: float
    begin: Callable[[], None]
    failed: Callable[[BaseException], None]
    given_up: Callable[[], None]
    dead: Callable[[], bool]


class BatchConsumer(driver.Consumer):
    """Faust's consumer with one event per (partition, fetch) and offsets of its own; `attach` completes it."""

    drain: Drain
    positions: StartOffsets
    offsets: ExactlyOnceDelivery | None
    """The delivery that commits offsets instead of the consumer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._next: dict[TP, int] = {}  # offset to commit: one past the last acknowledged record
        self._accepted: dict[TP, int] = {}  # what the broker has accepted
        self._placed: dict[TP, int] = {}  # where the assigned partitions begin
        self._placings = 0  # how often assigned partitions were placed
        self._joined = (-1, b"")  # the generation of the last placing, and who we are in it
        super().__init__(*args, **kwargs)

    def _new_consumer_thread(self) -> Any:
        return BatchConsumerThread(self, note=self.positions.note, loop=self.loop, beacon=self.beacon)

    def on_buffer_full(self, tp: TP) -> None:
        """Nothing: a full queue blocks the fetch loop, which is the back-pressure. Stock Faust sleeps a second here."""

    @property
    def placed(self) -> Mapping[Partition, int]:
        """The partitions that are ours, and where the reading of each began."""
        return {(tp.topic, tp.partition): offset for tp, offset in self._placed.items()}

    # -- offsets

    def ack(self, message: Any) -> bool:
        """Marks a batch as done. An acknowledgement of an older generation is no longer ours to commit."""
        if message.acked:
            return False
        message.acked = True
        self._unacked_messages.discard(message)
        if self.offsets is None and message.generation_id == self.app.consumer_generation_id:
            self._next[message.tp] = message.offset + 1
            self._n_acked += 1
        notify(self._waiting_for_ack)
        return True

    def give_back(self, message: Any) -> None:
        """Forgets a batch that will not be done: its records are read again from the last committed offset."""
        self._unacked_messages.discard(message)
        notify(self._waiting_for_ack)

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Any:
        return [tp for tp, offset in self._next.items() if self._accepted.get(tp) != offset]

    def _new_offset(self, tp: TP) -> int | None:
        return self._next.get(tp)

    def _should_commit(self, tp: TP, offset: int) -> bool:
        return True

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        # A refused commit is tried again at the next tick; stock Faust would forget it.
        accepted: bool = await super()._commit(offsets)
        if accepted:
            self._accepted.update(offsets)
        return accepted

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Nothing: offsets that compaction or transactions left out need no bookkeeping here."""

    # -- rebalance

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Delivers, acknowledges and commits what is in flight while the partitions are still ours."""
        if self.assignment():
            await self._drained()
        await super().on_partitions_revoked(revoked)
        self._next.clear()
        self._accepted.clear()
        self._placed.clear()
        self.drain.given_up()

    async def wait_empty(self) -> None:
        """Waits until nothing is in flight and commits; the service is about to give partitions away, or to stop."""
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
        """Places what was assigned; upstream calls it after each assignment, before it lets records through.

        A partition without a committed offset gets one first: where it begins is decided once. What cannot be placed
        stops the process.
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
        """Keeps who we are in the group, for transactions; false: we are nobody just now."""
        coordinator = self._thread._ensure_consumer()._coordinator
        # The member first: when it is forgotten meanwhile, so is the generation that is read after it.
        member, generation = coordinator.member_id, coordinator.generation
        if generation < 0 or generation != self.app.consumer_generation_id:
            return False
        self._joined = generation, group_metadata(self.app.conf.id, generation, member)
        return True

    def membership(self, message: Any) -> bytes | None:
        """Return our membership of the group when a batch was fetched; None: we are another member by now."""
        generation, membership = self._joined
        return membership if message.generation_id == generation else None

    async def _end(self, error: CdcError) -> NoReturn:
        self.drain.failed(error)
        await _moving()

    async def resubscribe(self, topics: set[str]) -> bool:
        """Subscribes to other topics, which makes the group move its partitions; False: not now, they move already.

        Everything is delivered and committed before: aiokafka forgets the assignment at once, so that the revocation
        that follows finds nothing to drain and may commit nothing any more.
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
        """One message per partition, whose value is the list of its records."""
        if self.flow_active and not self._get_active_partitions():
            # Every partition is full, or waits for metadata. Upstream would sleep a whole second; and aiokafka takes a
            # consumer that does not fetch for dead, and leaves the group.
            with self._thread._ensure_consumer()._subscription.fetch_context():
                pass
            await asyncio.sleep(_PAUSED_SECONDS)
            return
        placings = self._placings
        try:
            fetched, _ = await self._wait_next_records(timeout)
        except (OffsetOutOfRangeError, NoOffsetForPartitionError) as error:
            if not self.flow_active or placings != self._placings:
                return  # asked for before the partitions were placed, and a seek leaves nothing of it
            await self._end(await self.positions.lost(self.assignment(), f"reading stopped: {error!r}"))
        generation = self.app.consumer_generation_id
        if fetched is None or self.should_stop:
            return
        if not self.flow_active:
            await self._seek_back()
            return
        for fetched_tp, records in fetched.items():
            if not records:
                continue
            if not self.flow_active or generation != self.app.consumer_generation_id:
                return  # the next assignment seeks back to the committed offsets
            # What was fetched is handed over whatever has become of the partition's activity: upstream would drop the
            # records of a partition that was paused in between, and the next batch would commit past them.
            tp = TP(fetched_tp.topic, fetched_tp.partition)
            yield tp, _batch(tp, records, generation)

    async def _seek_back(self) -> None:
        """Fetch again, from where the partitions begin, what was fetched while the flow stood still.

        A fetch that began before a rebalance may end after the partitions were placed, and take their first records.
        Upstream seeks to the committed offsets then, but never to offset 0: the records would be lost.
        """
        try:
            await self.seek_wait(self._placed)
        except Exception as error:  # as upstream: while partitions are moving any seek may fail, and the next one heals
            self.log.warning("seek while the flow is stopped: %r", error)


async def _moving() -> NoReturn:
    """Partitions move again, or the process ends: whatever comes next cancels this."""
    await asyncio.Event().wait()
    raise AssertionError


def _batch(tp: TP, records: list[FetchedRecord], generation: int) -> ConsumerMessage:
    last = records[-1]
    return ConsumerMessage(
        tp.topic,
        tp.partition,
        last.offset,
        last.timestamp / 1000,
        last.timestamp_type,
        None,
        None,
        records,  # type: ignore[arg-type]  # the value is what the agent receives: here the batch itself
        None,
        0,
        0,
        tp,
        generation_id=generation,
    )


def attach(app: faust.App, drain: Drain, positions: StartOffsets, transactions: ExactlyOnceDelivery | None) -> None:
    """Gives a new app the batch transport, before anything asks it for its consumer.

    Args:
        transactions: commit all offsets; without them the consumer does.
    """

    class Consumer(BatchConsumer):
        pass

    class Transport(driver.Transport):
        pass

    make_fetched_records_small()
    Consumer.drain = drain
    Consumer.positions = positions
    Consumer.offsets = transactions
    Transport.Consumer = Consumer
    app.transport = Transport(app.conf.broker_consumer, app)


def batches(app: faust.App) -> BatchConsumer:
    """The consumer of an app that has the batch transport."""
    return cast(BatchConsumer, app.consumer)


async def resubscribe(app: faust.App, topics: set[str]) -> bool:
    """Makes the one agent of an app read these topics; see `BatchConsumer.resubscribe`."""
    conductor: Any = app.topics
    for channel in conductor:
        channel.topics = sorted(topics)
    await conductor._update_indices()
    return await batches(app).resubscribe(topics)
