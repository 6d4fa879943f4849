"""If a dead letter does not contain the original message, for example because it was too large, read the message from
its topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from translator.kafka.admin import TopicAdmin
from translator.kafka.offset_ranges import Partitions, Range, message_of
from translator.message import Message
from translator.operations.dlq.reader import StoredLetter

_NEAR = 1_000
"""Maximum number of offsets to read through between two dead letters. Seeking takes about as long as reading this many
offsets.
"""


def with_messages(
    letters: Sequence[StoredLetter], topics: TopicAdmin, client: Mapping[str, Any], group: str
) -> list[StoredLetter]:
    """Return the dead letters, with the messages that still exist at their origin.

    Raises:
        FatalError: a raw topic cannot be read.
        RetryableError: no broker responds for a raw topic.
    """
    lacking = [found.letter.message for found in letters if found.letter.body_bytes is not None and not found.replayed]
    if not lacking:
        return [*letters]
    ids = topics.ids({message.topic for message in lacking})
    here = [message for message in lacking if ids.get(message.topic) == message.topic_id]
    partitions = Partitions(client, group)
    try:
        origins = {_place(message): message for message in _read(partitions, here)}
    finally:
        partitions.close()
    return [_completed(found, origins.get(_place(found.letter.message))) for found in letters]


def _place(message: Message) -> tuple[str, str, int, int]:
    return message.topic, message.topic_id, message.partition, message.offset


def _completed(found: StoredLetter, origin: Message | None) -> StoredLetter:
    if found.letter.body_bytes is None or origin is None or len(origin.value or b"") != found.letter.body_bytes:
        return found
    letter = msgspec.structs.replace(found.letter, message=origin, body_bytes=None)
    return msgspec.structs.replace(found, letter=letter)


def _read(partitions: Partitions, wanted: Iterable[Message]) -> Iterator[Message]:
    """Read the records at these positions, if they exist."""
    by_partition = sorted({_place(message) for message in wanted})
    for (topic, topic_id, partition), places in groupby(by_partition, key=lambda place: place[:3]):
        there = partitions.bounds(topic, partition)
        offsets = [offset for *_, offset in places if there.first <= offset < there.end]
        for first, end in _spans(offsets):
            for record in partitions.read(Range(topic, partition, first, end)):
                yield message_of(record, topic_id)


def _spans(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return ranges over ascending offsets, without long gaps."""
    begin = 0
    for place, offset in enumerate(offsets):
        if place + 1 == len(offsets) or offsets[place + 1] - offset > _NEAR:
            yield offsets[begin], offset + 1
            begin = place + 1
