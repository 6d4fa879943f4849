"""Alibaba DTS Avro records, with both images for an update, and with the tags that a MySQL source has."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import fastavro

from bench.generators.history import StreamChange, StreamRow, StreamTable
from translator.dialects.dts_avro.schema import V3

_NUMBERS = {"bigint": 8, "int": 3, "decimal": 246, "text": 253, "datetime": 12, "datetime3": 12}
"""The MySQL type number for each kind."""
_NAMESPACE = "com.alibaba.dts.formats.avro."


def _time(cell: str) -> tuple[str, dict[str, Any]]:
    parts = dict(zip(("year", "month", "day", "hour", "minute", "second"), _numbers(cell), strict=True))
    return "DateTime", {**parts, "millis": int(cell[20:]) * 1000 if len(cell) > 19 else 0}


def _numbers(cell: str) -> Iterator[int]:
    return (int(cell[start:end]) for start, end in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19)))


_CELLS: Mapping[str, Callable[[Any], tuple[str, dict[str, Any]]]] = {
    "bigint": lambda cell: ("Integer", {"precision": 8, "value": str(cell)}),
    "int": lambda cell: ("Integer", {"precision": 4, "value": str(cell)}),
    "decimal": lambda cell: ("Decimal", {"value": cell, "precision": 12, "scale": 2}),
    "text": lambda cell: ("Character", {"charset": "utf8mb4", "value": cell.encode()}),
    "datetime": _time,
    "datetime3": _time,
}
"""The union branch and the record for each kind."""


class DtsAvroMessages:
    """One record per message, without a header."""

    dialect = "dts_avro"
    unusual: Mapping[str, int] = {"moved": 18, "ddl": 1, "blank": 1}

    def options(self) -> Mapping[str, Any]:
        return {}

    def declared(self, tables: Sequence[StreamTable]) -> Sequence[Mapping[str, Any]]:
        return ()

    def metadata(self, tables: Sequence[StreamTable]) -> Iterator[bytes]:
        yield from ()

    def write(self, change: StreamChange) -> bytes | None:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, V3, self._record(change))
        return out.getvalue()

    def _record(self, change: StreamChange) -> dict[str, Any]:
        row, at = change.before or change.after, int(change.at.timestamp())
        operations = {"insert": "INSERT", "delete": "DELETE", "ddl": "DDL", "blank": "BEGIN"}
        fields = [{"name": c.name, "dataTypeNumber": _NUMBERS[c.kind]} for c in change.table.columns]
        tags = {"readerThroughoutTime": f"{at}123", "server_id": "1921057203", "thread_id": "7"}
        if row is not None:
            tags["pk_uk_info"] = json.dumps({"PRIMARY": [change.table.columns[0].name]})
        statement = f"ALTER TABLE {change.table.name} COMMENT 'number {change.number}'"
        return {
            "version": 0,
            "id": change.number + 1,
            "sourceTimestamp": at,
            "sourcePosition": f"{change.number + 1}@7",
            "safeSourcePosition": f"{change.number + 1}@7",
            "sourceTxid": "0",
            "source": {"sourceType": "MySQL", "version": "8.0.28"},
            "operation": operations.get(change.kind, "UPDATE"),
            "objectName": None if change.kind == "blank" else "shop" if row is None else f"shop.{change.table.name}",
            "tags": tags,
            "fields": fields if row is not None else None,
            "beforeImages": _image(change.table, change.before),
            "afterImages": statement if change.kind == "ddl" else _image(change.table, change.after),
            "bornTimestamp": at,
        }


def _image(table: StreamTable, row: StreamRow | None) -> list[tuple[str, Any] | None] | None:
    if row is None:
        return None
    image: list[tuple[str, Any] | None] = []
    for column, cell in zip(table.columns, row, strict=True):
        if cell is None:
            image.append(None)
        else:
            branch, datum = _CELLS[column.kind](cell)
            image.append((_NAMESPACE + branch, datum))
    return image
