"""The idempotent producer: its settings, and its errors in our words and classes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Producer

from translator.codecs.record import RECORD_OVERHEAD, Record
from translator.config.settings import Bounds
from translator.errors import FatalError

DEFAULT_BOUNDS = Bounds()
NEVER = 0.0
"""As `delivery_seconds`: the producer never gives a record up."""

Report = Callable[[KafkaError | None, Any], None]
"""The report about one record, as librdkafka gives it: an error or None, and the record with its place."""

NOT_ACKNOWLEDGED = (
    "not acknowledged within timing.delivery: no broker for its partition, or "
    "fewer replicas in sync than its min.insync.replicas"
)
# What to say of an error beside the library's own words, which name neither our setting nor what to look at.
_CAUSES: Mapping[int, str] = {
    KafkaError._MSG_TIMED_OUT: NOT_ACKNOWLEDGED,
    KafkaError._UNKNOWN_TOPIC: "the topic is gone",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "the topic is gone",
    KafkaError._UNKNOWN_PARTITION: "the topic has fewer partitions than at the start",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the user may not write there",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the user may not write as an idempotent producer",
}


def producer_config(
    connection: Mapping[str, Any], delivery_seconds: float, limits: Collection[int], bounds: Bounds = DEFAULT_BOUNDS
) -> dict[str, Any]:
    """Return the settings of the idempotent producer (facts: docs/decisions/0001-delivery.md).

    Args:
        delivery_seconds: after which the producer drops a record. What it was handed later it still sends: only who
            writes nothing after an error may let it drop some.
        bounds: of its queue; whatever they are, one record of the largest size has room.
        limits: `max.message.bytes` of the topics that are written. The broker applies it to a whole batch, and the
            producer has one size of batches for all topics: the smallest limit sets it. A record that is larger than
            that travels alone, up to the largest.
    """
    return {
        **connection,
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 10,
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
    """Return why a record could not be written to a topic, and what to look at."""
    cause = _CAUSES.get(error.code())
    return f"cannot write to {topic}: {error.str()}" + (f" ({cause})" if cause else "")


class RecordProducer:
    """A producer of librdkafka. Its reports come in while `poll` is called, in the thread that calls."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a producer with these settings of librdkafka."""
        return cls(Producer(dict(config)))

    def __len__(self) -> int:
        """Return the number of records whose reports have not been taken."""
        return len(self._producer)

    def offer(self, topic: str, partition: int, record: Record, report: Report) -> bool:
        """Hand a record over; False while the queue of the producer is full.

        Raises:
            FatalError: the producer has given up for good.
        """
        try:
            self._producer.produce(
                topic, record.value, record.key, partition, on_delivery=report, headers=record.headers
            )
        except BufferError:
            return False
        except KafkaException as error:
            raise self._fatal(error) from None
        return True

    def poll(self, seconds: float = 0) -> int:
        """Let reports come in, and return how many did.

        Raises:
            FatalError: the producer has given up for good. Any poll may be the one that is told.
        """
        try:
            return self._producer.poll(seconds)
        except KafkaException as error:
            raise self._fatal(error) from None

    def flush(self) -> int:
        """Return when every report has come in, with the number of records that have none."""
        return self._producer.flush()

    def purge(self) -> None:
        """Drop what was not sent yet."""
        self._producer.purge()

    def _fatal(self, error: KafkaException) -> FatalError:
        return FatalError(f"delivery failed: {error.args[0].str()}")
