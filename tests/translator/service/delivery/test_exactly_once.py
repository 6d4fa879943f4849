"""Transactions on the real broker write whole messages with their offsets or nothing, and nothing after a rebalance."""

import asyncio
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from tests.translator.service.delivery._reading import TO_THE_END
from translator.codecs.record import Record
from translator.config.settings import Bounds
from translator.errors import FatalError, RetryableError
from translator.kafka.admin import Committed, TopicAdmin
from translator.kafka.producer import RecordProducer, producer_config
from translator.kafka.retry import retry_until
from translator.kafka.transactional_producer import TransactionalProducer, group_metadata, transactional_config
from translator.service.delivery.at_least_once import AtLeastOnceDelivery
from translator.service.delivery.base import Batch
from translator.service.delivery.exactly_once import ExactlyOnceDelivery, open_seconds
from translator.service.metrics import BatchAccount, Metrics
from translator.service.start_offsets import AddedTopic, StartOffsets


class Bench:
    """A raw topic, an event topic, a group with one member, and a process that writes transactions."""

    def __init__(self, broker: Broker) -> None:
        name = uuid.uuid4().hex[:8]
        self.raw, self.out, self.group = f"raw-{name}", f"out-{name}", f"group-{name}"
        self.client: dict[str, Any] = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        admin = AdminClient(self.client)
        for future in admin.create_topics([NewTopic(self.raw, 2, 1), NewTopic(self.out, 2, 1)]).values():
            future.result(20)
        producer = Producer(self.client)
        for number in range(20):
            producer.produce(self.raw, b"x", partition=number % 2)
        assert 0 == producer.flush(20)
        # After five seconds, it would commit its own offset over that of a transaction.
        member = {"group.id": self.group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self.member = Consumer(self.client | member)
        self.member.subscribe([self.raw])
        while not self.member.consume(1, 1.0):
            pass
        self.membership: bytes = self.member.consumer_group_metadata()
        self.accounted: list[BatchAccount] = []
        self.done: list[str] = []
        self.topics = TopicAdmin(self.client)

    def transactions(
        self,
        bounds: Bounds | None = None,
        name: str = "",
        seconds: float = 20,
        *,
        kind: type[Producer] = Producer,
        transaction_seconds: float = 0.08,
    ) -> ExactlyOnceDelivery:
        config = producer_config(self.client, seconds, [1_000_000])
        with_transactions = transactional_config(config, name or uuid.uuid4().hex, seconds)
        made = ExactlyOnceDelivery(
            TransactionalProducer(kind(with_transactions)),
            AtLeastOnceDelivery(RecordProducer.from_config(config), self.accounted.append),
            self.accounted.append,
            lambda topic: f"note of {topic};",
            lambda _seconds: None,
            seconds,
            bounds or Bounds(),
            transaction_seconds,
        )
        made.open(30)
        return made

    async def message(self, to: ExactlyOnceDelivery, batch: Batch, offset: int, *values: bytes) -> None:
        await batch.send(self.out, 0, [Record(b"k", value, []) for value in values])
        await batch.end_message(offset)

    def begin(self, to: ExactlyOnceDelivery, what: str = "batch", records: int = 1, partition: int = 0) -> Batch:
        account = BatchAccount("s", self.raw, partition, records=records)
        return to.begin(account, lambda: self.done.append(what), self.membership)

    def visible(self) -> list[bytes]:
        """Return what a reader of committed records sees in partition 0."""
        reader = Consumer(self.client | TO_THE_END)
        reader.assign([TopicPartition(self.out, 0, OFFSET_BEGINNING)])
        found: list[bytes] = []
        while (record := reader.poll(60)) is not None and record.error() is None:
            found.append(record.value() or b"")
        reader.close()
        return found

    def committed(self) -> dict[int, tuple[int, str]]:
        """Return offsets and notes of the raw topic, by partition."""
        found = self.stable(self.group)
        return {place[1]: (at.offset, at.note.partition(";")[0]) for place, at in found.items()}

    def stable(self, group: str) -> dict[tuple[str, int], Committed]:
        """Return the group's offsets. The coordinator learns of the end of a transaction a moment after us."""
        places = [(self.raw, 0), (self.raw, 1)]
        return retry_until("offset", lambda _: self.topics.committed(group, places), 20, lambda _: None)

    def ends_with(self, *values: bytes) -> None:
        """Check that a reader of committed records sees exactly these. Transaction markers follow the end."""
        deadline = time.monotonic() + 60
        while len(self.visible()) < len(values) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(values) == self.visible()


@pytest.fixture
def bench(broker: Broker) -> Iterator[Bench]:
    made = Bench(broker)
    yield made
    made.member.close()


async def until(ready: Callable[[], bool], to: ExactlyOnceDelivery) -> None:
    for _ in range(4000):
        to.reap()
        if ready():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come")


async def beside(to: ExactlyOnceDelivery, work: Awaitable[Any]) -> Any:
    """Reap while something waits, as the service does."""
    task = asyncio.ensure_future(work)
    await until(task.done, to)
    return task.result()


def test_group_metadata_are_those_of_librdkafka(bench: Bench) -> None:
    """The bytes that we write for a member match those of librdkafka's consumer. A missing member is not written."""
    generation = int.from_bytes(bench.membership[7:11], "little")
    assert generation > 0
    assert bench.membership == group_metadata(bench.group, generation, bench.member.memberid() or "")
    for nobody in ((-1, "member"), (1, "")):
        with pytest.raises(ValueError, match="not a member of"):
            group_metadata(bench.group, *nobody)


def test_the_broker_takes_a_member_of_aiokafka(bench: Bench) -> None:
    """A member held by aiokafka and written by us can commit. With another generation or name, it cannot."""

    async def scenario() -> None:
        group = f"{bench.group}-aio"
        consumer = AIOKafkaConsumer(
            bench.raw, bootstrap_servers=bench.client["bootstrap.servers"], group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        coordinator: Any = consumer._coordinator
        generation, member = coordinator.generation, coordinator.member_id
        to = bench.transactions()
        place = {(bench.raw, 0): 3}
        assert not await to.place(place, group_metadata(group, generation + 1, member))
        assert not await to.place(place, group_metadata(group, generation, "nobody"))
        assert {} == bench.stable(group)
        assert await to.place(place, group_metadata(group, generation, member))
        assert 3 == bench.stable(group)[bench.raw, 0].offset
        await consumer.stop()

    asyncio.run(scenario())


def test_records_and_offsets_are_there_together(bench: Bench) -> None:
    """Before the transaction ends, nothing is visible or acknowledged. Afterwards everything is, with the note."""

    async def scenario() -> None:
        to = bench.transactions()
        batch = bench.begin(to)
        await bench.message(to, batch, 4, b"a", b"b")
        await bench.message(to, batch, 5)
        batch.close()
        to._producer.flush()
        assert ([], {}, []) == (bench.visible(), bench.committed(), bench.done)
        await until(lambda: bench.done == ["batch"], to)

    asyncio.run(scenario())
    bench.ends_with(b"a", b"b")
    assert {0: (6, f"note of {bench.raw}")} == bench.committed()
    assert [batch.records for batch in bench.accounted] == [1]


def test_a_message_that_is_not_sealed_is_in_no_transaction(bench: Bench) -> None:
    """A transaction ends between messages, even within a batch. The last message completes the batch."""

    async def scenario() -> None:
        to = bench.transactions()
        batch = bench.begin(to, records=2)
        await bench.message(to, batch, 0, b"a")
        await batch.send(bench.out, 0, [Record(b"k", b"half", [])])
        await until(lambda: to._ended == 1, to)
        bench.ends_with(b"a")
        assert 1 == bench.committed()[0][0]
        assert [] == bench.done
        await batch.send(bench.out, 0, [Record(b"k", b"whole", [])])
        await batch.end_message(1)
        batch.close()
        await until(lambda: bench.done == ["batch"], to)

    asyncio.run(scenario())
    bench.ends_with(b"a", b"half", b"whole")
    assert 2 == bench.committed()[0][0]


def test_a_batch_that_is_given_back_stands_as_far_as_it_came(bench: Bench) -> None:
    """Complete messages are committed and accounted for. Nothing of the waiting message is."""

    async def scenario() -> None:
        to = bench.transactions()
        batch = bench.begin(to, records=9)
        untouched = bench.begin(to, "untouched", partition=1)
        await bench.message(to, batch, 6, b"a")
        await batch.send(bench.out, 0, [Record(b"k", b"half", [])])
        batch.abandon()
        untouched.abandon()
        await beside(to, to.all_settled())
        assert 0 == to.batches

    asyncio.run(scenario())
    bench.ends_with(b"a")
    assert {0: (7, f"note of {bench.raw}")} == bench.committed()
    assert ([], [1]) == (bench.done, [account.records for account in bench.accounted])


@pytest.mark.parametrize(
    ("end", "least", "seconds"),
    [(0.0, 0.08, 0.08), (0.01, 0.08, 0.08), (0.03, 0.08, 0.12), (5.0, 0.08, 0.2), (0.0, 0.02, 0.02), (5.0, 0.5, 0.5)],
)
def test_where_ends_take_long_there_are_fewer_transactions(end: float, least: float, seconds: float) -> None:
    assert open_seconds(end, least) == pytest.approx(seconds)


def test_what_a_partition_gave_can_be_waited_for(bench: Bench) -> None:
    """For held tables, the partition's earlier records are then readable with known offsets, and others continue."""

    async def scenario() -> None:
        to = bench.transactions(transaction_seconds=3600.0)  # only a waiting caller ends a transaction
        batch, other = bench.begin(to), bench.begin(to, partition=1)
        seen: list[int] = []
        await batch.send(bench.out, 0, [Record(b"k", b"a", [])], seen.append)
        await batch.end_message(3)
        await beside(to, to.flush_partition(bench.raw, 0))
        await bench.message(to, other, 0, b"b")
        await beside(to, to.flush_partition(bench.raw, 0))
        assert ([0], 1) == (seen, to._ended)
        to.fail_stop()

    asyncio.run(scenario())
    bench.ends_with(b"a")
    assert 4 == bench.committed()[0][0]


def test_another_generation_is_refused(bench: Bench) -> None:
    """After losing its partitions, a process makes nothing visible, acknowledges nothing and ends."""

    async def scenario() -> None:
        to = bench.transactions()
        old = bench.membership[7:11]
        bench.membership = bench.membership.replace(old, (int.from_bytes(old, "little") - 1).to_bytes(4, "little"))
        batch = bench.begin(to)
        await bench.message(to, batch, 0, b"a")
        batch.close()
        with pytest.raises(FatalError, match="the group has reassigned the partitions to another process"):
            await until(lambda: False, to)
        to.fail_stop()
        to.reap()

    asyncio.run(scenario())
    assert ([], {}, [], []) == (bench.visible(), bench.committed(), bench.done, bench.accounted)


def test_one_generation_a_transaction(bench: Bench) -> None:
    """A message of a later generation waits for the end of the earlier generation's transaction."""

    async def scenario() -> None:
        to = bench.transactions()
        first = bench.begin(to)
        await bench.message(to, first, 0, b"a")
        first.close()
        second = to.begin(BatchAccount("s", bench.raw, 1), lambda: None, b"another")
        waiting = asyncio.create_task(bench.message(to, second, 0, b"b"))
        await until(lambda: bench.done == ["batch"], to)
        assert {0: (1, f"note of {bench.raw}")} == bench.committed()
        await waiting
        assert b"another" == to._membership
        to.fail_stop()

    asyncio.run(scenario())
    bench.ends_with(b"a")


def test_what_others_must_read_is_outside(bench: Bench) -> None:
    """A schema is readable before the transaction ends, and remains when it is aborted."""

    async def scenario() -> None:
        to = bench.transactions()
        batch = bench.begin(to)
        await to.confirm(bench.out, Record(b"schema", b"{}", []))
        await bench.message(to, batch, 0, b"a")
        to._producer.flush()
        assert [b"{}"] == bench.visible()
        to.fail_stop()

    asyncio.run(scenario())
    assert [b"{}"] == bench.visible()


def test_the_first_place_is_committed_before_reading(bench: Bench) -> None:
    """It is committed with its note when `place` returns, and the next transaction continues from there."""

    async def scenario() -> None:
        to = bench.transactions()
        assert await beside(to, to.place({(bench.raw, 0): 2, (bench.raw, 1): 7}, bench.membership))
        assert {0: (2, f"note of {bench.raw}"), 1: (7, f"note of {bench.raw}")} == bench.committed()
        batch = bench.begin(to)
        await bench.message(to, batch, 2, b"a")
        batch.close()
        await until(lambda: bench.done == ["batch"], to)

    asyncio.run(scenario())
    assert 3 == bench.committed()[0][0]


def test_an_open_transaction_is_waited_for(bench: Bench) -> None:
    """A newly assigned process does not start from an offset that another process is about to replace."""
    (facts,) = bench.topics.describe([bench.raw]).values()

    async def unused(_: Record) -> None:
        raise AssertionError

    def find(patience: float) -> int:
        found = StartOffsets(bench.topics, bench.group, Metrics("0"), unused, accept_gap=False, patience=patience)
        found.add(bench.raw, AddedTopic("s", facts, "earliest"))
        return asyncio.run(found.find([(bench.raw, 0)])).offsets[bench.raw, 0]

    stopped = Producer(transactional_config(producer_config(bench.client, 20, [1_000_000]), bench.group, 20))
    stopped.init_transactions(20)
    for offset in (3, 5):
        stopped.begin_transaction()
        place = TopicPartition(bench.raw, 0, offset)
        stopped.send_offsets_to_transaction([place], bench.membership, 20)
        if offset == 5:
            with pytest.raises(RetryableError, match="an open transaction"):
                find(0.0)
        stopped.commit_transaction(20)
        assert offset == find(20.0)


def test_the_same_name_again_ends_the_older_process(bench: Bench) -> None:
    """Opening the newer process aborts the older one's transaction. The older one notices at its next commit."""

    async def scenario() -> None:
        name = uuid.uuid4().hex
        older = bench.transactions(name=name)
        batch = bench.begin(older)
        await bench.message(older, batch, 0, b"a")
        older._producer.flush()
        newer = bench.transactions(name=name)
        with pytest.raises(FatalError, match="another process uses the same transactional"):
            await until(lambda: False, older)
        older.fail_stop()
        batch = bench.begin(newer, "newer")
        await bench.message(newer, batch, 0, b"b")
        batch.close()
        await until(lambda: bench.done == ["newer"], newer)

    asyncio.run(scenario())
    bench.ends_with(b"b")


def test_whoever_waits_is_told_why_in_our_words(bench: Bench) -> None:
    """librdkafka returns its fatal error to the first caller that polls, here one that waits for delivery."""

    async def scenario() -> None:
        name = uuid.uuid4().hex
        older = bench.transactions(name=name)
        batch = bench.begin(older)
        await bench.message(older, batch, 0, b"a")
        older._producer.flush()
        bench.transactions(name=name).fail_stop()
        await bench.message(older, batch, 1, b"b")
        with pytest.raises(FatalError, match=r"transaction failed: .*another process uses the same transactional"):
            await asyncio.wait_for(older.flush_partition(bench.raw, 0), 20)
        with pytest.raises(FatalError, match="another process uses the same transactional"):
            older.reap()
        older.fail_stop()

    asyncio.run(scenario())
    bench.ends_with()


def test_a_record_that_cannot_be_delivered_is_fatal(bench: Bench) -> None:
    """The error names the topic, and nothing is committed."""

    async def scenario() -> None:
        to = bench.transactions(seconds=8)  # time limit for the delivery of the earlier record
        batch = bench.begin(to)
        await bench.message(to, batch, 0, b"a")
        await batch.send("no-such-topic", 0, [Record(b"k", b"b", [])])
        await batch.end_message(1)
        batch.close()
        with pytest.raises(FatalError, match="no-such-topic"):
            await until(lambda: False, to)
        to.fail_stop()

    asyncio.run(scenario())
    assert ([], {}, []) == (bench.visible(), bench.committed(), bench.done)


@pytest.mark.parametrize("placing", [False, True], ids=["end of a transaction", "first place"])
def test_a_call_that_overstays_its_time_is_fatal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, placing: bool
) -> None:
    """The process ends without waiting for the call, and nothing of the transaction is visible."""
    monkeypatch.setattr("translator.service.delivery.exactly_once._OVERSTAY_SECONDS", 0.1)
    coordinator_is_back = threading.Event()

    class Waiting(Producer):
        """Blocks like librdkafka 2.16 while the group's coordinator moves, whatever the time limit of the call."""

        def send_offsets_to_transaction(self, *_: Any) -> None:
            coordinator_is_back.wait()

    async def scenario() -> None:
        to = bench.transactions(seconds=1, kind=Waiting)
        batch = bench.begin(to)
        if not placing:
            await bench.message(to, batch, 0, b"a")
            batch.close()
        try:
            with pytest.raises(FatalError, match=r"did not return within the given time .*timing\.delivery"):
                await (to.place({(bench.raw, 0): 2}, bench.membership) if placing else until(lambda: False, to))
            to.fail_stop()
        finally:
            coordinator_is_back.set()

    asyncio.run(scenario())
    assert ([], {}, []) == (bench.visible(), bench.committed(), bench.done)


def test_at_the_bound_of_batches_it_does_not_wait_for_the_time(bench: Bench) -> None:
    """Reading that waits for room ends the transaction early."""

    async def scenario() -> None:
        to = bench.transactions(Bounds(batches=2), transaction_seconds=3600.0)
        for number in range(2):
            batch = bench.begin(to, str(number))
            await bench.message(to, batch, number, b"a")
            batch.close()
        await beside(to, to.wait_for_capacity())

    asyncio.run(scenario())
    assert ["0", "1"] == bench.done


def test_a_full_queue_is_waited_for(bench: Bench) -> None:
    """A message with more records than the producer's queue is still in one transaction."""

    async def scenario() -> None:
        to = bench.transactions(Bounds(events=2))
        batch = bench.begin(to)
        await beside(to, bench.message(to, batch, 0, *[b"a"] * 9))
        batch.close()
        await until(lambda: bench.done == ["batch"], to)

    asyncio.run(scenario())
    bench.ends_with(*[b"a"] * 9)
