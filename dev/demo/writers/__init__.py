"""Write the shop's history in the replication tools' formats, as raw Kafka messages.

These writers share no code with the translator on purpose, because they play the sending side (docs/formats/*.md). The
messages of a table always go to one partition, as with a tool that hashes by table. The two halves of a key change
would have no order across partitions.
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
    """A message for a raw topic."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


def partition_of(table: ShopTable) -> int:
    """Return the partition for all of a table's changes."""
    return zlib.crc32(table.name.encode()) % PARTITIONS


# A Decimal becomes a bare JSON number with all of its digits, as in SharePlex.
to_json = msgspec.json.Encoder(decimal_format="number").encode


def millis(at: datetime) -> int:
    """Return a UTC time in milliseconds since the epoch."""
    return int(at.replace(tzinfo=UTC).timestamp() * 1000)


def iso(value: date | datetime, separator: str = "T") -> str:
    """Return a time as ISO text. It has a fraction only if this is not zero."""
    return value.isoformat(separator) if isinstance(value, datetime) else value.isoformat()
