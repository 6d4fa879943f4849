"""Topics and parts of them, single partitions from one offset to another, read without joining a group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition
from msgspec import Struct

from translator.config.settings import Settings
from translator.errors import ConfigError, FatalError, RetryableError
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin, TopicFacts
from translator.kafka.topic_reader import TopicReader, next_records
from translator.message import Message

_TIMEOUT = 20.0
_SILENCE = 60.0
_PAUSE = 0.1

# Said in the moment in which another broker takes a partition over, and of a topic that was made just now.
_LEADER_MOVES = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})

Place: TypeAlias = tuple[str, int]
"""A topic and the number of a partition."""


class Range(Struct, frozen=True):
    """The offsets of a partition from `first` up to, and without, `end`.

    Not every offset holds a record: transactions and compaction leave gaps.
    """

    topic: str
    partition: int
    first: int
    end: int

    @property
    def place(self) -> Place:
        return self.topic, self.partition


class Partitions:
    """Reads partitions as a reader of committed records.

    Args:
        group: whose committed offsets are asked for; it is never joined, and nothing is committed.
    """

    def __init__(self, connection: Mapping[str, Any], group: str) -> None:
        self._consumer = Consumer(
            {
                **connection,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,  # many partitions are read one after the other, and most ends are near
            }
        )

    def bounds(self, topic: str, partition: int) -> Range:
        """All that a partition holds now.

        Raises:
            RetryableError: no broker answers for it.
        """
        deadline = time.monotonic() + _TIMEOUT
        while True:
            try:
                low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_TIMEOUT)
            except KafkaException as error:
                if error.args[0].code() not in _LEADER_MOVES or time.monotonic() > deadline:
                    raise RetryableError(f"offsets of {topic}/{partition}: {error.args[0].str()}") from None
            else:
                return Range(topic, partition, low, high)
            time.sleep(_PAUSE)

    def committed(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offsets at which the group would go on; a partition of which it has committed nothing is missing.

        Raises:
            RetryableError: the broker cannot say.
        """
        asked = [TopicPartition(*place) for place in places]
        try:
            answer = self._consumer.committed(asked, timeout=_TIMEOUT)
        except KafkaException as error:
            raise RetryableError(f"committed offsets: {error.args[0].str()}") from None
        return {(found.topic, found.partition): found.offset for found in answer if found.offset != OFFSET_INVALID}

    def read(self, wanted: Range) -> Iterator[Any]:
        """The records of a range, in order.

        Raises:
            FatalError: the partition cannot be read.
            RetryableError: nothing came for a minute.
        """
        if wanted.first >= wanted.end:
            return
        self._consumer.assign([TopicPartition(wanted.topic, wanted.partition, wanted.first)])
        heard = time.monotonic()
        while True:
            records = next_records(self._consumer, 1.0)
            for record in records:
                error = record.error()
                if error is None:
                    if record.offset() < wanted.end:
                        yield record
                    if record.offset() >= wanted.end - 1:
                        return
                elif error.code() == KafkaError._PARTITION_EOF:
                    return  # what is left of the range are gaps
                elif error.fatal() or not error.retriable():
                    raise FatalError(f"cannot read {wanted.topic}: {error.str()}")
            if records:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENCE:
                raise RetryableError(f"nothing came of {wanted.topic}/{wanted.partition} for {_SILENCE:g} s")

    def close(self) -> None:
        self._consumer.close()


def narrowed(whole: Range, first: int | None, end: int | None) -> Range:
    """The part of a range that somebody asked for.

    Raises:
        ConfigError: it does not lie inside.
    """
    begin = whole.first if first is None else first
    stop = whole.end if end is None else end
    place = f"{whole.topic}/{whole.partition}"
    for absent, border in ((begin, begin), (stop - 1, stop)):
        if not whole.first <= border <= whole.end:
            raise ConfigError(f"{place} has no offset {absent}; {_there(whole)}")
    if begin > stop:
        raise ConfigError(f"offsets {begin} to {stop} of {place}: the end is before the beginning")
    return Range(whole.topic, whole.partition, begin, stop)


def _there(whole: Range) -> str:
    if whole.first == whole.end:
        return f"it is empty, and the next record will have offset {whole.end}"
    return f"it has {whole.first} to {whole.end - 1}"


def records_of(
    settings: Settings,
    topic: str,
    partition: int | None,
    first: int | None,
    end: int | None,
    count: int,
    say: Callable[[str], None],
) -> Iterator[Message]:
    """So many records of a topic that are there now: of one partition, or of one after the other.

    Raises:
        ConfigError: a topic, a partition or an offset that is not there.
        RetryableError: no broker answers.
        FatalError: the topic cannot be read.
    """
    client = client_config.librdkafka(settings.kafka)
    topics = TopicAdmin(client)
    topics.wait_for_broker(settings.timing.broker_wait, say)
    facts = topics.describe([topic])[topic]
    partitions = Partitions(client, settings.group)
    try:
        for place in places_of(topic, facts, partition):
            for record in partitions.read(narrowed(partitions.bounds(*place), first, end)):
                yield message_of(record, facts.id)
                count -= 1
                if not count:
                    return
    finally:
        partitions.close()


def messages_of(client: Mapping[str, Any], facts: Mapping[str, TopicFacts]) -> Iterator[Message]:
    """Every record that these topics hold now.

    Raises:
        FatalError: a topic cannot be read.
    """
    reader = TopicReader(client, facts)
    record: Any
    for record in reader.to_end():
        yield message_of(record, facts[record.topic()].id)
    reader.close()


def places_of(topic: str, facts: TopicFacts, partition: int | None) -> list[Place]:
    """The partitions of a topic, or the one that is asked for.

    Raises:
        ConfigError: it is not there.
    """
    if partition is not None and partition not in range(facts.partitions):
        raise ConfigError(f"topic {topic} has no partition {partition}; it has {facts.partitions}")
    return [(topic, number) for number in range(facts.partitions) if partition in (None, number)]


def message_of(record: Any, topic_id: str) -> Message:
    """A record of a raw topic as the service reads it.

    Args:
        topic_id: Kafka's id of the topic, which positions name.
    """
    return Message(
        record.topic(),
        record.partition(),
        record.offset(),
        record.timestamp()[1],
        record.key(),
        record.value(),
        tuple(record.headers() or ()),
        topic_id,
    )
