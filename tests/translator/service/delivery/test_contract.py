"""The contract of every delivery, in memory and with a broker, which look the same to the pipeline."""

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from tests.translator.service.delivery._reading import TO_THE_END
from translator.codecs.record import Record
from translator.config.settings import Bounds
from translator.errors import FatalError
from translator.kafka.producer import RecordProducer, producer_config
from translator.kafka.transactional_producer import TransactionalProducer, transactional_config
from translator.service.delivery.at_least_once import AtLeastOnceDelivery
from translator.service.delivery.base import Batch, Delivery
from translator.service.delivery.exactly_once import ExactlyOnceDelivery
from translator.service.delivery.memory import InMemoryDelivery
from translator.service.metrics import BatchAccount

RAW, OUT = "raw", "out"
SECONDS = 60.0
"""The time after which a producer fails a record. A working broker needs milliseconds."""
LARGE = random.Random(1).randbytes(10_000)  # incompressible


class World(Protocol):
    """Two raw partitions, one topic `out` of two partitions, and a delivery between them."""

    accounts: list[BatchAccount]
    out: str
    refusing: str
    """A topic that rejects every record of `records(LARGE)`."""
    raw: str
    membership: bytes

    def delivery(self, bounds: Bounds = ...) -> Delivery: ...

    def visible(self, partition: int) -> list[bytes | None]:
        """Return the values that a reader of committed records sees."""
        ...


class Memory:
    """A delivery in memory."""

    membership = b""
    out, refusing, raw = OUT, "no-such-topic", RAW

    def __init__(self) -> None:
        self.accounts: list[BatchAccount] = []
        self._made: InMemoryDelivery | None = None

    def delivery(self, bounds: Bounds = Bounds()) -> Delivery:  # noqa: B008  frozen
        self._made = InMemoryDelivery(self.accounts.append, {OUT: 2}, bounds)
        return self._made

    def visible(self, partition: int) -> list[bytes | None]:
        assert self._made is not None
        return [record.value for record in self._made.written(OUT, partition)]


