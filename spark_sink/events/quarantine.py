"""The quarantine table contains events that could not be applied, each with the reason and the raw record."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa

from cdc_core.table_id import TableId
from cdc_core.wire_format import WRITER_SCHEMA, datum
from spark_sink.errors import Reason
from spark_sink.events.wire_format import record_bytes
from spark_sink.schema.table_naming import RESERVED

NAME = f"{RESERVED}.quarantine"

# Spark SQL type by column.
COLUMNS: Mapping[str, str] = {
    "reason": "string",
    "detail": "string",
    "event_id": "string",
    "source": "string",
    "db": "string",
    "schema": "string",
    "table": "string",
    "kafka_partition": "int",
    "kafka_offset": "bigint",
    "value": "binary",
}

ARROW = pa.schema(
    [
        *((name, pa.string()) for name in tuple(COLUMNS)[:7]),
        ("kafka_partition", pa.int32()),
        ("kafka_offset", pa.int64()),
        ("value", pa.binary()),
    ]
)


class Rejected(NamedTuple):
    """An event that cannot be applied. It has its index among the records and the reason, but no row data."""

    event: int
    reason: Reason
    detail: str


def rows(records: pa.Table, table: TableId | None, rejected: Sequence[Rejected]) -> pa.Table:
    """Return the quarantine rows for the `records` that were rejected.

    Raises:
        RawRecordMissing: the records were not sent with the events.
    """
    places = [one.event for one in rejected]
    values = record_bytes(records, places)
    taken = records.drop_columns("value").take(places)
    columns = {
        "reason": [one.reason.value for one in rejected],
        "detail": [one.detail for one in rejected],
        "event_id": [_event_id(value) for value in values],
        "kafka_partition": taken.column("partition"),
        "kafka_offset": taken.column("offset"),
        "value": values,
    }
    for name in ("source", "db", "schema", "table"):
        # Take these values from the record, because several source tables can share a table.
        columns[name] = taken.column(name) if table else [None] * len(rejected)
    return pa.table([columns[field.name] for field in ARROW], schema=ARROW)


def _event_id(value: bytes | None) -> str | None:
    event = event_in(value)
    return None if event is None else str(event["id"])


def event_in(value: bytes | None) -> dict[str, Any] | None:
    """Return the event in a record, or None if it has none."""
    body = None if value is None else datum(value)
    if body is None:
        return None
    try:
        event = fastavro.schemaless_reader(io.BytesIO(body), WRITER_SCHEMA, None)
    except Exception:
        # The event may be in quarantine because it is not Avro. fastavro's errors have no common base class.
        return None
    return event if isinstance(event, dict) else None
