"""Write Qlik Replicate's enveloped JSON, with metadata messages in a topic of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from dev.demo.shop import ShopChange, ShopTable
from dev.demo.writers import Raw, iso, partition_of, to_json

_QLIK_TYPES: Mapping[str, tuple[str, int, int]] = {  # type, precision, scale
    "bigint": ("INT8", 0, 0),
    "int": ("INT4", 0, 0),
    "decimal": ("NUMERIC", 14, 2),
    "varchar": ("STRING", 0, 0),
    "datetime": ("DATETIME", 0, 6),
    "date": ("DATE", 0, 0),
    "double": ("REAL8", 0, 0),
    "blob": ("BYTES", 0, 0),
}


def _qlik_cell(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, date):
        return iso(value)
    return str(value) if isinstance(value, Decimal) else value


@dataclass
class QlikWriter:
    """Enveloped Qlik Replicate messages. A table's metadata is written before its first row."""

    topic: str
    metadata_topic: str
    schema: str = "SHOP"
    _ids: dict[ShopTable, str] = field(default_factory=dict)
    _number: int = 0

    def write(self, change: ShopChange) -> Iterator[Raw]:
        """Return the messages for a change. Nothing but new metadata reports a change of structure."""
        if change.table not in self._ids:
            yield self._metadata(change.table)
        if change.op == "add_column":
            return
        self._number += 1
        load = change.op == "load"
        operation = {"load": "REFRESH", "insert": "INSERT", "update": "UPDATE", "delete": "DELETE"}[change.op]
        row = change.before if change.op == "delete" else change.after
        columns = [column.name for column in change.table.columns]
        message = {
            "data": {name: _qlik_cell((row or {})[name]) for name in columns},
            "beforeData": None,
            "headers": {
                "operation": operation,
                "changeSequence": "" if load else f"{change.at:%Y%m%d%H%M%S}00{self._number:019d}",
                "timestamp": "" if load else change.at.isoformat(timespec="milliseconds"),
                "streamPosition": "" if load else f"log.000001:{self._number}",
                "transactionId": "" if load else f"{self._number:032X}",
                "changeMask": None if load else self._change_mask(change),
                "columnMask": None if load else _mask(range(1, len(columns) + 1), len(columns)),
                "transactionEventCounter": None if load else 1,
                "transactionLastEvent": None if load else True,
            },
        }
        if change.op == "update" and change.before is not None:
            message["beforeData"] = {name: _qlik_cell(change.before[name]) for name in columns}
        envelope = self._envelope("DT", self._ids[change.table], None, message)
        yield Raw(self.topic, partition_of(change.table), None, to_json(envelope))

    def _change_mask(self, change: ShopChange) -> str:
        names = [column.name for column in change.table.columns]
        before, after = change.before or {}, change.after or {}
        changed = [n for n, name in enumerate(names, 1) if before.get(name) != after.get(name)]
        if change.op == "delete":
            changed = [names.index(name) + 1 for name in change.table.key]
        elif change.op == "insert":
            changed = list(range(1, len(names) + 1))
        return _mask(changed, len(names))

    def _metadata(self, table: ShopTable) -> Raw:
        schema_id = hashlib.md5(repr(table).encode(), usedforsecurity=False).hexdigest().upper()
        self._ids[table] = schema_id
        version = sum(known.name == table.name for known in self._ids)
        columns = {}
        for ordinal, column in enumerate(table.columns, 1):
            kind, precision, scale = _QLIK_TYPES[column.kind]
            key = table.key.index(column.name) + 1 if column.name in table.key else 0
            columns[column.name] = {
                "ordinal": ordinal,
                "type": kind,
                "length": 100 if kind == "STRING" else 0,
                "precision": precision,
                "scale": scale,
                "primaryKeyPosition": key,
                "nullable": key == 0,
            }
        lineage = {
            "server": "replicate-01",
            "task": "shop-to-kafka",
            "schema": self.schema,
            "table": table.name,
            "tableVersion": version,
            "timestamp": "2026-01-05T08:00:00.000",
        }
        message = {
            "schemaId": schema_id,
            "lineage": lineage,
            "tableStructure": {"tableColumns": columns},
            "dataSchema": "{}",
        }
        envelope = self._envelope("MD", schema_id, "{}", message)
        return Raw(self.metadata_topic, 0, schema_id.encode(), to_json(envelope))

    @staticmethod
    def _envelope(kind: str, schema_id: str, schema: str | None, message: Any) -> dict[str, Any]:
        return {
            "magic": "atMSG",
            "type": kind,
            "headers": None,
            "messageSchemaId": schema_id,
            "messageSchema": schema,
            "message": message,
        }


def _mask(ordinals: Any, count: int) -> str:
    """Return the mask as hex, with the most significant byte first and the additional leading byte that real messages
    have.
    """
    bits = sum(1 << (ordinal - 1) for ordinal in ordinals)
    return f"{bits:0{2 * (count // 8 + 1)}X}"
