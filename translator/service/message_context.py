"""Convert raw records from the consumer library to messages with their context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from translator.message import Message
from translator.resolution.resolve import OutputTopic
from translator.service.delivery.base import Batch
from translator.service.metrics import BatchAccount
from translator.translation.translate import Translator


class RawRecord(Protocol):
    """The part of the consumer library's record that we use."""

    @property
    def offset(self) -> int: ...

    @property
    def timestamp(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


class MessageContext(Struct, frozen=True, gc=False):
    """A message with its context in the pipeline."""

    message: Message
    translator: Translator
    batch: Batch
    place: int
    """The raw partition's `output_place`."""

    @property
    def partition(self) -> tuple[str, int]:
        """The raw partition."""
        return self.message.topic, self.message.partition

    def partition_in(self, to: OutputTopic) -> int:
        """Return the partition of a topic that receives all output from the message."""
        return self.place % to.partitions


def raw_bytes(records: Sequence[RawRecord]) -> int:
    """Return the size of a batch's keys and values, in bytes."""
    return sum(len(record.key or b"") + len(record.value or b"") for record in records)


def account_of(source: str, topic: str, partition: int, records: Sequence[RawRecord]) -> BatchAccount:
    """Return a batch's account before any of its messages is processed."""
    account = BatchAccount(source, topic, partition)
    account_for(account, records)
    return account


def account_for(account: BatchAccount, records: Sequence[RawRecord]) -> None:
    """Set the records in a batch."""
    account.records = len(records)
    if records:
        account.next_offset = records[-1].offset + 1
        account.newest_record_ms = _timestamp(records[-1])
        account.middle_record_ms = _timestamp(records[len(records) // 2])


def _timestamp(record: RawRecord) -> int | None:
    return record.timestamp if record.timestamp > 0 else None


def message_of(record: RawRecord | Any, topic: str, partition: int, topic_id: str) -> Message:
    """Return a raw record as a message."""
    return Message(
        topic, partition, record.offset, record.timestamp, record.key, record.value, tuple(record.headers), topic_id
    )


def place_of(message: Message) -> dict[str, Any]:
    """Return a message's position as fields for a log line."""
    return {"topic": message.topic, "partition": message.partition, "offset": message.offset}
