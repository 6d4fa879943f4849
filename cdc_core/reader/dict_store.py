"""An in-memory row store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdc_core.reader.change import RowKey, RowValues
from cdc_core.reader.kept_row import KeptRow
from cdc_core.table_id import TableId


class DictStore:
    """A store that keeps rows in dictionaries. `rows(table)` returns the rows of a table."""

    def __init__(self) -> None:
        self._kept: dict[TableId, dict[RowKey, KeptRow]] = {}
        self._floors: dict[tuple[TableId, str], str] = {}

    def tables(self) -> list[TableId]:
        """Return the tables that have, or had, a row."""
        return [*self._kept]

    def rows(self, table: TableId) -> dict[RowKey, RowValues]:
        """Return the existing rows, by key."""
        return {key: row.values for key, row in self._kept.get(table, {}).items() if row.values is not None}

    def incomplete(self, table: TableId) -> set[RowKey]:
        """Return the keys of the rows that have an unknown column."""
        return {key for key, row in self._kept.get(table, {}).items() if row.values is not None and row.incomplete}

    def load(self, table: TableId, key: RowKey) -> KeptRow | None:
        return self._kept.get(table, {}).get(key)

    def store(self, table: TableId, key: RowKey, row: KeptRow, types: Mapping[str, str]) -> None:
        self._kept.setdefault(table, {})[key] = row

    def keys(self, table: TableId) -> Iterator[RowKey]:
        return iter(self._kept.get(table, {}))

    def clear(self, table: TableId) -> None:
        for row in self._kept.get(table, {}).values():
            row.values, row.incomplete = None, False

    def floor(self, table: TableId, scope: str) -> str:
        return self._floors.get((table, scope), "")

    def set_floor(self, table: TableId, scope: str, pos: str) -> None:
        self._floors[table, scope] = pos
