"""Decode the fields of canonical records that the sink reads, and access the raw records."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
from fastavro.types import Schema

from cdc_core.envelope import avro_schema

_FULL = avro_schema()

# Envelope fields that are used unchanged.
PLAIN_FIELDS = (
    *("kind", "op", "source", "db", "schema", "table", "pos", "pos_scope"),
    *("key", "key_old", "after", "after_state", "schema_id"),
)

# The event fields that the sink needs. The decoder skips all other fields, which halves the cost of decoding.
NEEDED = frozenset({"unavailable", "issues", "ts_origin_us", "ts_commit_us", "tx"}.union(PLAIN_FIELDS))


def reader_schema(*fields: str) -> Schema:
    """Return a fastavro schema with these envelope fields, and with times as numbers."""
    whole = avro_schema(logical=False)
    return fastavro.parse_schema({**whole, "fields": [field for field in whole["fields"] if field["name"] in fields]})


def writer_schema_text() -> str:
    return json.dumps(_FULL)


def reader_schema_text(fields: Collection[str] = NEEDED) -> str:
    """Return the part of the envelope schema with these fields, as text."""
    return json.dumps({**_FULL, "fields": [field for field in _FULL["fields"] if field["name"] in fields]})


# Raw records make up half of the data sent to the workers, and few tables need these records. Therefore, raw records
# are only sent along for the tables that requested them.
class RawRecordMissing(Exception):
    """A table needs raw records that were not sent with its events. The driver runs the table's task again with the raw
    records.
    """


def record_bytes(records: pa.Table, places: Sequence[int]) -> list[bytes | None]:
    """Return the records at these indexes, or None for a record without a value.

    Raises:
        RawRecordMissing: the raw records were not sent along.
    """
    taken = records.select(["kind", "value"]).take(pa.array(places, pa.int64()))
    values = taken.column("value")
    # A record that cannot be decoded, whose kind is null, is always sent along.
    if pc.any(pc.and_(pc.is_valid(taken.column("kind")), pc.is_null(values)), min_count=0).as_py():
        raise RawRecordMissing
    return list(values.to_pylist())
