"""How a record of the canonical topic begins (Avro single-object encoding), and the Avro schemas to read it with."""

from __future__ import annotations

import json

import fastavro

from translator.envelope import avro_schema

_FULL = avro_schema()
WRITER_SCHEMA = fastavro.parse_schema(avro_schema(logical=False))

HEADER = b"\xc3\x01" + bytes.fromhex(
    fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(_FULL), "CRC-64-AVRO")
)

# Fields of the envelope that are taken as they are.
PLAIN_FIELDS = (
    *("kind", "op", "source", "db", "schema", "table", "pos", "pos_scope"),
    *("key", "key_old", "after", "after_state", "schema_id"),
)

# What the sink needs of an event. The decoder skips the rest, which halves its cost.
_NEEDED = frozenset({"unavailable", "issues"}.union(PLAIN_FIELDS))


def writer_schema_text() -> str:
    return json.dumps(_FULL)


def reader_schema_text() -> str:
    """The part of the envelope that the sink reads."""
    return json.dumps({**_FULL, "fields": [field for field in _FULL["fields"] if field["name"] in _NEEDED]})
