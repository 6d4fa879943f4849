"""The records of a fetch as small objects: what aiokafka makes of each costs as much as handing it to the producer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiokafka.consumer import fetcher
from msgspec import Struct


class FetchedRecord(Struct, gc=False):
    """A `RawRecord`, and the meaning of its time; its partition is the batch's."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class FetchedRecords(fetcher.PartitionRecords):  # type: ignore[misc]  # aiokafka has no types
    """The records of one partition in a fetch."""

    def _consumer_record(self, tp: Any, record: Any) -> FetchedRecord:
        return FetchedRecord(
            record.offset, record.timestamp, record.timestamp_type, record.key, record.value, record.headers
        )


def make_fetched_records_small() -> None:
    """Let aiokafka make these in place of its own, in this whole process: its class has no other door.

    SharePlex messages of 290 bytes cost the service a tenth less so.
    """
    fetcher.PartitionRecords = FetchedRecords
