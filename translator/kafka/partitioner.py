"""Choose the partition of each output topic that receives everything from a raw partition (docs/design.md §4.3)."""

from __future__ import annotations

from functools import cache

from aiokafka.partitioner import murmur2


def output_place(topic: str, partition: int) -> int:
    """Return a number for a raw partition. Modulo the number of partitions in an output topic, this number gives the
    partition.

    The number is Kafka's hash of the raw topic's name, made positive as in Kafka, plus the number of the raw partition.
    If an output topic has enough partitions, the partitions of a raw topic therefore map to different ones.
    """
    return _hash(topic) + partition


@cache
def _hash(topic: str) -> int:
    return int(murmur2(topic.encode())) & 0x7FFFFFFF


def output_partition(topic: str, partition: int, partitions: int) -> int:
    """Return the output partition for a raw partition, in a topic that has `partitions` partitions."""
    return output_place(topic, partition) % partitions
