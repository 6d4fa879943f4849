"""Read a few records of each topic. They are the oldest and the newest, because writers change over the years."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from translator.kafka.admin import TopicFacts
from translator.kafka.offset_ranges import Partitions, Range, message_of
from translator.message import Message


def samples(
    client: Mapping[str, Any], facts: Mapping[str, TopicFacts], count: int
) -> Iterator[tuple[str, list[Message]]]:
    """Yield each topic with about the requested number of records. Half come from the beginning of its partitions, and
    half from the end.

    Raises:
        RetryableError: no broker responds.
        FatalError: a topic cannot be read.
    """
    partitions = Partitions(client, "unused")  # nothing is committed or joined
    try:
        for topic, known in facts.items():
            share = max(1, count // known.partitions // 2)
            yield (
                topic,
                [
                    message_of(record, known.id)
                    for number in range(known.partitions)
                    for part in _parts(partitions.bounds(topic, number), share)
                    for record in partitions.read(part)
                ],
            )
    finally:
        partitions.close()


def _parts(whole: Range, share: int) -> Iterable[Range]:
    if whole.end - whole.first <= 2 * share:
        return [whole]
    first = Range(whole.topic, whole.partition, whole.first, whole.first + share)
    return [first, Range(whole.topic, whole.partition, whole.end - share, whole.end)]
