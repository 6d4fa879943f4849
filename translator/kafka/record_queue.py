"""Queue records in a producer, and keep their outcomes by topic and partition.

Most records need no callback of their own. It is enough to know how many records of a partition were delivered. The
broker accepts the records of an idempotent producer only in order, so this number also says which ones. With the
extension, queueing such a record needs no call in Python, and neither does its delivery report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer, cimpl

from translator._native import absence
from translator.codecs.record import Record

DROPPED = frozenset((KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT))
"""Codes of records that were not delivered although nothing is wrong with them: another record in their transaction
failed, or the producer is stopping. librdkafka can report them before the record that failed.
"""


class Outcome(NamedTuple):
    """The outcome of a partition's records."""

    delivered: int
    """The number of records that were delivered before the first error."""
    error: KafkaError | None
    """The first error."""


class Failure(NamedTuple):
    """A producer's first error."""

    topic: str
    error: KafkaError


class RecordQueue(Protocol):
    """The queue of one producer, for records without a callback."""

    def offer(self, topic: str, partition: int, records: list[Record]) -> int:
        """Queue records in order until the queue is full. Returns the number of queued records.

        Raises:
            KafkaException: the producer has failed permanently.
        """
        ...

    def outcome(self, topic: str, partition: int) -> Outcome:
        """Return the outcome of the partition's records so far."""
        ...

    def failure(self) -> Failure | None:
        """Return the first error, apart from records that were dropped because of another error."""
        ...


class PlainQueue:
    """Uses confluent-kafka alone. The outcomes change while the producer is polled."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._delivered: dict[tuple[str, int], int] = {}
        self._errors: dict[tuple[str, int], KafkaError] = {}
        self._failure: Failure | None = None

    def offer(self, topic: str, partition: int, records: list[Record]) -> int:
        """Do the same as `RecordQueue.offer`."""
        for number, record in enumerate(records):
            if not produce(self._producer, topic, partition, record, self._report):
                return number
        return len(records)

    def _report(self, error: KafkaError | None, message: Any) -> None:
        place = message.topic(), message.partition()
        if error is None and place not in self._errors:
            self._delivered[place] = self._delivered.get(place, 0) + 1
        elif error is not None:
            self._errors.setdefault(place, error)
            if error.code() not in DROPPED:
                self._failure = self._failure or Failure(place[0], error)

    def outcome(self, topic: str, partition: int) -> Outcome:
        """Do the same as `RecordQueue.outcome`."""
        return Outcome(self._delivered.get((topic, partition), 0), self._errors.get((topic, partition)))

    def failure(self) -> Failure | None:
        """Do the same as `RecordQueue.failure`."""
        return self._failure


class NativeQueue:
    """Uses the extension. The outcomes change in librdkafka's threads.

    Args:
        queue: the extension's part.
    """

    def __init__(self, producer: Producer, queue: Any) -> None:
        self._producer = producer
        self._queue = queue

    def offer(self, topic: str, partition: int, records: list[Record]) -> int:
        """Do the same as `RecordQueue.offer`."""
        queued: int = self._queue.offer(topic, partition, records)
        # The extension does not say why it stopped. confluent-kafka knows whether the queue is full, or what is wrong.
        if queued < len(records) and produce(self._producer, topic, partition, records[queued]):
            return queued + 1
        return queued

    def outcome(self, topic: str, partition: int) -> Outcome:
        """Do the same as `RecordQueue.outcome`."""
        delivered, code = self._queue.outcome(topic, partition)
        return Outcome(delivered, None if code is None else KafkaError(code))

    def failure(self) -> Failure | None:
        """Do the same as `RecordQueue.failure`."""
        found = self._queue.failure()
        return None if found is None else Failure(found[0], KafkaError(found[1]))


def produce(producer: Producer, topic: str, partition: int, record: Record, report: Any = None) -> bool:
    """Queue one record. Returns False while the producer's queue is full.

    Raises:
        KafkaException: the producer has failed permanently.
    """
    try:
        producer.produce(topic, record.value, record.key, partition, on_delivery=report, headers=record.headers)
    except BufferError:
        return False
    return True


def open_producer(config: Mapping[str, Any]) -> tuple[Producer, RecordQueue]:
    """Return a producer with these librdkafka settings, and its queue."""
    native = _open_natively(config)
    if native is not None:
        return native
    producer = Producer(dict(config))
    return producer, PlainQueue(producer)


def _open_natively(config: Mapping[str, Any]) -> tuple[Producer, RecordQueue] | None:
    """Return a producer that knows the extension as a plugin, or None if the extension or plugins are not available."""
    if absence() is not None:
        return None
    from translator._native import rows

    # librdkafka separates the paths of plugins with semicolons.
    if ";" in rows.__file__ or not rows.ProducerQueue.load(cimpl.__file__):
        return None
    try:
        producer = Producer({**config, "plugin.library.paths": rows.__file__})
    except KafkaException:  # also if another setting is wrong, which the second attempt reports
        return None
    queue = rows.ProducerQueue.created()
    return None if queue is None else (producer, NativeQueue(producer, queue))
