"""The contract of both record queues, with confluent-kafka alone and with the extension, on a real broker."""

import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from tests.translator.native import needs_extension
from tests.translator.service.delivery._reading import TO_THE_END
from translator._native import SWITCH
from translator.codecs.record import Record
from translator.kafka.producer import producer_config
from translator.kafka.record_queue import NativeQueue, Outcome, PlainQueue, RecordQueue, open_producer, produce
from translator.kafka.transactional_producer import transactional_config

LARGE = random.Random(1).randbytes(10_000)  # incompressible
QUEUES = {"plain": PlainQueue, "native": NativeQueue}

NEW_TOPICS = """
import time
from translator.codecs.record import Record
from translator.kafka.record_queue import open_producer

settings = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "delivery.timeout.ms": 100}
producer, queue = open_producer(settings)
queue.offer("late", 0, [Record(None, b"v", [])] * 100_000)
number = 0
while queue.outcome("late", 0).error is None:
    queue.offer(f"t{number}", 0, [])
    number += 1
    time.sleep(0.0005)
"""
END = """
from translator.codecs.record import Record
from translator.kafka.record_queue import open_producer

producer, queue = open_producer({"test.mock.num.brokers": 1, "log_level": 0})
queue.offer("t", 0, [Record(None, b"v", [])])
while not queue.outcome("t", 0).delivered:
    producer.poll(0.01)
queue.offer("t", 0, [Record(None, b"v", [])] * 2_000)
del queue
del producer
"""


@pytest.fixture
def topic(broker: Broker) -> Iterator[str]:
    """A topic of two partitions that rejects `LARGE`."""
    name = f"queue-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 2, 1, config={"max.message.bytes": "5000"})])[name].result(60)
    yield name
    admin.delete_topics([name])[name].result(60)


