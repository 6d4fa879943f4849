"""The first bytes of a record of the canonical topic, and the Avro schemas to read it with.

It begins with the header of Avro's single-object encoding, which holds the fingerprint of the schema, or with that of
Confluent, which holds the id of the schema in a registry. The sink asks no registry: whatever the id, the datum is an
envelope of version 1 if its first field, `v`, says so, and within a version the envelope only grows at its end. So a
newer record is read without its new fields, and an older one ends too early, which the decoder tells.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
from fastavro.types import Schema

from cdc_core.envelope import avro_schema

_FULL = avro_schema()
WRITER_SCHEMA = fastavro.parse_schema(avro_schema(logical=False))

_SINGLE_OBJECT = b"\xc3\x01" + bytes.fromhex(
    fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(_FULL), "CRC-64-AVRO")
)
_CONFLUENT = b"\x00"
_CONFLUENT_SIZE = 5  # with the id
_V1 = b"\x02"  # the number 1 in Avro

# The datum in a record value, as SQL over the column `value`; null where it is no envelope of version 1.
DATUM_SQL = f"""
    case
        when startswith(value, x'{_SINGLE_OBJECT.hex()}') then substring(value, {len(_SINGLE_OBJECT) + 1})
        when startswith(value, x'{_CONFLUENT.hex()}') and substring(value, {_CONFLUENT_SIZE + 1}, 1) = x'{_V1.hex()}'
            then substring(value, {_CONFLUENT_SIZE + 1})
    end
"""

# Fields of the envelope that are taken as they are.
PLAIN_FIELDS = (
    *("kind", "op", "source", "db", "schema", "table", "pos", "pos_scope"),
    *("key", "key_old", "after", "after_state", "schema_id"),
)

# What the sink needs of an event. The decoder skips the rest, which halves its cost.
NEEDED = frozenset({"unavailable", "issues", "ts_origin_us", "ts_commit_us"}.union(PLAIN_FIELDS))


def datum(value: bytes) -> bytes | None:
    """Return what DATUM_SQL gives, without Spark."""
    if value.startswith(_SINGLE_OBJECT):
        return value[len(_SINGLE_OBJECT) :]
    if value.startswith(_CONFLUENT) and value.startswith(_V1, _CONFLUENT_SIZE):
        return value[_CONFLUENT_SIZE:]
    return None


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
