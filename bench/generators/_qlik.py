"""Share the parts that Qlik Replicate messages in JSON and Avro have in common: metadata, headers and masks."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from bench.generators.history import StreamChange, StreamTable

_TYPES = {  # type, length, precision, scale
    "bigint": ("INT8", 0, 0, 0),
    "int": ("INT4", 0, 0, 0),
    "decimal": ("NUMERIC", 0, 12, 2),
    "text": ("STRING", 255, 0, 0),
    "datetime": ("DATETIME", 0, 0, 0),
    "datetime3": ("DATETIME", 0, 0, 3),
}

OPERATIONS = {"insert": "INSERT", "delete": "DELETE", "update": "UPDATE", "moved": "UPDATE"}
UNUSUAL = {"moved": 19, "blank": 1}


def schema_id(table: StreamTable) -> str:
    """Return the metadata ID that a table's messages refer to."""
    return hashlib.md5(table.name.encode(), usedforsecurity=False).hexdigest().upper()


def metadata(table: StreamTable, data_schema: str) -> bytes:
    """Return a table's metadata message."""
    columns = {}
    for ordinal, column in enumerate(table.columns, 1):
        kind, length, precision, scale = _TYPES[column.kind]
        columns[column.name] = {
            "ordinal": ordinal,
            "type": kind,
            "length": length,
            "precision": precision,
            "scale": scale,
            "primaryKeyPosition": int(ordinal == 1),
            "nullable": ordinal != 1,
        }
    lineage = {"server": "replicate-01", "task": "bench", "schema": "SHOP", "table": table.name, "tableVersion": 1}
    message = {
        "schemaId": schema_id(table),
        "lineage": {**lineage, "timestamp": "2026-01-05T08:00:00.000"},
        "tableStructure": {"tableColumns": columns},
        "dataSchema": data_schema,
    }
    return msgspec.json.encode(enveloped("MD", schema_id(table), "{}", message))


def enveloped(kind: str, id_: str, schema: str | None, message: Any) -> dict[str, Any]:
    """Return a message in Replicate's envelope."""
    head = {"magic": "atMSG", "type": kind, "headers": None, "messageSchemaId": id_, "messageSchema": schema}
    return {**head, "message": message}


def headers(change: StreamChange) -> dict[str, Any]:
    """Return the headers for a change, with masks as numbers."""
    number = change.number + 1
    return {
        "operation": OPERATIONS[change.kind],
        "changeSequence": f"{change.at:%Y%m%d%H%M%S}00{number:019d}",
        "timestamp": change.at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{change.at.microsecond // 1000:03d}",
        "streamPosition": f"log.000001:{number}",
        "transactionId": f"{number:032X}",
        "changeMask": _changed(change),
        "columnMask": (1 << len(change.table.columns)) - 1,
        "transactionEventCounter": 1,
        "transactionLastEvent": True,
    }


def mask_bytes(change: StreamChange) -> int:
    """Return a mask's length, including the additional leading byte that real messages have."""
    return len(change.table.columns) // 8 + 1


def _changed(change: StreamChange) -> int:
    count = len(change.table.columns)
    if change.kind == "insert":
        return (1 << count) - 1
    if change.before is None or change.after is None:
        return 1
    cells = enumerate(zip(change.before, change.after, strict=True))
    return sum(1 << place for place, (old, new) in cells if old != new)
