"""Stopped partitions. Mark the message at which a partition stops. It must not be written and must not be skipped, so
no later message is processed.

The stop itself needs no state, because the next process reads the same message and stops again. The mark in the
metadata topic only informs `translator status`.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from translator.codecs.record import Record
from translator.message import Message
from translator.state.state_record import state_record

PREFIX = "!stopped/"
"""Key prefix for stops in the metadata topic. Source names cannot contain `!`, so the prefix never collides."""


class PartitionStop(Struct, frozen=True):
    """The message at which a raw partition is stopped, and the reason."""

    source: str
    topic: str
    topic_id: str
    partition: int
    offset: int
    code: str
    reason: str

    def stands(self, topic_id: str, committed: int | None) -> bool:
        """Return whether the group has not passed the message yet.

        Args:
            topic_id: the id of the topic that exists now.
            committed: the offset at which the group resumes, or None if the group has committed nothing.
        """
        return self.topic_id == topic_id and (committed is None or committed <= self.offset)


class PartitionStopped(Exception):
    """This message must not be processed, and neither must any later one in its partition. Nothing from this message
    was written.
    """

    def __init__(self, stop: PartitionStop) -> None:
        super().__init__(stop.reason)
        self.stop = stop

    @classmethod
    def at(cls, source: str, message: Message, code: str, reason: str) -> PartitionStopped:
        """Return the exception for a message."""
        place = message.topic, message.topic_id, message.partition, message.offset
        return cls(PartitionStop(source, *place, code, reason))


def stop_record(stop: PartitionStop) -> Record:
    """Return the record that marks a stop. A later record replaces it."""
    return state_record(f"{PREFIX}{stop.topic}/{stop.partition}", msgspec.json.encode(stop))


def stop_of(key: str, document: bytes) -> PartitionStop | None:
    """Return the stop that a record in the metadata topic marks, or None for other records."""
    return msgspec.json.decode(document, type=PartitionStop) if key.startswith(PREFIX) else None
