"""Records from the extension equal those of the plain path, in Python and in Kafka."""

import uuid
from itertools import islice
from random import Random

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec.structs import replace

from bench.steps.shop_updates import feed
from dev.servers.broker import Broker
from tests.translator.native import needs_extension
from tests.translator.native.canal_mutants import mutants, with_two_images
from tests.translator.native.test_equality import KEYED, opened_path, plain
from tests.translator.native.test_projections import beside
from tests.translator.service.delivery._reading import TO_THE_END
from translator.codecs.record import Record
from translator.dialects import build
from translator.kafka.producer import producer_config
from translator.kafka.record_queue import NativeQueue, open_producer
from translator.message import Message, Setup

pytestmark = needs_extension

CODECS = beside("tombstones", "upsert", "avro partial")
MESSAGES = 400


def as_delete(value: bytes) -> bytes:
    body = msgspec.json.decode(value)
    return msgspec.json.encode(body | {"type": "DELETE", "old": None})


def records() -> tuple[list[Record], list[Record]]:
    """Return the records of the plain path, and the same records from the extension, for every output."""
    translator, path = opened_path(build("canal", Setup("source", tables=KEYED), {"profile": "oss"}), codecs=CODECS)
    sparse = [message.value or b"" for message in feed("canal", 12, 60).messages]
    deletes = [as_delete(value) for value in sparse[:6]]
    values = [*sparse, *deletes, *islice(mutants(Random(1), [*sparse, *map(with_two_images, sparse[:6])]), MESSAGES)]
    expected: list[Record] = []
    native: list[Record] = []
    for offset, value in enumerate(values):
        message = Message("raw.x", 3, offset, 1_767_600_000_123, None, value, topic_id="abc")
        (taken,) = path.take([message])
        if not isinstance(taken, str):
            native += [record for output in taken.outputs for record in output]
            expected += [record for output in plain(translator, CODECS, message) for record in output]  # type: ignore[union-attr]  # no letters
    assert any(record.value is None for record in expected)
    assert any(name == "__debezium.newkey" for record in expected for name, _ in record.headers)
    return expected, native


def test_one_different_part_makes_them_differ() -> None:
    """Otherwise, comparing both paths would prove nothing."""
    (expected, *_), (native, *_) = records()
    assert expected == native
    assert native == expected
    for changed in (
        replace(expected, key=None),
        replace(expected, value=None),
        replace(expected, headers=expected.headers[::-1]),
        replace(expected, headers=[*expected.headers, ("h", b"")]),
    ):
        assert changed != native
        assert native != changed
    assert repr(native).startswith('NativeRecord(b\'["source"')


def test_they_reach_kafka_as_they_are(broker: Broker) -> None:
    """Key, value and headers stored by the broker are those of the plain path."""
    expected, native = records()
    topic = f"records-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    client = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    producer, queue = open_producer(producer_config(client, 60, [1_000_000]))
    assert isinstance(queue, NativeQueue)
    assert len(native) == queue.offer(topic, 0, native)
    assert 0 == producer.flush(60)
    reader = Consumer(client | TO_THE_END)
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    for wanted in expected:
        stored = reader.poll(60)
        assert stored is not None
        assert wanted == Record(stored.key(), stored.value(), stored.headers())
    reader.close()
    admin.delete_topics([topic])[topic].result(60)
