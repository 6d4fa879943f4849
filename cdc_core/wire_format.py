"""Read a record value from the canonical topic: a header, followed by the event (docs/envelope.md).

A value begins in one of three ways: with the header of Avro's single-object encoding, which contains the schema's
fingerprint, with Confluent's header, which contains the schema's registry id, or with a JSON brace. This module never
queries a registry. Whatever the id, the datum is a version 1 envelope if its first field, `v`, is 1. Within a version,
new fields are added only at the end. A reader therefore ignores the new fields of a newer record. An older record ends
early, and the decoder reports this.
"""

from __future__ import annotations

import io
from typing import Any, Final

import fastavro
import msgspec
from fastavro.types import Schema

from cdc_core.envelope import ChangeEvent, avro_schema

MARKER: Final = b"\xc3\x01"
FINGERPRINT: Final = bytes.fromhex(
    fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(avro_schema()), "CRC-64-AVRO")
)
SINGLE_OBJECT: Final = MARKER + FINGERPRINT
CONFLUENT: Final = b"\x00"
CONFLUENT_SIZE: Final = 5  # followed by the id
JSON: Final = b"{"
_V1 = b"\x02"  # the number 1, encoded in Avro

# Times are read as plain integers. Logical types do not change the encoding, but would create datetimes. Both schemas
# have the same canonical form and therefore the same fingerprint.
WRITER_SCHEMA = fastavro.parse_schema(avro_schema(logical=False))

# The datum in a record value, as a SQL expression over the column `value`. The result is null if the value is not a
# version 1 envelope.
DATUM_SQL = f"""
    case
        when startswith(value, x'{SINGLE_OBJECT.hex()}') then substring(value, {len(SINGLE_OBJECT) + 1})
        when startswith(value, x'{CONFLUENT.hex()}') and substring(value, {CONFLUENT_SIZE + 1}, 1) = x'{_V1.hex()}'
            then substring(value, {CONFLUENT_SIZE + 1})
    end
"""

IMAGES = ("key", "key_old", "before", "after")
"""The fields whose values are JSON text in an event. In the JSON format, these values are objects."""

_MAY_BE_MISSING = [field["name"] for field in avro_schema()["fields"] if isinstance(field["type"], list)]
_NULL = msgspec.Raw(b"null")


def datum(value: bytes) -> bytes | None:
    """Return the datum in a record value, as DATUM_SQL does in Spark."""
    if value.startswith(SINGLE_OBJECT):
        return value[len(SINGLE_OBJECT) :]
    if value.startswith(CONFLUENT) and value.startswith(_V1, CONFLUENT_SIZE):
        return value[CONFLUENT_SIZE:]
    return None


def event_of_datum(body: io.BytesIO, writer: Schema | None = None) -> ChangeEvent:
    """Read the event at the start of a datum. Any remaining bytes stay in `body`.

    Args:
        writer: the schema with which the datum was written, if it differs from this release's schema.

    Raises:
        ValueError: the datum does not have this envelope version.
    """
    try:
        fields: Any = fastavro.schemaless_reader(body, writer or WRITER_SCHEMA, writer and WRITER_SCHEMA)
        return msgspec.convert(fields, ChangeEvent)
    except EOFError:
        raise ValueError("the datum is truncated") from None


def event_of_json(value: bytes) -> ChangeEvent:
    """Read an event in the JSON format. Nullable fields may be missing.

    Raises:
        msgspec.DecodeError: the value is not this envelope.
    """
    fields = dict.fromkeys(_MAY_BE_MISSING, _NULL) | msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    for name in IMAGES:
        raw = bytes(fields[name])
        if raw != b"null":
            fields[name] = msgspec.Raw(msgspec.json.encode(raw.decode()))
    return msgspec.json.decode(msgspec.json.encode(fields), type=ChangeEvent)
