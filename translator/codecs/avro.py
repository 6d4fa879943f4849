"""Avro single-object encoding: C3 01, the fingerprint of the schema, the datum. Works without a registry."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import msgspec

from translator.codecs.record import Record, record_headers, record_key
from translator.envelope import ChangeEvent, avro_schema

MARKER = b"\xc3\x01"
# Times are written as the plain integers that they are: the logical types change nothing on the wire, and without
# them no datetime is made on either side. Both schemas have one canonical form, so one fingerprint.
_SCHEMA = fastavro.parse_schema(avro_schema(logical=False))
FINGERPRINT = bytes.fromhex(
    fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(avro_schema()), "CRC-64-AVRO")
)
HEADER = MARKER + FINGERPRINT


class AvroCodec:
    """The default codec."""

    name = "avro"

    def encode(self, event: ChangeEvent) -> list[Record]:
        out = io.BytesIO()
        out.write(HEADER)
        fastavro.schemaless_writer(out, _SCHEMA, _mapping(event))
        return [Record(record_key(event), out.getvalue(), record_headers(event))]

    def decode(self, value: bytes) -> ChangeEvent:
        """The event in a record value.

        Raises:
            ValueError: not single-object Avro of this envelope version.
        """
        if value[: len(HEADER)] != HEADER:
            raise ValueError(f"expected the Avro single-object header {HEADER.hex()}, got {value[:10].hex()}")
        body = io.BytesIO(value[len(HEADER) :])
        try:
            datum = fastavro.schemaless_reader(body, _SCHEMA, None)
        except EOFError:
            raise ValueError("the datum ends too early") from None
        if body.read(1):
            raise ValueError("there are bytes after the datum")
        return msgspec.convert(datum, ChangeEvent)


def _mapping(event: ChangeEvent) -> dict[str, Any]:
    fields = msgspec.structs.asdict(event)
    fields["origin"] = msgspec.structs.asdict(event.origin)
    if event.tx is not None:
        fields["tx"] = msgspec.structs.asdict(event.tx)
    if event.ddl is not None:
        fields["ddl"] = msgspec.structs.asdict(event.ddl)
    if event.issues is not None:
        fields["issues"] = [msgspec.structs.asdict(issue) for issue in event.issues]
    return fields
