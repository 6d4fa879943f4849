"""AtLeastOnceDelivery on the real broker acknowledges in order, only after delivery, and nothing after an error."""

import asyncio
import os
import time
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from tests.gate import Gate
from translator.codecs.record import Record
from translator.config.settings import Bounds
from translator.errors import FatalError
from translator.kafka.producer import RecordProducer, producer_config, write_failure
from translator.service.delivery.at_least_once import AtLeastOnceDelivery, open_delivery
from translator.service.metrics import BatchAccount


@pytest.fixture
def topic(broker: Broker) -> Iterator[str]:
    """A fresh topic of two partitions."""
    name = f"delivery-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(20)
    yield name
    admin.delete_topics([name])[name].result(20)


@pytest.fixture
def accounted() -> list[BatchAccount]:
    return []


@pytest.fixture
def delivery(broker: Broker, accounted: list[BatchAccount]) -> AtLeastOnceDelivery:
    return delivering(broker, accounted, 60)


def delivering(broker: Broker, accounted: list[BatchAccount], seconds: float) -> AtLeastOnceDelivery:
    """A delivery whose producer fails a record after that time."""
    config = producer_config({"bootstrap.servers": broker.bootstrap, "log_level": 0}, seconds, limits=[1_000_000])
    return AtLeastOnceDelivery(RecordProducer.from_config(config), accounted.append)


def record(number: int) -> Record:
    return Record(b"k", b"%d" % number, [("h", b"v")])


async def reap_until(delivery: AtLeastOnceDelivery, done: list[str], count: int) -> None:
    for _ in range(12_000):
        delivery.reap()
        if len(done) >= count:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{len(done)} of {count} batches acknowledged")


def test_a_delivery_error_is_fatal_and_acknowledges_nothing(broker: Broker, accounted: list[BatchAccount]) -> None:
    """A record that the broker rejects stops the process, and its batch is never acknowledged."""
    delivery = delivering(broker, accounted, 5)
    done: list[str] = []

    async def scenario() -> None:
        batch = delivery.begin(BatchAccount("s", "raw", 0, records=1), lambda: done.append("batch"))
        await batch.send("no-such-topic", 0, [record(0)])
        batch.close()
        with pytest.raises(FatalError, match="delivery failed for a batch of raw"):
            await reap_until(delivery, done, 1)
        delivery.fail_stop()
        delivery.reap()

    asyncio.run(scenario())
    assert done == []
    assert accounted == []


def unreached(port: int, seconds: float) -> AtLeastOnceDelivery:
    """A delivery whose broker is at a local port where nobody listens yet."""
    address = {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}
    connection = address | {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50}
    return open_delivery(connection, [1_000_000], lambda _: None, Bounds(), seconds)


def test_nothing_is_written_past_a_record_whose_time_is_over(topic: str, broker: Broker) -> None:
    """A timed-out record is not dropped while a later one is still being sent, however late the process looks.

    The next process starts with the missing record, which would then follow the later one, out of order.
    """
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    reader.assign([TopicPartition(topic, 0, 0)])

    async def scenario(gate: Gate) -> None:
        delivery = unreached(gate.port, 4)
        batch = delivery.begin(BatchAccount("s", "raw", 0, records=2), lambda: None)
        await batch.send(topic, 0, [record(0)])
        time.sleep(3)  # noqa: ASYNC251  the loop is busy with something else, and nobody looks
        await batch.send(topic, 0, [record(1)])
        time.sleep(2.5)  # noqa: ASYNC251  the time of the first is over, that of the second is not
        gate.open()  # clients ask this port for brokers, and continue at the broker's own port
        first = reader.poll(30)
        assert first is not None
        assert first.value() == b"0"
        delivery.fail_stop()

    with Gate(broker.settled_port()) as gate:
        asyncio.run(scenario(gate))
    reader.close()


