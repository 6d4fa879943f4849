"""The fields that the sink takes of the records of the canonical topic, and the records that travel for them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
from fastavro.types import Schema

from cdc_core.envelope import avro_schema

_FULL = avro_schema()

# Fields of the envelope that are taken as they are.
PLAIN_FIELDS = (
    *("kind", "op", "source", "db", "schema", "table", "pos", "pos_scope"),
    *("key", "key_old", "after", "after_state", "schema_id"),
)

# What the sink needs of an event. The decoder skips the rest, which halves its cost.
NEEDED = frozenset({"unavailable", "issues", "ts_origin_us", "ts_commit_us", "tx"}.union(PLAIN_FIELDS))


def reader_schema(*fields: str) -> Schema:
    """Return a schema for fastavro: these fields of the envelope, times as numbers."""
    whole = avro_schema(logical=False)
    return fastavro.parse_schema({**whole, "fields": [field for field in whole["fields"] if field["name"] in fields]})


def writer_schema_text() -> str:
    return json.dumps(_FULL)


def reader_schema_text(fields: Collection[str] = NEEDED) -> str:
    """The part of the envelope that has these fields."""
    return json.dumps({**_FULL, "fields": [field for field in _FULL["fields"] if field["name"] in fields]})


# Records are half of what would travel to the workers, and few tables need them: so they travel for those tables only
# that have asked.
class RawRecordMissing(Exception):
    """A table needs records that did not travel with their events: the driver runs its task again with them."""


def record_bytes(records: pa.Table, places: Sequence[int]) -> list[bytes | None]:
    """The records at these places; None for one without a value.

    Raises:
        RawRecordMissing: they did not travel.
    """
    taken = records.select(["kind", "value"]).take(pa.array(places, pa.int64()))
    values = taken.column("value")
    # What does not decode always travels: its kind is null.
    if pc.any(pc.and_(pc.is_valid(taken.column("kind")), pc.is_null(values)), min_count=0).as_py():
        raise RawRecordMissing
    return list(values.to_pylist())
