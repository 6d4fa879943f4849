"""The shop's history as the replication tools would write it: raw Kafka messages.

Independent of the translator on purpose: this is the other side of the wire (docs/formats/*.md). A table always goes to
one partition, as a tool that hashes by table does, because a key change has no order between two partitions.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import UTC, date, datetime

import msgspec

from dev.demo.shop import ShopTable

PARTITIONS = 2


@dataclass(frozen=True)
class Raw:
    """One message for a raw topic."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


def partition_of(table: ShopTable) -> int:
    """The partition of all changes of a table."""
    return zlib.crc32(table.name.encode()) % PARTITIONS


# a Decimal is written as a bare JSON number with all its digits, as SharePlex does
to_json = msgspec.json.Encoder(decimal_format="number").encode


def millis(at: datetime) -> int:
    """Milliseconds since the epoch of a UTC time."""
    return int(at.replace(tzinfo=UTC).timestamp() * 1000)


def iso(value: date | datetime, separator: str = "T") -> str:
    """ISO text; a time shows its fraction only when it has one."""
    return value.isoformat(separator) if isinstance(value, datetime) else value.isoformat()
