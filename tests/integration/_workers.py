"""Run several translators of one group on their own broker, and read what they wrote."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.structs import OffsetAndMetadata
from aiokafka.structs import TopicPartition as AIOTopicPartition
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from dev.servers.stack import CANONICAL, DEAD_LETTERS, Stack, wait_until
from dev.servers.stack import is_ready as is_ready_at

PATIENCE = 180.0
"""Timeout in seconds for hanging tests. On a busy machine, a translator takes half a minute to start and a broker two.
"""

STEADY = {"session": 30}
"""Timing for tests that kill nobody and count events. With the session timeout of `dev.servers.stack`, a busy machine
can delay a worker's heartbeats until it loses its partitions, and then the group rightly writes events twice.
"""


class Workers:
    """Translators that share a configuration. Each has its own folder and port.

    Args:
        settings: overrides for those of `dev.servers.stack`, section by section.
    """

    def __init__(
        self, broker: Broker, directory: Path, count: int, sources: Sequence[Mapping[str, Any]], **settings: Any
    ) -> None:
        self._bootstrap = broker.bootstrap
        self.stacks = [Stack(broker.bootstrap, directory / str(number), sources) for number in range(count)]
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for stack in self.stacks:
            stack.change("translator", **settings)

    def create(self, **partitions: int) -> None:
        """Create raw topics. A `_` in a name stands for a dot."""
        topics = [NewTopic(name.replace("_", "."), count, 1) for name, count in partitions.items()]
        for future in self._admin.create_topics(topics).values():
            future.result(30)

    def feed(self, topic: str, values: Iterable[bytes], partition: int = 0, key: bytes | None = None) -> None:
        """Send messages idempotently, so that a killed broker that had written but not acknowledged makes no
        duplicates.
        """
        config = {"bootstrap.servers": self._bootstrap, "linger.ms": 5, "log_level": 0, "enable.idempotence": True}
        producer = Producer(config)
        for value in values:
            producer.produce(topic, value, key, partition)
            producer.poll(0)
        assert 0 == producer.flush(PATIENCE + 60), "a broker that was killed has to come back meanwhile"

    def start(self) -> None:
        """Start all workers."""
        for stack in self.stacks:
            stack.start("translator")

    def wait_up(self, number: int) -> None:
        """Wait until a started worker is processing. Before that, it cannot shut down cleanly."""
        stack = self.stacks[number]
        wait_until(f"worker {number} is up", PATIENCE, lambda: is_ready(stack), stack)

    def committed(self, topic: str, partition: int = 0) -> int:
        """Return the committed offset of the group, or 0 while the broker cannot answer."""
        reader = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "demo", "log_level": 0})
        try:
            (place,) = reader.committed([TopicPartition(topic, partition)], timeout=20)
        except KafkaException:
            return 0
        finally:
            reader.close()
        return max(place.offset, 0)

    def wait_committed(self, topic: str, offset: int, partition: int = 0) -> None:
        what = f"{topic}/{partition} is committed up to {offset}"
        wait_until(what, PATIENCE, lambda: self.committed(topic, partition) >= offset, self.stacks[0])

    def members(self) -> int:
        """Return the number of workers in the group."""
        (described,) = self._admin.describe_consumer_groups(["demo"]).values()
        return len(described.result(20).members)

    def events(self) -> list[Any]:
        """Return the records of the canonical topic, each partition in order."""
        return self.stacks[0].records(CANONICAL)

    def dead_letters(self) -> list[Any]:
        return self.stacks[0].records(DEAD_LETTERS)

    def said(self, text: str, number: int = 0) -> bool:
        """Return whether a worker has logged this text."""
        return text in self.stacks[number].log("translator").read_text(errors="replace")

    def close(self) -> None:
        for stack in self.stacks:
            stack.close()


class Feeding:
    """A context manager that feeds messages until its block ends, and then knows how many it fed.

    Args:
        feed: sends the messages.
        rows: returns the messages from one number to another.
    """

    def __init__(
        self, feed: Callable[[Iterator[bytes]], None], rows: Callable[[int, int], Iterator[bytes]], at_once: int = 10
    ) -> None:
        self._over = threading.Event()
        self.count = 0
        self._rows = rows
        self._at_once = at_once
        self._thread = threading.Thread(target=feed, args=(self._all(),))

    def _all(self) -> Iterator[bytes]:
        while not self._over.is_set():
            yield from self._rows(self.count, self.count + self._at_once)
            self.count += self._at_once
            time.sleep(0.05)

    def __enter__(self) -> Feeding:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()


def is_ready(stack: Stack) -> bool:
    """Return the answer of a worker's readiness probe, or False if it does not answer."""
    return is_ready_at(stack.web_port)


def identity(record: Any) -> str:
    """Return the id of an event."""
    return str(dict(record.headers())["cdc-id"].decode())


def identities(records: Iterable[Any]) -> list[str]:
    """Return the ids of the events by first occurrence. At-least-once delivery can write an event twice."""
    return list(dict.fromkeys(map(identity, records)))


def dumps(document: Any) -> bytes:
    return json.dumps(document).encode()


@asynccontextmanager
async def committing(
    bootstrap: str, group: str, topic: str
) -> AsyncIterator[Callable[[int, int, str], Awaitable[None]]]:
    """Commit (partition, offset, note) as the service does. The librdkafka client cannot write the end of a note."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    await consumer.start()

    async def commit(partition: int, offset: int, note: str) -> None:
        place = AIOTopicPartition(topic, partition)
        consumer.assign([place])
        await consumer.commit({place: OffsetAndMetadata(offset, note)})

    try:
        yield commit
    finally:
        await consumer.stop()


async def commit_noted(bootstrap: str, group: str, topic: str, partition: int, offset: int, note: str) -> None:
    """Make one commit with `committing`."""
    async with committing(bootstrap, group, topic) as commit:
        await commit(partition, offset, note)
