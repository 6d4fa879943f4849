"""Create, fill, count and delete a benchmark's topics."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from bench.generators import MessageStream

_ANSWER_SECONDS = 60.0
_PRODUCER: dict[str, str | int | float | bool] = {
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 500_000,
}


class Topics:
    """The topics on one broker."""

    def __init__(self, bootstrap: str) -> None:
        self._client: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._admin = AdminClient(self._client)

    def create(self, name: str, partitions: int) -> None:
        """Create a topic."""
        new = NewTopic(name, partitions, 1, config={"compression.type": "producer"})
        self._admin.create_topics([new])[name].result(_ANSWER_SECONDS)

    def create_raw(self, name: str, stream: MessageStream, partitions: int) -> None:
        """Create a stream's raw topic. Also create and fill the stream's metadata topic."""
        self.create(name, partitions)
        if stream.metadata:
            self.create(f"{name}.metadata", 1)
            producer = Producer(self._client | _PRODUCER)
            for value in stream.metadata:
                _produce(producer, f"{name}.metadata", 0, value)
            _flush(producer)

    def feed(self, name: str, stream: MessageStream, total: int) -> int:
        """Write `total` messages to a raw topic by repeating the stream's messages, and return their total size."""
        producer = Producer(self._client | _PRODUCER)
        size = 0
        for number, message in enumerate(itertools.islice(itertools.cycle(stream.messages), total)):
            _produce(producer, name, message.partition, message.value)
            size += len(message.value or b"")
            if number % 1000 == 0:
                producer.poll(0)
        _flush(producer)
        return size

    def records(self, name: str, partitions: int) -> int:
        """Return the number of records in a topic, including transaction markers. While its leaders do not respond,
        return 0.
        """
        asked = {TopicPartition(name, number): OffsetSpec.latest() for number in range(partitions)}  # type: ignore[no-untyped-call]
        futures = self._admin.list_offsets(asked, request_timeout=_ANSWER_SECONDS)
        try:
            return sum(future.result(_ANSWER_SECONDS).offset for future in futures.values())
        except KafkaException:
            return 0

    def members(self, group: str) -> int:
        """Return the number of members in a stable consumer group, or 0 if the group is not stable."""
        try:
            found = self._admin.describe_consumer_groups([group])[group].result(_ANSWER_SECONDS)
        except KafkaException:
            return 0
        return len(found.members) if found.state.name == "STABLE" else 0

    def delete(self, prefixes: Sequence[str]) -> None:
        """Delete all topics that have one of these prefixes."""
        doomed = [
            name for name in self._admin.list_topics(timeout=_ANSWER_SECONDS).topics if name.startswith(tuple(prefixes))
        ]
        if doomed:
            for future in self._admin.delete_topics(doomed).values():
                future.result(_ANSWER_SECONDS)


def _flush(producer: Producer) -> None:
    assert not producer.flush(_ANSWER_SECONDS), "the broker does not accept the raw messages"


def _produce(producer: Producer, topic: str, partition: int, value: bytes | None) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=partition)
            return
        except BufferError:
            producer.poll(0.1)
