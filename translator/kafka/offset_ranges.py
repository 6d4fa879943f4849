"""Read topics, single partitions, or offset ranges of a partition, without joining a group."""

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

# Errors that occur while a partition moves to another broker, or immediately after a topic was created.
_LEADER_MOVES = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})

Place: TypeAlias = tuple[str, int]
"""A topic and a partition number."""


class Range(Struct, frozen=True):
    """The offsets in a partition from `first` (inclusive) to `end` (exclusive).

    Some offsets have no record, because of transactions and compaction.
    """

    topic: str
    partition: int
    first: int
    end: int

    @property
    def place(self) -> Place:
        return self.topic, self.partition


class Partitions:
    """Reads the committed records in partitions.

    Args:
        group: the group whose committed offsets are requested. The group is never joined, and nothing is committed.
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
                "fetch.wait.max.ms": 50,  # many partitions are read one after another, and the end is usually near
            }
        )

    def bounds(self, topic: str, partition: int) -> Range:
        """Return the range of all records that a partition contains now.

        Raises:
            RetryableError: no broker responds for the partition.
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
        """Return the offsets at which the group would resume. Partitions without a committed offset are omitted.

        Raises:
            RetryableError: the broker cannot return them.
        """
        asked = [TopicPartition(*place) for place in places]
        try:
            answer = self._consumer.committed(asked, timeout=_TIMEOUT)
        except KafkaException as error:
            raise RetryableError(f"committed offsets: {error.args[0].str()}") from None
        return {(found.topic, found.partition): found.offset for found in answer if found.offset != OFFSET_INVALID}

    def read(self, wanted: Range) -> Iterator[Any]:
        """Yield the records in a range, in order.

        Raises:
            FatalError: the partition cannot be read.
            RetryableError: nothing arrived for a minute.
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
                    return  # the remaining offsets in the range have no records
                elif error.fatal() or not error.retriable():
                    raise FatalError(f"cannot read {wanted.topic}: {error.str()}")
            if records:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENCE:
                raise RetryableError(f"no record of {wanted.topic}/{wanted.partition} arrived for {_SILENCE:g} s")

    def close(self) -> None:
        self._consumer.close()


def narrowed(whole: Range, first: int | None, end: int | None) -> Range:
    """Return the requested part of a range.

    Raises:
        ConfigError: the requested part is not inside the range.
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
    """Yield up to this many existing records of a topic, either from one partition or from all of them in turn.

    Raises:
        ConfigError: the topic, partition or offset does not exist.
        RetryableError: no broker responds.
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
    """Yield every record that these topics contain now.

    Raises:
        FatalError: a topic cannot be read.
    """
    reader = TopicReader(client, facts)
    record: Any
    for record in reader.to_end():
        yield message_of(record, facts[record.topic()].id)
    reader.close()


def places_of(topic: str, facts: TopicFacts, partition: int | None) -> list[Place]:
    """Return a topic's partitions, or only the requested one.

    Raises:
        ConfigError: the requested partition does not exist.
    """
    if partition is not None and partition not in range(facts.partitions):
        raise ConfigError(f"topic {topic} has no partition {partition}; it has {facts.partitions}")
    return [(topic, number) for number in range(facts.partitions) if partition in (None, number)]


def message_of(record: Any, topic_id: str) -> Message:
    """Return a raw topic's record as the service reads it.

    Args:
        topic_id: the topic id that Kafka assigned. Positions refer to it.
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
