"""Qlik Replicate's enveloped Avro. The metadata that a message refers to has the rows' `dataSchema`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro

from bench.generators import _qlik
from bench.generators.history import StreamChange, StreamColumn, StreamRow, StreamTable

_AVRO: Mapping[str, Any] = {
    "bigint": "long",
    "int": "int",
    "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    "text": "string",
    "datetime": {"type": "long", "logicalType": "timestamp-micros"},
    "datetime3": {"type": "long", "logicalType": "timestamp-micros"},
}
_OPERATIONS = ["INSERT", "UPDATE", "DELETE", "REFRESH"]


def _record(name: str, fields: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


_HEADERS = _record(
    "Headers",
    [
        ("operation", {"type": "enum", "name": "operation", "symbols": _OPERATIONS}),
        *((name, "string") for name in ("changeSequence", "timestamp", "streamPosition", "transactionId")),
        ("changeMask", ["null", "bytes"]),
        ("columnMask", ["null", "bytes"]),
        ("transactionEventCounter", ["null", "long"]),
        ("transactionLastEvent", ["null", "boolean"]),
    ],
)
ENVELOPE_SCHEMA = _record(
    "MessageEnvelope",
    [
        ("magic", {"type": "fixed", "name": "Magic", "size": 5}),
        ("type", "string"),
        ("headers", ["null", {"type": "map", "values": "string"}]),
        ("messageSchemaId", ["null", "string"]),
        ("messageSchema", ["null", "string"]),
        ("message", "bytes"),
    ],
)
"""The schema that all messages have."""
_ENVELOPE = fastavro.parse_schema(ENVELOPE_SCHEMA)


def _micros(cell: Any) -> datetime:
    return datetime.fromisoformat(cell).replace(tzinfo=UTC)


_CELLS: Mapping[str, Callable[[Any], Any]] = {"decimal": Decimal, "datetime": _micros, "datetime3": _micros}
"""Return the Python value for fastavro, if it differs from the cell."""


class QlikAvroMessages:
    """One row per message, together with the state of the row before the change."""

    dialect = "qlik"
    unusual: Mapping[str, int] = _qlik.UNUSUAL

    def __init__(self) -> None:
        self._schemas: dict[tuple[StreamColumn, ...], Any] = {}

    def options(self) -> Mapping[str, Any]:
        return {}

    def declared(self, tables: Sequence[StreamTable]) -> Sequence[Mapping[str, Any]]:
        return ()

    def metadata(self, tables: Sequence[StreamTable]) -> Iterator[bytes]:
        return (_qlik.metadata(table, json.dumps(data_schema(table.columns))) for table in tables)

    def write(self, change: StreamChange) -> bytes | None:
        if change.kind == "blank":
            return None
        columns, length = change.table.columns, _qlik.mask_bytes(change)
        headers = _qlik.headers(change)
        masks = {name: headers[name].to_bytes(length, "big") for name in ("changeMask", "columnMask")}
        updates = change.before is not None and change.after is not None
        record = {
            "data": _row(columns, change.after or change.before or []),
            "beforeData": _row(columns, change.before or []) if updates else None,
            "headers": {**headers, **masks},
        }
        inner = _written(self._schema(columns), record)
        envelope = _qlik.enveloped("DT", _qlik.schema_id(change.table), None, inner)
        return _written(_ENVELOPE, {**envelope, "magic": b"atMSG"})

    def _schema(self, columns: tuple[StreamColumn, ...]) -> Any:
        if columns not in self._schemas:
            self._schemas[columns] = fastavro.parse_schema(data_schema(columns))
        return self._schemas[columns]


def data_schema(columns: Sequence[StreamColumn]) -> dict[str, Any]:
    """Return the Avro schema for a table's messages."""
    row = _record("Data", [(column.name, ["null", _AVRO[column.kind]]) for column in columns])
    return _record("DataRecord", [("data", row), ("beforeData", ["null", "Data"]), ("headers", _HEADERS)])


def _row(columns: Sequence[StreamColumn], row: StreamRow) -> dict[str, Any]:
    return {
        column.name: _CELLS[column.kind](cell) if cell is not None and column.kind in _CELLS else cell
        for column, cell in zip(columns, row, strict=True)
    }


def _written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()
