"""Read ranges of the canonical topic without Spark."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from spark_sink.errors import FatalError

_PATIENCE_SECONDS = 60.0


class TopicRecord(NamedTuple):
    """A record of the canonical topic."""

    partition: int
    offset: int
    value: bytes


def read_range(
    client_options: Mapping[str, str], topic: str, begin: Mapping[int, int], end: Mapping[int, int]
) -> Generator[TopicRecord]:
    """Yield the records that have a value, from `begin` up to, but not including, `end`. One partition follows another.

    Raises:
        FatalError: the brokers do not answer, or records in the range have been deleted.
    """
    fixed: dict[str, object] = {
        # librdkafka requires a group name, although the consumer neither joins the group nor commits.
        "group.id": "spark-sink-verify",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        # A range that begins with deleted records is an error, instead of an invitation to begin elsewhere.
        "auto.offset.reset": "error",
        "log_level": 0,
    }
    with closing(Consumer({**client_options, **fixed})) as consumer:
        for partition, first in sorted(begin.items()):
            if first < end.get(partition, first):
                consumer.assign([TopicPartition(topic, partition, first)])
                yield from _until(consumer, topic, partition, end[partition])


def _until(consumer: Consumer, topic: str, partition: int, end: int) -> Iterator[TopicRecord]:
    while True:
        message = consumer.poll(_PATIENCE_SECONDS)
        if message is None:
            raise FatalError(f"no broker sent records of {topic} within {_PATIENCE_SECONDS:g} s")
        error, offset, value = message.error(), message.offset() or 0, message.value()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                return  # only control records follow
            if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # an error that concerns the unused group
            raise FatalError(f"cannot read partition {partition} of {topic}: {error.str()}")
        if offset < end and value is not None:
            yield TopicRecord(partition, offset, value)
        if offset >= end - 1:
            return
