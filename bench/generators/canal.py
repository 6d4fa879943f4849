"""Canal flat messages, each with one row, and with the changed columns in `old`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bench.generators.history import Cell, StreamChange, StreamTable

_TYPES = {
    "bigint": ("bigint", -5),
    "int": ("int", 4),
    "decimal": ("decimal(12,2)", 3),
    "text": ("varchar(255)", 12),
    "datetime": ("datetime", 93),
    "datetime3": ("datetime(3)", 93),
}
"""The MySQL type and JDBC number for each kind."""


class CanalMessages:
    """Messages in the format of open-source canal."""

    dialect = "canal"
    unusual: Mapping[str, int] = {"moved": 18, "ddl": 1, "blank": 1}

    def options(self) -> Mapping[str, Any]:
        return {"profile": "oss"}

    def declared(self, tables: Sequence[StreamTable]) -> Sequence[Mapping[str, Any]]:
        return ()

    def metadata(self, tables: Sequence[StreamTable]) -> Iterator[bytes]:
        yield from ()

    def write(self, change: StreamChange) -> bytes | None:
        if change.kind == "blank":
            return None
        return msgspec.json.encode(self._statement(change) if change.kind == "ddl" else self._row(change))

    def old(self, before: Mapping[str, Cell], after: Mapping[str, Cell]) -> dict[str, Cell]:
        """Return an update's old values."""
        return {name: value for name, value in before.items() if value != after[name]}

    def _row(self, change: StreamChange) -> dict[str, Any]:
        columns = change.table.columns
        images = [
            None if row is None else {c.name: _text(cell) for c, cell in zip(columns, row, strict=True)}
            for row in (change.before, change.after)
        ]
        before, after = images
        old = None if before is None or after is None else [self.old(before, after)]
        return {
            "data": [after or before],
            **self._head(change),
            "isDdl": False,
            "mysqlType": {column.name: _TYPES[column.kind][0] for column in columns},
            "old": old,
            "pkNames": [columns[0].name],
            "sql": "",
            "sqlType": {column.name: _TYPES[column.kind][1] for column in columns},
            "type": {"insert": "INSERT", "delete": "DELETE"}.get(change.kind, "UPDATE"),
        }

    def _statement(self, change: StreamChange) -> dict[str, Any]:
        sql = f"ALTER TABLE `{change.table.name}` COMMENT 'number {change.number}'"
        rows = dict.fromkeys(("data", "mysqlType", "old", "pkNames", "sqlType"))
        return {**rows, **self._head(change), "isDdl": True, "sql": sql, "type": "ALTER"}

    @staticmethod
    def _head(change: StreamChange) -> dict[str, Any]:
        es = int(change.at.timestamp()) * 1000
        return {"database": "shop", "table": change.table.name, "es": es, "id": change.number + 1, "ts": es + 217}


class CheckedCanalMessages(CanalMessages):
    """Messages in Alibaba's DTS format, with all columns in `old`. The continuity check compares these columns with
    earlier rows.
    """

    def options(self) -> Mapping[str, Any]:
        return {"profile": "dts"}

    def old(self, before: Mapping[str, Cell], after: Mapping[str, Cell]) -> dict[str, Cell]:
        return dict(before)


def _text(cell: Cell) -> str | None:
    return None if cell is None else str(cell)
