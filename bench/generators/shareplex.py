"""Generate SharePlex JSON in Quest's Post format. It has only the changed columns, and the key from before the
change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bench.generators.history import Cell, StreamChange, StreamColumn, StreamTable

_CANONICAL = {
    "bigint": "int64",
    "int": "int32",
    "decimal": "decimal(12,2)",
    "text": "string",
    "datetime": "timestamp",
    "datetime3": "timestamp",
}


class SharePlexMessages:
    """One change per message."""

    dialect = "shareplex"
    unusual: Mapping[str, int] = {"moved": 19, "blank": 1}

    def options(self) -> Mapping[str, Any]:
        return {"preset": "quest"}

    def declared(self, tables: Sequence[StreamTable]) -> Sequence[Mapping[str, Any]]:
        columns = tables[0].columns
        types = {column.name: _CANONICAL[column.kind] for column in columns}
        return [{"table": "SHOP.*", "key": [columns[0].name], "columns": types}]

    def metadata(self, tables: Sequence[StreamTable]) -> Iterator[bytes]:
        yield from ()

    def write(self, change: StreamChange) -> bytes | None:
        if change.kind == "blank":
            return None
        columns, before, after = change.table.columns, change.before, change.after
        operation = {"insert": "ins", "delete": "del"}.get(change.kind, "upd")
        meta = {"op": operation, "table": f"SHOP.{change.table.name}", "time": change.at.strftime("%Y-%m-%dT%H:%M:%S")}
        message: dict[str, Any] = {"meta": meta}
        if before is not None and after is not None:
            cells = zip(columns, before, after, strict=True)
            message["data"] = {column.name: _cell(column, new) for column, old, new in cells if old != new}
            if not message["data"]:  # the new value equals the old value, but the log has the column anyway
                message["data"] = {columns[-1].name: _cell(columns[-1], after[-1])}
            message["key"] = {columns[0].name: before[0]}
        else:
            row = zip(columns, after or before or (), strict=True)
            message["data"] = {column.name: _cell(column, cell) for column, cell in row if cell is not None}
        return msgspec.json.encode(message)


def _cell(column: StreamColumn, cell: Cell) -> Any:
    """Return a cell. Numbers are JSON numbers with all digits, and times have nine fraction digits."""
    if not isinstance(cell, str):
        return cell
    if column.kind == "decimal":
        return msgspec.Raw(cell.encode())
    return (
        cell.replace(" ", "T").partition(".")[0] + f".{cell[20:]:0<9}" if column.kind.startswith("datetime") else cell
    )
