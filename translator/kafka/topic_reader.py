"""Topics from the beginning to their end, and what comes afterwards: compacted topics, dead letters. No group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from translator.errors import ConfigError, FatalError
from translator.kafka.admin import DENIED, SOON_SECONDS, TopicFacts
from translator.kafka.client_errors import ClientErrors


def next_records(consumer: Consumer, seconds: float) -> list[Any]:
    """Return the records and ends of partitions that are there, at most a thousand; wait so long for the first.

    `Consumer.consume` alone waits its whole time for that many records, even when the end was reached.
    """
    first = consumer.poll(seconds)
    return [] if first is None else [first, *consumer.consume(999, 0)]


class TopicReader:
    """A reader of whole topics.

    Args:
        after: where to begin instead, for partitions of which a former reader has `reached` that offset.
        follows: whether it goes on reading behind the end: the broker is asked less often then, from `to_end` on.
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
        # The broker tells the end of a partition after that time: who only wants the end wants it soon.
        self._consumer = _consumer(connection, fetch_wait_ms=50)
        self._reached: dict[tuple[str, int], int] = {**(after or {})}
        self._open = {(name, number) for name, topic in facts.items() for number in range(topic.partitions)}
        begin = after or {}
        # Before anything is assigned: a consumer that does not know the leaders by then asks for the first offsets half
        # a second later (librdkafka 2.16). A small topic took 0.51 s to read, and takes 0.03 s.
        self._ends = {place: self._end(*place) for place in self._open}
        self._consumer.assign(
            [TopicPartition(*place, begin.get(place, OFFSET_BEGINNING)) for place in sorted(self._open)]
        )

    def to_end(self) -> Iterator[Message]:
        """Give every record that there was when the reader was made, and perhaps some that come meanwhile."""
        while self._open:
            yield from self.poll(0.1)
            # Of a partition that is written without a pause, the library never reports the end. One that is empty must
            # have answered, too: we may have no right to read it.
            self._open = {place for place in self._open if self._reached.get(place, -1) < self._ends[place]}
        if self._follows:
            self._go_on()

    def _go_on(self) -> None:
        """Read on where the end was, without asking the broker all the time."""
        before, self._consumer = self._consumer, _consumer(self._connection, fetch_wait_ms=500)
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in sorted(self._reached.items())])
        before.close()
        self._follows = False

    def _end(self, topic: str, partition: int) -> float:
        """The end of a partition now; infinite where its leader cannot say, and the end is to be met."""
        try:
            return self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=SOON_SECONDS)[1]
        except KafkaException:
            return math.inf

    def next_offset(self, topic: str, partition: int) -> int:
        """Return the offset of the next record of a partition that comes."""
        return self._reached.get((topic, partition), 0)

    def poll(self, seconds: float) -> Iterator[Message]:
        """Records that came since; waits at most that long for the first.

        Raises:
            FatalError: a topic cannot be read, or brokers refuse us by now.
        """
        message: Any  # what it says of its place is never None, whatever its types say
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
                continue  # the library asks for the coordinator of the group that it insists on and nobody joins
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
            "group.id": "unused",  # librdkafka wants a name; nothing is committed and nothing is joined
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": fetch_wait_ms,
        }
    )