def test_a_record_that_is_not_acknowledged_in_time_is_fatal(free_port: int) -> None:
    """The error names the topic and where to look, for a batch and for a confirmed record."""
    delivery = unreached(free_port, 1)
    done: list[str] = []

    async def scenario() -> None:
        batch = delivery.begin(BatchAccount("s", "raw", 0, records=1), lambda: done.append("batch"))
        await batch.send("out", 0, [record(0)])
        batch.close()
        assert delivery.may_still_write
        said = "a batch of raw: cannot write to out: not acknowledged within timing.delivery: .* min.insync.replicas"
        with pytest.raises(FatalError, match=said):
            await reap_until(delivery, done, 1)
        with pytest.raises(FatalError, match="cannot write to out: not acknowledged within"):
            await delivery.confirm("out", record(1))
        delivery.fail_stop()

    asyncio.run(scenario())
    assert done == []


def test_a_batch_that_waits_for_something_else_is_not_late(free_port: int) -> None:
    """Time counts only while reports are outstanding. A message can wait for its metadata indefinitely."""
    delivery = unreached(free_port, 0.2)

    async def scenario() -> None:
        delivery.begin(BatchAccount("s", "raw", 0, records=1), lambda: None)
        delivery.reap()
        await asyncio.sleep(0.3)
        delivery.reap()

    asyncio.run(scenario())


def test_confirm_raises_when_the_broker_refuses(broker: Broker, accounted: list[BatchAccount]) -> None:
    """If a schema cannot be written, the process stops, because its rows must not be written either."""
    delivery = delivering(broker, accounted, 60)
    name = f"small-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config={"max.message.bytes": "5000"})])[name].result(20)
    with pytest.raises(FatalError, match=f"cannot write to {name}: .*too large"):
        asyncio.run(delivery.confirm(name, Record(None, os.urandom(10_000), [])))
    admin.delete_topics([name])[name].result(20)


class Counting(Producer):
    """The real producer, counting requests for reports."""

    polls = 0

    def poll(self, timeout: float = -1) -> int:
        self.polls += 1
        return super().poll(timeout)


def test_a_full_queue_is_waited_for(topic: str, broker: Broker, accounted: list[BatchAccount]) -> None:
    """With room for two records in the producer, many are still delivered, including confirmed ones."""
    config = producer_config({"bootstrap.servers": broker.bootstrap, "log_level": 0}, 20, [1_000_000])
    delivery = AtLeastOnceDelivery(
        RecordProducer.from_config(config | {"queue.buffering.max.messages": 2}), accounted.append
    )
    done: list[str] = []

    async def scenario() -> None:
        batch = delivery.begin(BatchAccount("s", "raw", 0, records=9), lambda: done.append("batch"))
        await batch.send(topic, 1, [record(number) for number in range(9)])
        await delivery.confirm(topic, record(9))
        batch.close()
        await reap_until(delivery, done, 1)

    asyncio.run(scenario())
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    found = [reader.get_watermark_offsets(TopicPartition(topic, number), timeout=10) for number in (0, 1)]
    assert [(0, 1), (0, 9)] == found
    reader.close()


def test_after_the_end_nothing_is_produced_and_nobody_spins(free_port: int) -> None:
    """Code that waits for a report or for room waits for the end of the process without polling."""
    producer = Counting({"bootstrap.servers": f"127.0.0.1:{free_port}", "log_level": 0})
    delivery = AtLeastOnceDelivery(RecordProducer(producer), lambda _: None)

    async def scenario() -> None:
        batch = delivery.begin(BatchAccount("s", "raw", 0, records=1), lambda: None)
        tasks = [asyncio.create_task(delivery.confirm("t", record(1)))]
        await asyncio.sleep(0.05)
        delivery.fail_stop()
        tasks.append(asyncio.create_task(delivery.confirm("t", record(2))))
        tasks.append(asyncio.create_task(batch.send("t", 0, [record(3)])))
        await asyncio.sleep(0.05)
        polls = producer.polls
        assert polls > 0
        await asyncio.sleep(0.1)
        assert polls == producer.polls
        assert not any(task.done() for task in tasks)

    asyncio.run(scenario())
    producer.poll(0)  # the report about the purged record
    assert 0 == len(producer), "nothing was produced after the end"


