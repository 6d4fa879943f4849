"""Compare the rows of a database with the rows of a lakehouse, cell by cell.

Both sides become Python values by the column's type at the source. The database prints text and bytes in hexadecimal
digits, so that no client changes them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from dev.servers.mariadb import MariaDb
from tests.spark_sink.commit_markers import is_iceberg

Cells = dict[str, Any]
Rows = dict[tuple[Any, ...], Cells]
"""Rows by key."""


@dataclass(frozen=True)
class Kind:
    """How the cells of a type are read.

    Args:
        select: the SQL expression for a cell.
        of_database: converts its text.
        of_table: converts a lakehouse cell.
    """

    select: str
    of_database: Callable[[str], Any]
    of_table: Callable[[Any], Any]


def _single(cell: Any) -> bytes:
    return struct.pack("<f", float(cell))


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _unhex(text: str) -> str:
    return bytes.fromhex(text).decode()


_PLAIN = "{}"
_TEXT = Kind("HEX(CONVERT({} USING utf8mb4))", _unhex, str)
_BYTES = Kind("HEX({})", bytes.fromhex, bytes)
_INTEGER = Kind("{} + 0", int, int)
_GEOMETRY = Kind("HEX(ST_AsWKB({}))", bytes.fromhex, bytes)

KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"), _INTEGER),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"), _TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _BYTES),
    **dict.fromkeys(("point", "linestring", "geometry"), _GEOMETRY),
    "decimal": Kind(_PLAIN, Decimal, lambda cell: Decimal(str(cell))),
    "float": Kind("CAST({} AS DOUBLE)", _single, _single),
    "double": Kind(_PLAIN, float, float),
    "date": Kind(_PLAIN, date.fromisoformat, lambda cell: cell),
    "datetime": Kind(_PLAIN, datetime.fromisoformat, lambda cell: cell),
    "timestamp": Kind(_PLAIN, _instant, lambda cell: cell),
    "time": Kind(_PLAIN, str, str),
}
"""All types of the workload. The database runs in UTC."""

_ZERO_DATE = "0000-00-00"
"""MariaDB can store this date, but Python cannot, so it stays text."""


def _source_cell(kind: Kind, text: str) -> Any:
    if text == "NULL":
        return None
    return text if text.startswith(_ZERO_DATE) else kind.of_database(text)


@dataclass(frozen=True)
class Table:
    """A table of the database: the type of each column, and its key."""

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]


@dataclass
class Difference:
    """How a lakehouse table differs from its source. Empty if it does not.

    Args:
        missing: keys that only the source has.
        extra: keys that only the lakehouse has.
        cells: columns that differ, by key.
        incomplete: keys of the rows that the sink marked as incomplete.
    """

    missing: set[tuple[Any, ...]] = field(default_factory=set)
    extra: set[tuple[Any, ...]] = field(default_factory=set)
    cells: dict[tuple[Any, ...], set[str]] = field(default_factory=dict)
    incomplete: set[tuple[Any, ...]] = field(default_factory=set)


def tables_of(database: MariaDb, keys: Mapping[str, tuple[str, ...]]) -> list[Table]:
    """Return all tables of the workload.

    Args:
        keys: the keys of tables without a primary key.
    """
    columns: dict[str, dict[str, str]] = {}
    primary: dict[str, list[str]] = {}
    for name, column, kind, key in database.run(_COLUMNS):
        columns.setdefault(name, {})[column] = kind
        if key == "PRI":
            primary.setdefault(name, []).append(column)
    return [Table(name, types, tuple(primary.get(name, keys.get(name, ())))) for name, types in columns.items()]


_COLUMNS = """
SELECT CONCAT(table_schema, '.', table_name), column_name, data_type, column_key
FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_type = 'BASE TABLE'
  AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
ORDER BY table_schema, table_name, ordinal_position;
"""


def source_rows(database: MariaDb, table: Table) -> Rows:
    """Return the rows that `SELECT` on the database finds."""
    kinds = [KINDS[kind] for kind in table.columns.values()]
    cells = ", ".join(kind.select.format(f"`{name}`") for name, kind in zip(table.columns, kinds, strict=True))
    rows: Rows = {}
    for texts in database.run(f"SELECT {cells} FROM {table.name};"):
        row = {name: _source_cell(kind, text) for name, kind, text in zip(table.columns, kinds, texts, strict=True)}
        rows[tuple(row[name] for name in table.key)] = row
    return rows


def lakehouse_rows(warehouse: Path, table: Table) -> tuple[Rows, set[tuple[Any, ...]]]:
    """Return the rows of a mirror, and the keys of those that are incomplete."""
    folder = warehouse / Path(*f"shop_{table.name}".split("."))
    found = StaticTable.from_metadata(str(folder)).scan().to_arrow() if is_iceberg(folder) else _delta(folder)
    kinds = {name: KINDS[kind] for name, kind in table.columns.items() if name in found.column_names}
    rows: Rows = {}
    incomplete = set()
    for cells in found.to_pylist():
        row = {name: None if cells[name] is None else kind.of_table(cells[name]) for name, kind in kinds.items()}
        key = tuple(row[name] for name in table.key)
        assert key not in rows, f"{table.name}: two rows with one key"
        rows[key] = row
        if cells["_cdc_incomplete"]:
            incomplete.add(key)
    return rows, incomplete


def _delta(folder: Path) -> Any:
    return DeltaTable(str(folder)).to_pyarrow_table()


def compare(wanted: Rows, warehouse: Path, table: Table) -> Difference:
    """Return how a lakehouse table differs from the rows of its source."""
    found, incomplete = lakehouse_rows(warehouse, table)
    cells = {
        key: {name for name in table.columns if wanted[key][name] != found[key].get(name)}
        for key in wanted.keys() & found.keys()
    }
    differing = {key: names for key, names in cells.items() if names}
    return Difference(wanted.keys() - found.keys(), found.keys() - wanted.keys(), differing, incomplete)