class Brokered:
    """A delivery to a real broker, with its own topics and a member of its own group."""

    def __init__(self, broker: Broker, *, transactions: bool) -> None:
        name = uuid.uuid4().hex[:8]
        self.raw, self.out, self._group = f"raw-{name}", f"out-{name}", f"group-{name}"
        self.refusing = f"small-{name}"
        self._transactions = transactions
        self._client: dict[str, Any] = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        self._admin = AdminClient(self._client)
        self._topics = [self.raw, self.out, self.refusing]
        small = {"max.message.bytes": str(len(LARGE) // 2)}
        made = [NewTopic(topic, 2, 1, config=small if topic == self.refusing else {}) for topic in self._topics]
        for future in self._admin.create_topics(made).values():
            future.result(60)
        self.accounts: list[BatchAccount] = []
        self.membership = self._join() if transactions else b""

    def _join(self) -> bytes:
        producer = Producer(self._client)
        producer.produce(self.raw, b"x", partition=0)
        assert 0 == producer.flush(60)
        member = {"group.id": self._group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._member = Consumer(self._client | member)
        self._member.subscribe([self.raw])
        while not self._member.consume(1, 1.0):
            pass
        return bytes(self._member.consumer_group_metadata())

    def delivery(self, bounds: Bounds = Bounds()) -> Delivery:  # noqa: B008  frozen
        config = producer_config(self._client, SECONDS, [1_000_000], bounds)
        plain = AtLeastOnceDelivery(RecordProducer.from_config(config), self.accounts.append, bounds)
        if not self._transactions:
            return plain
        config = transactional_config(config, self._group, SECONDS)
        producer = TransactionalProducer.from_config(config)
        made = ExactlyOnceDelivery(producer, plain, self.accounts.append, lambda _: "", lambda _: None, SECONDS, bounds)
        made.open(60)
        return made

    def visible(self, partition: int) -> list[bytes | None]:
        reader = Consumer(self._client | TO_THE_END)
        reader.assign([TopicPartition(self.out, partition, OFFSET_BEGINNING)])
        found: list[bytes | None] = []
        while (record := reader.poll(60)) is not None:
            error = record.error()
            if error is None:
                found.append(record.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                break
            else:
                raise KafkaException(error)
        reader.close()
        return found

    def close(self) -> None:
        if self._transactions:
            self._member.close()
        for future in self._admin.delete_topics(self._topics).values():
            future.result(60)


@pytest.fixture(params=["memory", "at_least_once", "exactly_once"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "memory":
        yield Memory()
        return
    made = Brokered(request.getfixturevalue("broker"), transactions=request.param == "exactly_once")
    yield made
    made.close()


def records(*values: bytes) -> list[Record]:
    return [Record(b"k", value, [("h", "v")]) for value in values]


async def until(delivery: Delivery, ready: Callable[[], bool]) -> None:
    """Reap like the service until a condition holds. Only a hang takes this long."""
    for _ in range(24_000):
        delivery.reap()
        if ready():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come within two minutes")


async def beside(delivery: Delivery, work: Awaitable[Any]) -> None:
    task = asyncio.ensure_future(work)
    await until(delivery, task.done)
    task.result()


def begin(world: World, delivery: Delivery, done: list[str], name: str = "batch", partition: int = 0) -> Batch:
    account = BatchAccount("s", world.raw, partition, records=1)
    return delivery.begin(account, lambda: done.append(name), world.membership)


def test_acknowledged_when_everything_is_readable(world: World) -> None:
    """A batch is acknowledged, with its account, after it is closed and its records are readable."""

    async def scenario() -> None:
        delivery, done = world.delivery(), list[str]()
        batch = begin(world, delivery, done)
        await batch.send(world.out, 1, records(b"a", b"b"))
        await batch.end_message(0)
        await beside(delivery, delivery.flush_partition(world.raw, 0))
        delivery.reap()
        assert ([], [], 1) == (done, world.accounts, delivery.batches)
        before = time.monotonic()
        batch.close()
        assert before <= batch.account.sent <= time.monotonic()
        await until(delivery, lambda: done == ["batch"])
        assert [batch.account] == world.accounts
        assert 0 == delivery.batches
        await until(delivery, lambda: delivery.records == 0)
        delivery.fail_stop()

    asyncio.run(scenario())
    assert [b"a", b"b"] == world.visible(1)


def test_acknowledged_in_order(world: World) -> None:
    """A later batch of a partition waits for an earlier one, but not for those of other partitions."""

    async def scenario() -> None:
        delivery, done = world.delivery(), list[str]()
        slow = begin(world, delivery, done, "slow")
        fast = begin(world, delivery, done, "fast")
        other = begin(world, delivery, done, "other", partition=1)
        for batch in (fast, other):
            await batch.end_message(5)
            batch.close()
        await until(delivery, lambda: done == ["other"])
        await slow.send(world.out, 0, records(b"a"))
        await slow.end_message(4)
        slow.close()
        await until(delivery, lambda: len(done) == 3)
        assert ["other", "slow", "fast"] == done
        delivery.fail_stop()

    asyncio.run(scenario())


def test_records_keep_their_order(world: World) -> None:
    """The records of a partition are stored in the order of sending, across messages and batches."""
    values = [b"%d" % number for number in range(40)]

    async def scenario() -> None:
        delivery, done = world.delivery(), list[str]()
        for first in (0, 20):
            batch = begin(world, delivery, done)
            for offset in range(first, first + 20, 2):
                await batch.send(world.out, 0, records(*values[offset : offset + 2]))
                await batch.end_message(offset)
            batch.close()
        await until(delivery, lambda: len(done) == 2)
        delivery.fail_stop()

    asyncio.run(scenario())
    assert values == world.visible(0)


def test_the_place_of_a_record_is_told(world: World) -> None:
    """The delivery reports the offset at which a reader finds a record before it acknowledges the batch."""

    async def scenario() -> list[int]:
        delivery, done, places = world.delivery(), list[str](), list[int]()
        batch = begin(world, delivery, done)
        await batch.send(world.out, 0, records(b"a", b"b", b"c"))
        await batch.send(world.out, 0, records(b"letter"), places.append)
        await batch.end_message(0)
        await beside(delivery, delivery.flush_partition(world.raw, 0))
        assert (1, []) == (len(places), done)
        delivery.fail_stop()
        return places

    assert [3] == asyncio.run(scenario())


def test_an_abandoned_batch_is_never_acknowledged(world: World) -> None:
    """It does not block later batches either."""

    async def scenario() -> None:
        delivery, done = world.delivery(), list[str]()
        begin(world, delivery, done, "abandoned").abandon()
        assert 0 == delivery.batches
        batch = begin(world, delivery, done, "next")
        await batch.end_message(0)
        batch.close()
        await until(delivery, lambda: done == ["next"])
        delivery.fail_stop()

    asyncio.run(scenario())


def test_what_is_confirmed_is_readable(world: World) -> None:
    """A confirmed record is readable immediately, although records of open batches might not be."""

    async def scenario() -> None:
        delivery, done = world.delivery(), list[str]()
        begin(world, delivery, done)
        await delivery.confirm(world.out, records(b"schema")[0])
        assert [b"schema"] == world.visible(0)
        delivery.fail_stop()

    asyncio.run(scenario())


def test_progress_is_told_while_something_is_to_come(world: World) -> None:
    """None means that a lack of progress is no sign of trouble."""

    async def scenario() -> None:
        delivery, done = world.delivery(), list[str]()
        assert delivery.progress is None
        batch = begin(world, delivery, done)
        await batch.send(world.out, 0, records(b"a"))
        await batch.end_message(0)
        batch.close()
        await until(delivery, lambda: done == ["batch"])
        await until(delivery, lambda: delivery.progress is None)
        delivery.fail_stop()

    asyncio.run(scenario())


def test_a_record_that_is_refused_is_fatal(world: World) -> None:
    """The error names the topic, and neither its batch nor a later one is acknowledged."""

    async def scenario() -> None:
        delivery, done = world.delivery(), list[str]()
        for name in ("refused", "later"):
            batch = begin(world, delivery, done, name)
            await batch.send(world.refusing if name == "refused" else world.out, 0, records(LARGE))
            await batch.end_message(0)
            batch.close()
        with pytest.raises(FatalError, match=f"delivery failed.*cannot write to {world.refusing}"):
            await until(delivery, lambda: False)
        delivery.fail_stop()
        delivery.reap()
        assert ([], []) == (done, world.accounts)

    asyncio.run(scenario())


def test_after_the_end_nothing_moves(world: World) -> None:
    """Closed batches are no longer acknowledged, and writers wait."""

    async def scenario() -> None:
        delivery, done = world.delivery(), list[str]()
        batch = begin(world, delivery, done)
        batch.close()
        delivery.fail_stop()
        delivery.reap()

        async def message() -> None:
            await batch.send(world.out, 0, records(b"a"))
            await batch.end_message(0)

        tasks = [asyncio.create_task(message()), asyncio.create_task(delivery.confirm(world.out, records(b"b")[0]))]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in tasks)
        delivery.fail_stop()
        assert ([], []) == (done, world.accounts)

    asyncio.run(scenario())
    assert [] == world.visible(0)


def test_room_comes_with_acknowledgement(world: World) -> None:
    """At the limit of batches, no batch is accepted before one is done."""

    async def scenario() -> None:
        delivery, done = world.delivery(Bounds(batches=2)), list[str]()
        await delivery.wait_for_capacity()
        batches = [begin(world, delivery, done, partition=number) for number in range(2)]
        room = asyncio.create_task(delivery.wait_for_capacity())
        await asyncio.sleep(0.02)
        assert not room.done()
        await batches[1].end_message(0)
        batches[1].close()
        await until(delivery, room.done)
        assert (["batch"], 1) == (done, delivery.batches)
        delivery.fail_stop()

    asyncio.run(scenario())
