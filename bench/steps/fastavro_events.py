"""Encode events with other libraries, to compare their time in benchmarks and their bytes in tests."""

from __future__ import annotations

import io

import fastavro
import msgspec

from cdc_core.envelope import ChangeEvent, avro_schema

_SCHEMA = fastavro.parse_schema(avro_schema(logical=False))


def fastavro_datum(event: ChangeEvent, header: bytes) -> bytes:
    """Encode an event like `encode_datum`, but with fastavro. This library needs mappings instead of records."""
    fields = msgspec.structs.asdict(event)
    fields["origin"] = msgspec.structs.asdict(event.origin)
    if event.tx is not None:
        fields["tx"] = msgspec.structs.asdict(event.tx)
    if event.ddl is not None:
        fields["ddl"] = msgspec.structs.asdict(event.ddl)
    if event.issues is not None:
        fields["issues"] = [msgspec.structs.asdict(issue) for issue in event.issues]
    out = io.BytesIO()
    out.write(header)
    fastavro.schemaless_writer(out, _SCHEMA, fields)
    return out.getvalue()