def test_batches_fit_the_smallest_topic_and_records_the_largest(broker: Broker, accounted: list[BatchAccount]) -> None:
    """The broker rejects a batch above its topic's limit, however small its records are."""
    names = small, large = [f"size-{size}-{uuid.uuid4().hex[:8]}" for size in ("small", "large")]
    limits = {small: 10_000, large: 900_000}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = [NewTopic(name, 1, 1, config={"max.message.bytes": str(limits[name])}) for name in names]
    for future in admin.create_topics(wanted).values():
        future.result(20)
    config = producer_config({"bootstrap.servers": broker.bootstrap, "log_level": 0}, 20, limits.values())
    delivery = AtLeastOnceDelivery(RecordProducer.from_config(config), accounted.append)
    done: list[str] = []

    async def scenario() -> None:
        batch = delivery.begin(BatchAccount("s", "raw", 0, records=1), lambda: done.append("batch"))
        await batch.send(small, 0, [Record(None, os.urandom(900), []) for _ in range(500)])
        await batch.send(large, 0, [Record(None, os.urandom(800_000), [])])
        batch.close()
        await reap_until(delivery, done, 1)

    asyncio.run(scenario())
    for future in admin.delete_topics(names).values():
        future.result(20)


@pytest.mark.parametrize("bounds", [Bounds(batches=2), Bounds(events=2)], ids=["batches", "events"])
def test_there_is_room_again_when_something_was_delivered(
    topic: str, broker: Broker, accounted: list[BatchAccount], bounds: Bounds
) -> None:
    """At a limit, no record is accepted until a delivery makes room."""
    config = producer_config({"bootstrap.servers": broker.bootstrap, "log_level": 0}, 600, [1_000_000], bounds)
    # It keeps records until it is flushed, however long this process or the machine pauses before that.
    producer = Producer(config | {"linger.ms": 300_000})
    delivery = AtLeastOnceDelivery(RecordProducer(producer), accounted.append, bounds)

    async def scenario() -> None:
        await asyncio.wait_for(delivery.wait_for_capacity(), 60)
        batches = [delivery.begin(BatchAccount("s", "raw", number, records=1), lambda: None) for number in range(2)]
        for batch in batches:
            await batch.send(topic, 0, [record(1)])
        room = asyncio.create_task(delivery.wait_for_capacity())
        await asyncio.sleep(0.01)
        assert (False, 2, 2) == (room.done(), delivery.batches, delivery.records)
        assert delivery.progress is not None
        for batch in batches:
            batch.close()
        assert 0 == await asyncio.to_thread(producer.flush, 60)
        await asyncio.wait_for(room, 60)

    asyncio.run(scenario())
    assert delivery.batches < bounds.batches


def test_one_record_of_the_largest_size_always_has_room() -> None:
    """Otherwise a record larger than the producer's queue would never be accepted."""
    config = producer_config({}, 20, [10_000, 5_000_000], Bounds(bytes=1024))
    assert config["queue.buffering.max.kbytes"] * 1024 > 5_000_000 + 10_000
    assert 100_000 == config["queue.buffering.max.messages"]


def test_the_reason_names_topic_and_cause() -> None:
    """The reason says what to check and has the library's text. An unknown cause has only the text."""
    said = write_failure("cdc.canonical", KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert said.startswith("cannot write to cdc.canonical: ")
    assert said.endswith(" (this user is not allowed to write to it)")
    unknown = KafkaError(KafkaError.INVALID_TIMESTAMP)
    assert f"cannot write to t: {unknown.str()}" == write_failure("t", unknown)
