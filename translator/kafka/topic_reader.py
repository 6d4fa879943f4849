"""Read topics from beginning to end, and follow them (compacted topics, dead letters), without a group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from translator.errors import ConfigError, FatalError
from translator.kafka.admin import DENIED, SOON_SECONDS, TopicFacts
from translator.kafka.client_errors import ClientErrors


def next_records(consumer: Consumer, seconds: float) -> list[Any]:
    """Return available records and end-of-partition events, at most a thousand. It waits up to `seconds` for the first
    of these.

    A single call to `Consumer.consume` would always wait the full time for that many records, even at the end of the
    topic.
    """
    first = consumer.poll(seconds)
    return [] if first is None else [first, *consumer.consume(999, 0)]


class TopicReader:
    """A reader for whole topics.

    Args:
        after: the offsets that an earlier reader has `reached`. In these partitions, reading begins there instead of at
            the beginning.
        follows: whether the reader continues after the end. If so, it polls the broker less often from `to_end` on.
    """

    def __init__(
        self,
        connection: Mapping[str, Any],
        facts: Mapping[str, TopicFacts],
        after: Mapping[tuple[str, int], int] | None = None,
        *,
        follows: bool = False,
    ) -> None:
        self._complaints: ClientErrors | None = connection.get("error_cb")
        self._connection = connection
        self._follows = follows
        # The broker takes this long to report the end of a partition, so readers that stop at the end use a short time.
        self._consumer = _consumer(connection, fetch_wait_ms=50)
        self._reached: dict[tuple[str, int], int] = {**(after or {})}
        self._open = {(name, number) for name, topic in facts.items() for number in range(topic.partitions)}
        begin = after or {}
        # Called before anything is assigned: a consumer that does not know the leaders yet asks for the first offsets
        # half a second later (librdkafka 2.16). Calling it first reduced the time for a small topic from 0.51 s to 0.03
        # s.
        self._ends = {place: self._end(*place) for place in self._open}
        self._consumer.assign(
            [TopicPartition(*place, begin.get(place, OFFSET_BEGINNING)) for place in sorted(self._open)]
        )

    def to_end(self) -> Iterator[Message]:
        """Yield every record that existed when the reader was created, and possibly some newer ones."""
        while self._open:
            yield from self.poll(0.1)
            # The library never reports the end of a partition that is written continuously. An empty partition must
            # also have responded, because we may lack the permission to read it.
            self._open = {place for place in self._open if self._reached.get(place, -1) < self._ends[place]}
        if self._follows:
            self._go_on()

    def _go_on(self) -> None:
        """Continue after the end, with less frequent requests to the broker."""
        before, self._consumer = self._consumer, _consumer(self._connection, fetch_wait_ms=500)
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in sorted(self._reached.items())])
        before.close()
        self._follows = False

    def _end(self, topic: str, partition: int) -> float:
        """Return the current end of a partition, or infinity if its leader cannot report the end. In this case, only
        reading the partition shows where it ends.
        """
        try:
            return self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=SOON_SECONDS)[1]
        except KafkaException:
            return math.inf

    def next_offset(self, topic: str, partition: int) -> int:
        """Return the next offset that will be read from a partition."""
        return self._reached.get((topic, partition), 0)

    def poll(self, seconds: float) -> Iterator[Message]:
        """Return records that arrived since the last call. Waits up to `seconds` for the first record.

        Raises:
            FatalError: a topic cannot be read, or the brokers now reject this client.
        """
        message: Any  # its position is never None, although the types allow it
        for message in next_records(self._consumer, seconds):
            error = message.error()
            place, offset = (message.topic(), message.partition()), message.offset()
            if error is None:
                self._reached[place] = offset + 1
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                self._reached[place] = offset
                self._open.discard(place)
            elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # the library looks up the coordinator of a group that it requires but nobody joins
            elif error.fatal() or not error.retriable():
                kind = ConfigError if error.code() in DENIED else FatalError
                raise kind(f"cannot read {message.topic()}: {error.str()}")
        if self._complaints is not None and (refusal := self._complaints.refusal(needed=True)):
            raise FatalError(f"kafka: {refusal}")

    def close(self) -> None:
        self._consumer.close()


def _consumer(connection: Mapping[str, Any], fetch_wait_ms: int) -> Consumer:
    return Consumer(
        {
            **connection,
            "group.id": "unused",  # required by librdkafka; nothing is committed or joined
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": fetch_wait_ms,
        }
    )
