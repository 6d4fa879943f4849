"""Fetched records as small objects. Creating aiokafka's own objects takes as long as passing the records to the
producer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiokafka.consumer import fetcher
from msgspec import Struct


class FetchedRecord(Struct, gc=False):
    """A `RawRecord` plus its timestamp type. The record's partition is the partition of its batch."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class FetchedRecords(fetcher.PartitionRecords):  # type: ignore[misc]  # aiokafka has no types
    """One partition's records from a fetch."""

    def _consumer_record(self, tp: Any, record: Any) -> FetchedRecord:
        return FetchedRecord(
            record.offset, record.timestamp, record.timestamp_type, record.key, record.value, record.headers
        )


def make_fetched_records_small() -> None:
    """Make aiokafka create these objects in the whole process. Its class offers no other hook.

    This reduces the service's time for 290-byte SharePlex messages by a tenth.
    """
    fetcher.PartitionRecords = FetchedRecords
