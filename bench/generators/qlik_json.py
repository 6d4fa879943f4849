"""Qlik Replicate's enveloped JSON, with metadata in a separate topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bench.generators import _qlik
from bench.generators.history import Cell, StreamChange, StreamColumn, StreamRow, StreamTable


class QlikJsonMessages:
    """One row per message, together with the row's state before the change."""

    dialect = "qlik"
    unusual: Mapping[str, int] = _qlik.UNUSUAL

    def options(self) -> Mapping[str, Any]:
        return {}

    def declared(self, tables: Sequence[StreamTable]) -> Sequence[Mapping[str, Any]]:
        return ()

    def metadata(self, tables: Sequence[StreamTable]) -> Iterator[bytes]:
        return (_qlik.metadata(table, "{}") for table in tables)

    def write(self, change: StreamChange) -> bytes | None:
        if change.kind == "blank":
            return None
        headers, width = _qlik.headers(change), 2 * _qlik.mask_bytes(change)
        masks = {name: f"{headers[name]:0{width}X}" for name in ("changeMask", "columnMask")}
        updates = change.before is not None and change.after is not None
        message = {
            "data": _row(change.table.columns, change.after or change.before or []),
            "beforeData": _row(change.table.columns, change.before or []) if updates else None,
            "headers": {**headers, **masks},
        }
        return msgspec.json.encode(_qlik.enveloped("DT", _qlik.schema_id(change.table), None, message))


def _row(columns: Sequence[StreamColumn], row: StreamRow) -> dict[str, Cell]:
    return {column.name: _cell(column, cell) for column, cell in zip(columns, row, strict=True)}


def _cell(column: StreamColumn, cell: Cell) -> Cell:
    return cell.replace(" ", "T") if isinstance(cell, str) and column.kind.startswith("datetime") else cell