@pytest.fixture(params=["plain", pytest.param("native", marks=needs_extension)])
def opened(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Open a producer with this kind of queue."""

    def made(config: dict[str, Any]) -> tuple[Producer, RecordQueue]:
        if request.param == "plain":
            monkeypatch.setenv(SWITCH, "off")
        producer, queue = open_producer(config)
        assert isinstance(queue, QUEUES[request.param])
        return producer, queue

    return made


def config(broker: Broker, **others: Any) -> dict[str, Any]:
    return {**producer_config({"bootstrap.servers": broker.bootstrap, "log_level": 0}, 60, [1_000_000]), **others}


def settled(producer: Producer, ready: Callable[[], bool]) -> None:
    """Poll until a condition holds. Only a hang takes this long."""
    deadline = time.monotonic() + 120
    while not ready():
        assert time.monotonic() < deadline
        producer.poll(0.01)


def stored(broker: Broker, topic: str, partition: int) -> list[tuple[Any, Any, Any]]:
    """Return key, value and headers of a partition's records."""
    reader = Consumer({"bootstrap.servers": broker.bootstrap} | TO_THE_END)
    reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    found = []
    while (record := reader.poll(60)) is not None:
        error = record.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF
            break
        found.append((record.key(), record.value(), record.headers()))
    reader.close()
    return found


def encoded(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def test_every_record_is_stored_as_it_is(broker: Broker, topic: str, opened: Callable[..., Any]) -> None:
    """Nothing, an empty value and a zero byte differ, in keys, values and headers."""
    records = [
        Record(None, None, []),
        Record(b"", b"", [("", b"")]),
        Record(b"a\0b", b"\0", [("h", b"\0\xff"), ("h", None), ("größe", "größe"), ("h", "")]),
        Record(b"k", random.Random(2).randbytes(3_000), [(f"h{number}", b"v" * number) for number in range(30)]),
    ]
    producer, queue = opened(config(broker))
    assert len(records) == queue.offer(topic, 1, records)
    assert 0 == producer.flush(60)
    assert Outcome(4, None) == queue.outcome(topic, 1)
    wanted = [(one.key, one.value, [(name, encoded(value)) for name, value in one.headers]) for one in records]
    assert wanted == [(key, value, headers or []) for key, value, headers in stored(broker, topic, 1)]


def test_outcomes_are_kept_by_topic_and_partition(broker: Broker, topic: str, opened: Callable[..., Any]) -> None:
    """Records with a callback of their own do not count, and nothing was delivered where nothing was queued."""
    producer, queue = opened(config(broker))
    reported: list[Any] = []
    for partition, count in ((0, 3), (1, 5), (0, 2)):
        queue.offer(topic, partition, [Record(b"k", b"v", [])] * count)
        produce(producer, topic, partition, Record(b"k", b"v", []), lambda error, _: reported.append(error))
    assert 0 == producer.flush(60)
    assert (5, 5) == (queue.outcome(topic, 0).delivered, queue.outcome(topic, 1).delivered)
    assert ([None] * 3, Outcome(0, None), None) == (reported, queue.outcome(topic, 7), queue.failure())


def test_nothing_counts_after_an_error(broker: Broker, topic: str, opened: Callable[..., Any]) -> None:
    """Records after an error do not count as delivered, and the outcome contains the error."""
    producer, queue = opened(config(broker, **{"linger.ms": 0}))
    queue.offer(topic, 0, [Record(None, b"a", []), Record(None, b"b", [])])
    settled(producer, lambda: queue.outcome(topic, 0).delivered == 2)
    queue.offer(topic, 0, [Record(None, LARGE, [])])
    settled(producer, lambda: queue.outcome(topic, 0).error is not None)
    queue.offer(topic, 0, [Record(None, b"c", [])])
    queue.offer(topic, 1, [Record(None, b"d", [])])
    assert 0 == producer.flush(60)
    delivered, error = queue.outcome(topic, 0)
    assert (2, KafkaError.MSG_SIZE_TOO_LARGE) == (delivered, error.code())
    failure = queue.failure()
    assert failure is not None
    assert (topic, error.str()) == (failure.topic, failure.error.str())
    assert Outcome(1, None) == queue.outcome(topic, 1)


def test_a_full_queue_accepts_the_first_records(broker: Broker, topic: str, opened: Callable[..., Any]) -> None:
    """The rest can be queued once there is room."""
    producer, queue = opened(config(broker, **{"queue.buffering.max.messages": 3}))
    left = [Record(None, b"%d" % number, []) for number in range(10)]
    assert 3 == queue.offer(topic, 0, left)
    assert 0 == queue.offer(topic, 1, left)
    left = left[3:]
    while left:
        left = left[queue.offer(topic, 0, left) :]
        producer.poll(0.01)
    assert 0 == producer.flush(60)
    assert (10, 0) == (queue.outcome(topic, 0).delivered, queue.outcome(topic, 1).delivered)
    assert [b"%d" % number for number in range(10)] == [value for _, value, _ in stored(broker, topic, 0)]


def test_a_producer_that_failed_says_why(broker: Broker, topic: str, opened: Callable[..., Any]) -> None:
    """A transactional producer accepts no record outside of a transaction."""
    producer, queue = opened(transactional_config(config(broker), uuid.uuid4().hex, 60))
    producer.init_transactions(60)
    with pytest.raises(KafkaException) as raised:
        queue.offer(topic, 0, [Record(None, b"a", [])])
    assert KafkaError._STATE == raised.value.args[0].code()


def test_an_unknown_partition_is_an_error(broker: Broker, topic: str, opened: Callable[..., Any]) -> None:
    """The producer knows how many partitions there are once it has written to one of them."""
    producer, queue = opened(config(broker))
    queue.offer(topic, 0, [Record(None, b"a", [])])
    assert 0 == producer.flush(60)
    with pytest.raises(KafkaException) as raised:
        queue.offer(topic, 9, [Record(None, b"a", [])])
    assert KafkaError._UNKNOWN_PARTITION == raised.value.args[0].code()


def test_dropped_records_are_not_the_cause(broker: Broker, opened: Callable[..., Any], free_port: int) -> None:
    """When a producer stops, its queued records are not delivered, but nothing is wrong with them."""
    producer, queue = opened(config(broker) | {"bootstrap.servers": f"127.0.0.1:{free_port}"})
    queue.offer("t", 0, [Record(None, b"a", [])])
    producer.purge()
    settled(producer, lambda: queue.outcome("t", 0).error is not None)
    delivered, error = queue.outcome("t", 0)
    assert (0, KafkaError._PURGE_QUEUE, None) == (delivered, error.code(), queue.failure())


def test_a_transaction_names_the_record_that_failed(broker: Broker, topic: str, opened: Callable[..., Any]) -> None:
    """Other records of the transaction are dropped because of it."""
    producer, queue = opened(transactional_config(config(broker), uuid.uuid4().hex, 60))
    producer.init_transactions(60)
    producer.begin_transaction()
    for partition in (0, 1, 0, 1):
        queue.offer(topic, partition, [Record(None, b"a", []), Record(None, LARGE, []), Record(None, b"b", [])])
    with pytest.raises(KafkaException):
        producer.commit_transaction(60)
    settled(producer, lambda: queue.failure() is not None)
    failure = queue.failure()
    assert failure is not None
    assert (topic, KafkaError.MSG_SIZE_TOO_LARGE) == (failure.topic, failure.error.code())


def test_a_producer_ends_with_records_in_its_queue(opened: Callable[..., Any], free_port: int) -> None:
    """Its queue refers to topics of the producer, which may be released before or after it."""
    for first in (0, 1):
        opening = {"bootstrap.servers": f"127.0.0.1:{free_port}", "log_level": 0}
        ends: list[Any] = list(opened(opening))
        ends[1].offer("t", 0, [Record(b"k", b"v", [("h", b"v")])] * 100)
        ends.pop(first)
        ends.pop()


def test_a_wrong_setting_is_told(opened: Callable[..., Any]) -> None:
    """The error is that of confluent-kafka."""
    with pytest.raises(KafkaException, match=r"no\.such\.setting"):
        open_producer({"bootstrap.servers": "127.0.0.1:1", "no.such.setting": os.devnull})


def in_another_process(program: str, **environment: str) -> int:
    """Return a program's exit code. A thread that waits for librdkafka's locks can hold the GIL."""
    return subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, timeout=60).returncode


@needs_extension
def test_a_topic_is_opened_while_records_of_another_fail() -> None:
    """librdkafka holds a lock while it reports records that were not delivered in time, and needs it for a new topic.
    The two threads must not wait for each other.
    """
    assert 0 == in_another_process(NEW_TOPICS)


@needs_extension
def test_records_are_reported_after_the_queue_is_gone() -> None:
    """A producer that ends still reports records, although nothing in Python refers to its queue any more."""
    # glibc overwrites freed memory, so that its use does not go unnoticed, but not what its cache of a thread keeps.
    settings = {"MALLOC_PERTURB_": "85", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    assert 0 == in_another_process(END, **settings)
