"""Records that retention deleted before they were read, recreated topics, and the start position of new partitions."""

import asyncio
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from dev.servers.broker import Broker
from dev.servers.stack import CANONICAL, Stack, wait_until
from tests.integration._workers import PATIENCE, Workers, commit_noted, dumps, identities
from tests.translator.service._pipeline import CANAL_ROW
from translator.codecs.avro import AvroCodec
from translator.kafka.admin import _note
from translator.kafka.offset_note import END
from translator.service.start_offsets import GAP_PREFIX

pytestmark = pytest.mark.integration

METADATA = f"{CANONICAL}.metadata"


def source(topic: str, **more: Any) -> dict[str, Any]:
    return {"name": topic, "dialect": "canal", "topics": [topic], "options": {"profile": "oss"}, **more}


def rows(begin: int, end: int) -> Iterator[bytes]:
    for number in range(begin, end):
        yield dumps(CANAL_ROW | {"data": [{"id": str(number), "name": "a"}], "id": number})


def delete_before(broker: Broker, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(20)


def make_again(broker: Broker, workers: Workers, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.delete_topics([topic])[topic].result(20)
    wait_until("the topic is gone", PATIENCE, lambda: topic not in admin.list_topics(timeout=10).topics)
    workers.create(**{topic: 1})


def commit(broker: Broker, topic: str, offset: int, note: str) -> None:
    """Commit as the group would, while none of its members runs."""
    asyncio.run(commit_noted(broker.bootstrap, "demo", topic, 0, offset, note))


def wait_alone(workers: Workers) -> None:
    """Wait until the group drops a killed or crashed member, after its session timeout."""
    wait_until("the group is empty", PATIENCE, lambda: workers.members() == 0)


def marks(stack: Stack) -> dict[str, Any]:
    found = {record.key().decode(): record.value() for record in stack.records(METADATA)}
    return {key: msgspec.json.decode(value) for key, value in found.items() if key.startswith(GAP_PREFIX)}


def events(workers: Workers) -> list[tuple[str, str]]:
    """Return the position's scope and the id of each event, in order of first occurrence."""
    decoded = [AvroCodec().decode(record.value()) for record in workers.events()]
    return list(dict.fromkeys((event.pos_scope, event.id) for event in decoded))


def test_records_that_retention_took(empty_broker: Broker, tmp_path: Path) -> None:
    """The start exits with code 1 and reports the gap. With --accept-gap it resumes once, and the gap is recorded."""
    workers = Workers(empty_broker, tmp_path, 1, [source("raw")])
    (stack,) = workers.stacks
    workers.create(raw=1)
    try:
        workers.feed("raw", rows(0, 100))
        workers.start()
        workers.wait_committed("raw", 100)
        assert 0 == stack.stop("translator")
        workers.feed("raw", rows(100, 150))
        delete_before(empty_broker, "raw", 120)
        assert 1 == stack.start("translator").wait(PATIENCE)
        for said in (
            "topic raw partition 0: records were deleted before they were read",
            "committed offset 100, earliest available offset 120, end 150: 20 records are missing",
            "translator run --accept-gap",
        ):
            assert workers.said(said), said
        assert (100, 100, {}) == (workers.committed("raw"), len(identities(workers.events())), marks(stack))
        stack.start("translator", "--accept-gap")
        workers.wait_committed("raw", 150)
        assert workers.said("gap accepted")
        assert 0 == stack.stop("translator")
        offsets = [*range(100), *range(120, 150)]
        assert [f"raw/raw/0/{offset}/0" for offset in offsets] == identities(workers.events())
        ((key, gap),) = marks(stack).items()
        assert (f"{GAP_PREFIX}raw/0/{gap['topic_id']}/100", 120, 20) == (key, gap["earliest"], gap["missing"])
        workers.feed("raw", rows(150, 160))
        workers.start()
        workers.wait_committed("raw", 160)
    finally:
        workers.close()


def test_a_topic_that_was_made_again_while_nobody_read(empty_broker: Broker, tmp_path: Path) -> None:
    """An offset of a deleted topic is a gap, beyond the end or not. The new topic is never read from it."""
    workers = Workers(empty_broker, tmp_path, 1, [source("raw")])
    (stack,) = workers.stacks
    workers.create(raw=1)
    try:
        workers.feed("raw", rows(0, 50))
        workers.start()
        workers.wait_committed("raw", 50)
        assert 0 == stack.stop("translator")
        reader = Consumer({"bootstrap.servers": empty_broker.bootstrap, "group.id": "demo", "log_level": 0})
        (left,) = reader.committed([TopicPartition("raw", 0)], timeout=20)
        reader.close()
        make_again(empty_broker, workers, "raw")
        workers.feed("raw", rows(1000, 1040))
        wait_alone(workers)
        commit(empty_broker, "raw", 50, "")  # as committed by an older release, without a note
        assert 1 == stack.start("translator").wait(PATIENCE)
        assert workers.said("the topic ends before the committed offset")
        wait_alone(workers)
        # The text that librdkafka returns can continue after the end of the note.
        note = "".join(_note(left).partition(END)[:2])
        commit(empty_broker, "raw", 10, f"{note}\0")
        assert 1 == stack.start("translator").wait(PATIENCE)
        assert workers.said("the topic was deleted and recreated (topic=")
        wait_alone(workers)
        assert 50 == len(events(workers))
        stack.start("translator", "--accept-gap")
        workers.wait_committed("raw", 40)
        found = events(workers)
        assert 90 == len(found)
        assert 2 == len({scope for scope, _ in found})
    finally:
        workers.close()


def test_a_topic_that_is_made_again_while_it_is_read(empty_broker: Broker, tmp_path: Path) -> None:
    """The process exits with code 1 and reports the topic. No record of the new topic has an id of the old one."""
    workers = Workers(empty_broker, tmp_path, 1, [source("raw")], timing={"topic_refresh": 1})
    (stack,) = workers.stacks
    workers.create(raw=1)
    try:
        workers.feed("raw", rows(0, 50))
        process = stack.start("translator")
        workers.wait_committed("raw", 50)
        make_again(empty_broker, workers, "raw")
        # Not up to the current offset of the process: until its next check, a process that has not noticed the deletion
        # would continue from there (docs/operate/topics.md).
        workers.feed("raw", rows(1000, 1040))
        assert 1 == process.wait(PATIENCE)
        assert workers.said("topic raw was deleted and recreated since the start")
        assert 50 == len(events(workers))
        workers.feed("raw", rows(1040, 1200))
        wait_alone(workers)
        workers.start()
        workers.wait_committed("raw", 200)
        found = events(workers)
        (old, new) = dict.fromkeys(scope for scope, _ in found)
        assert [f"raw/raw/0/{offset}/0" for offset in range(50)] == [name for scope, name in found if scope == old]
        assert [f"raw/raw/0/{offset}/0" for offset in range(200)] == [name for scope, name in found if scope == new]
    finally:
        workers.close()


def test_where_a_partition_begins(empty_broker: Broker, tmp_path: Path) -> None:
    """Without a committed offset, reading starts at the beginning, the end or a time, decided and committed once."""
    noon = datetime(2026, 4, 13, 12, tzinfo=UTC)
    begins = {"early": None, "late": "latest", "timed": noon.isoformat(), "future": "2100-01-01T00:00:00Z"}
    sources = [source(topic, **({"start": start} if start else {})) for topic, start in begins.items()]
    workers = Workers(empty_broker, tmp_path, 1, sources)
    (stack,) = workers.stacks
    workers.create(**dict.fromkeys(begins, 1))
    try:
        producer = Producer({"bootstrap.servers": empty_broker.bootstrap, "log_level": 0, "enable.idempotence": True})
        at = int(noon.timestamp() * 1000)
        for topic in begins:
            for number, value in enumerate(rows(0, 10)):
                producer.produce(topic, value, partition=0, timestamp=at + (number - 4) * 1000)
        assert 0 == producer.flush(30)
        workers.start()
        for topic in begins:
            workers.wait_committed(topic, 10)
        assert 0 == stack.stop("translator")
        for topic in begins:
            workers.feed(topic, rows(10, 12))
        workers.start()
        for topic in begins:
            workers.wait_committed(topic, 12)
        found: dict[str, list[int]] = {topic: [] for topic in begins}
        for name in identities(workers.events()):
            _, topic, _, offset, _ = name.split("/")
            found[topic].append(int(offset))
        expected = {"early": range(12), "late": (10, 11), "timed": range(4, 12), "future": (10, 11)}
        assert {topic: list(offsets) for topic, offsets in expected.items()} == found
    finally:
        workers.close()


@pytest.mark.faults
def test_records_that_retention_takes_while_they_are_read(empty_broker: Broker, tmp_path: Path) -> None:
    """A paused process that retention overtakes also exits with code 1 when it resumes."""
    workers = Workers(empty_broker, tmp_path, 1, [source("raw")])
    (stack,) = workers.stacks
    workers.create(raw=1)
    try:
        workers.feed("raw", rows(0, 10))
        process = stack.start("translator")
        workers.wait_committed("raw", 10)
        # If the broker is slow, it can answer a fetch from before the pause with the records fed here. Then nothing is
        # missing, and the test tries again.
        for end in range(60, 560, 50):
            process.send_signal(signal.SIGSTOP)
            try:
                time.sleep(1)
                workers.feed("raw", rows(end - 50, end))
                delete_before(empty_broker, "raw", end - 20)
            finally:
                process.send_signal(signal.SIGCONT)
            wait_until(
                "it has ended, or read all",
                PATIENCE,
                lambda end=end: process.poll() is not None or workers.committed("raw") >= end,
            )
            if process.poll() is not None:
                break
        assert 1 == process.poll()
        assert workers.said("topic raw partition 0: records were deleted before they were read")
    finally:
        workers.close()
