"""The partition, of each topic that is written, for all that comes of a raw partition (docs/design.md §4.3)."""

from __future__ import annotations

from aiokafka.partitioner import murmur2


def output_place(topic: str, partition: int) -> int:
    """Return a number for a raw partition; modulo its partitions, it is the partition of any topic that is written.

    It is Kafka's own hash of the name of the raw topic, made positive as Kafka does, plus the number of the raw
    partition: two partitions of a topic go to different partitions wherever there are enough.
    """
    return (int(murmur2(topic.encode())) & 0x7FFFFFFF) + partition


def output_partition(topic: str, partition: int, partitions: int) -> int:
    """Return the partition, of so many, for whatever comes of a raw partition."""
    return output_place(topic, partition) % partitions
