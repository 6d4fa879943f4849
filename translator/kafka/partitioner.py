"""Choose the partition in each output topic that receives all output from a raw partition (docs/design.md §4.3)."""

from __future__ import annotations

from functools import cache

from aiokafka.partitioner import murmur2


def output_place(topic: str, partition: int) -> int:
    """Return a number for a raw partition. That number modulo a topic's partition count is the partition in that output
    topic.

    The number is Kafka's hash of the raw topic name, made positive as in Kafka, plus the raw partition number. The
    partitions of a raw topic therefore map to different partitions of an output topic that has enough partitions.
    """
    return _hash(topic) + partition


@cache
def _hash(topic: str) -> int:
    return int(murmur2(topic.encode())) & 0x7FFFFFFF


def output_partition(topic: str, partition: int, partitions: int) -> int:
    """Return the output partition for a raw partition, in a topic that has `partitions` partitions."""
    return output_place(topic, partition) % partitions
