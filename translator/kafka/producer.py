"""The idempotent producer: its settings, and the conversion of its errors to this project's error classes and
wording.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Producer

from translator.codecs.record import RECORD_OVERHEAD, Record
from translator.config.settings import Bounds, LatencySettings
from translator.errors import FatalError
from translator.kafka.record_queue import Failure, Outcome, PlainQueue, RecordQueue, open_producer, produce

DEFAULT_BOUNDS = Bounds()
DEFAULT_LATENCY = LatencySettings()
NEVER = 0.0
"""Value for `delivery_seconds`: the producer never drops a record."""

Report = Callable[[KafkaError | None, Any], None]
"""A record's delivery report from librdkafka: an error or None, and the record with its position."""

NOT_ACKNOWLEDGED = (
    "not acknowledged within timing.delivery: no broker is available for its partition, or "
    "fewer than min.insync.replicas replicas are in sync"
)
# Explanations to add to the library's error texts, which mention neither our settings nor what to check.
_CAUSES: Mapping[int, str] = {
    KafkaError._MSG_TIMED_OUT: NOT_ACKNOWLEDGED,
    KafkaError._UNKNOWN_TOPIC: "the topic no longer exists",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "the topic no longer exists",
    KafkaError._UNKNOWN_PARTITION: "the topic has fewer partitions than at startup",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "this user is not allowed to write to it",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "this user is not allowed to write as an idempotent producer",
}


def producer_config(
    connection: Mapping[str, Any],
    delivery_seconds: float,
    limits: Collection[int],
    bounds: Bounds = DEFAULT_BOUNDS,
    linger_ms: int = DEFAULT_LATENCY.linger_ms,
) -> dict[str, Any]:
    """Return the idempotent producer's settings (see docs/decisions/0001-delivery.md).

    Args:
        delivery_seconds: time after which the producer drops a record. The producer still sends records that were
            queued later, so dropping is safe only if nothing is written after an error.
        bounds: the limits for the producer's queue, which always has room for one record of maximum size.
        limits: each output topic's `max.message.bytes`. The broker applies it to whole batches, but the producer has
            one batch size for all topics, so the smallest limit applies. A larger record is sent alone, up to the
            largest limit.
        linger_ms: how long records for a partition are collected before they are sent.
    """
    return {
        **connection,
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": linger_ms,
        "batch.size": min(1_000_000, min(limits) - RECORD_OVERHEAD),
        "batch.num.messages": 10_000,
        "compression.type": "lz4",
        "queue.buffering.max.messages": bounds.events,
        "queue.buffering.max.kbytes": max(bounds.bytes, 2 * max(limits)) // 1024,
        "delivery.timeout.ms": int(delivery_seconds * 1000),
        "partitioner": "murmur2_random",
        "message.max.bytes": max(limits),
    }


def write_failure(topic: str, error: KafkaError) -> str:
    """Return why a record could not be written to a topic, and what to check."""
    cause = _CAUSES.get(error.code())
    return f"cannot write to {topic}: {error.str()}" + (f" ({cause})" if cause else "")


class RecordProducer:
    """A librdkafka producer. Delivery reports arrive during `poll`, in the calling thread.

    Args:
        queue: the queue for records without a callback.
    """

    def __init__(self, producer: Producer, queue: RecordQueue | None = None) -> None:
        self._producer = producer
        self._queue = queue or PlainQueue(producer)
        self._queued: dict[tuple[str, int], int] = {}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a producer with these librdkafka settings."""
        return cls(*open_producer(config))

    def __len__(self) -> int:
        """Return the number of records whose reports have not been processed."""
        return len(self._producer)

    def offer(self, topic: str, partition: int, record: Record, report: Report) -> bool:
        """Queue a record with a callback. Returns False while the producer's queue is full.

        Raises:
            FatalError: the producer has failed permanently.
        """
        try:
            return produce(self._producer, topic, partition, record, report)
        except KafkaException as error:
            raise self._fatal(error) from None

    def offer_run(self, topic: str, partition: int, records: list[Record]) -> tuple[int, int]:
        """Queue records without a callback, in order, until the producer's queue is full.

        Returns how many of the records were queued, and the number of all records queued in this way for the
        partition. Once `outcome` says that this many were delivered, all of them were.

        Raises:
            FatalError: the producer has failed permanently.
        """
        try:
            queued = self._queue.offer(topic, partition, records)
        except KafkaException as error:
            raise self._fatal(error) from None
        place = topic, partition
        total = self._queued[place] = self._queued.get(place, 0) + queued
        return queued, total

    def outcome(self, topic: str, partition: int) -> Outcome:
        """Return the outcome of the partition's records that have no callback."""
        return self._queue.outcome(topic, partition)

    def failure(self) -> Failure | None:
        """Return the first error of a record that has no callback."""
        return self._queue.failure()

    def poll(self, seconds: float = 0) -> int:
        """Process reports and return their number.

        Raises:
            FatalError: the producer has failed permanently. Any poll may be the first call that detects this.
        """
        try:
            return self._producer.poll(seconds)
        except KafkaException as error:
            raise self._fatal(error) from None

    def flush(self) -> int:
        """Wait for all reports, and return the number of records that have none."""
        return self._producer.flush()

    def purge(self) -> None:
        """Drop everything that has not been sent yet."""
        self._producer.purge()

    def _fatal(self, error: KafkaException) -> FatalError:
        return FatalError(f"delivery failed: {error.args[0].str()}")
