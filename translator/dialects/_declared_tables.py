"""Find tables whose columns or key the operator has declared (a source's `tables:`)."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from cdc_core.envelope import Column, TableSchema
from translator.errors import ConfigError
from translator.message import DeclaredTable, TableName
from translator.values import converter

_TABLES_CACHED = 4096
"""Maximum number of tables to cache, because table names come from messages."""


class DeclaredTables:
    """Finds the declaration of a table. It is the first one whose pattern matches the table's name.

    Raises:
        ConfigError: a declaration has an unknown type, or a key column that is missing from its columns.
    """

    def __init__(self, source: str, tables: Sequence[DeclaredTable]) -> None:
        self._source = source
        self._tables = tuple(tables)
        self._found: dict[TableName, tuple[DeclaredTable | None, TableSchema | None]] = {}
        for declared in self._tables:
            _check(declared)

    def find(self, table: TableName) -> tuple[DeclaredTable | None, TableSchema | None]:
        """Return the table's declaration. If it lists columns, also return the schema with these columns."""
        found = self._found.get(table)
        if found is None:
            if len(self._found) >= _TABLES_CACHED:
                self._found.clear()
            found = self._found[table] = self._look_up(table)
        return found

    def _look_up(self, table: TableName) -> tuple[DeclaredTable | None, TableSchema | None]:
        name = ".".join(part for part in (table.db, table.schema, table.table) if part)
        for declared in self._tables:
            if fnmatch.fnmatchcase(name, declared.table.replace("[", "[[]")):  # only * and ? are special
                return declared, self._schema(table, declared)
        return None, None

    def _schema(self, table: TableName, declared: DeclaredTable) -> TableSchema | None:
        if declared.columns is None:
            return None
        columns = [
            Column(name, type_, key=declared.key.index(name) + 1 if name in declared.key else None)
            for name, type_ in declared.columns.items()
        ]
        kind = "configured" if declared.key else "none"
        return TableSchema.of(self._source, table.db, table.schema, table.table, columns, kind)


def _check(declared: DeclaredTable) -> None:
    if len(set(declared.key)) < len(declared.key):
        raise ConfigError(f"tables: {declared.table}: key lists a column more than once: {', '.join(declared.key)}")
    if declared.columns is None:
        return
    if not declared.columns:
        raise ConfigError(f"tables: {declared.table}: columns is empty; omit it to declare only the key")
    for name, type_ in declared.columns.items():
        try:
            converter(type_)
        except ValueError as error:
            raise ConfigError(f"tables: {declared.table}: column {name}: {error}") from None
    missing = [name for name in declared.key if name not in declared.columns]
    if missing:
        raise ConfigError(f"tables: {declared.table}: key column {missing[0]} is missing from columns")
