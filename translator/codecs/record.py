"""What every codec shares: the Kafka record of an event, its key and its headers (design section 4)."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from translator.envelope import ChangeEvent

Headers = list[tuple[str, str | bytes | None]]


class Record(NamedTuple):
    """Bytes for Kafka, without topic and partition."""

    key: bytes | None
    value: bytes | None
    headers: Headers


def record_key(event: ChangeEvent) -> bytes:
    """Compact JSON `[source,db,schema,table,{key}]`; without the last member when no key is known."""
    parts: list[object] = [event.source, event.db, event.schema, event.table]
    if event.key is not None:
        parts.append(msgspec.Raw(event.key.encode()))
    return msgspec.json.encode(parts)


def record_headers(event: ChangeEvent) -> Headers:
    """Headers for filtering without decoding; a header whose field is null is left out."""
    table = ".".join(part for part in (event.db, event.schema, event.table) if part)
    headers = [
        ("cdc-kind", event.kind),
        ("cdc-op", event.op),
        ("cdc-table", table or None),
        ("cdc-source", event.source),
        ("cdc-id", event.id),
        ("cdc-schema-id", event.schema_id),
    ]
    return [(name, text.encode()) for name, text in headers if text is not None]


RECORD_OVERHEAD = 512
"""More than a record batch with one record costs beside its key, value and headers."""


def record_size(record: Record) -> int:
    """An upper bound for the bytes that a record takes in a batch of its own, before compression."""
    headers = sum(len(name) + len(value or b"") + 10 for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + RECORD_OVERHEAD
