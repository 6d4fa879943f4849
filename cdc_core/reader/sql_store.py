"""Store rows in database tables through a DB-API driver. The store never commits, so the caller controls the
transaction.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

import msgspec

from cdc_core.errors import quote
from cdc_core.reader.change import RowKey
from cdc_core.reader.errors import ApplyError
from cdc_core.reader.kept_row import KeptRow, RowProgress
from cdc_core.reader.values import Value, canonical_text
from cdc_core.table_id import TableId

ROW, INCOMPLETE = "_cdc_row", "_cdc_incomplete"
"""The columns that the store adds to those of the source: the key as text, and a flag that is 1 if any column of the
row is unknown.
"""


class SqlCursor(Protocol):
    """The part of a DB-API cursor (PEP 249) that the store uses."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class SqlConnection(Protocol):
    """The part of a DB-API connection that the store uses."""

    def cursor(self) -> Any: ...


class SqlDialect(msgspec.Struct, frozen=True):
    """The differences between databases. A database must support `INSERT … ON CONFLICT … DO UPDATE` and names in double
    quotes. Its driver must accept question marks as parameters.

    Args:
        column_type: the column types, keyed by canonical type; the key "" is for unknown types.
        parameter_of: converts a value for the driver. The function must accept values that the driver has returned, and
            leave them unchanged.
    """

    column_type: Callable[[str], str]
    parameter_of: Callable[[Value], Any]


def _encoded(progress: RowProgress) -> str:
    """Return a row's progress as text.

    The values of a row that was set aside are strings that the driver accepts again. JSON cannot represent bytes, so
    they become a list with one base64 string.
    """
    if progress.aside is None:
        return msgspec.json.encode(progress).decode()
    values = {name: canonical_text(value) for name, value in progress.aside.values.items()}
    values = {name: [value] if isinstance(value, bytes) else value for name, value in values.items()}
    aside = msgspec.structs.replace(progress.aside, values=values)
    return msgspec.json.encode(msgspec.structs.replace(progress, aside=aside)).decode()


def _decoded(text: str) -> RowProgress:
    progress = msgspec.json.decode(text, type=RowProgress)
    if progress.aside is not None:
        values = progress.aside.values
        values |= {name: base64.b64decode(value[0]) for name, value in values.items() if isinstance(value, list)}
    return progress


# The columns have no type, so that SQLite stores every value unchanged and converts no value to a number.
SQLITE = SqlDialect(lambda canonical: "", canonical_text)


def default_name(table: TableId) -> str:
    """Return the levels of a source table's name, joined by `_`."""
    return "_".join(level for level in table if level)


class SqlStore:
    """A store in a database. It has one table per source table, and three more tables. A table is created when its
    first row arrives.

    `cdc_rows` and `cdc_floors` store positions, and `cdc_columns` stores the created columns. Columns are added when
    they first appear. In a row, unknown columns are NULL. Driver errors are not caught. Create a new store for each
    transaction. A store remembers which tables and columns it has created, and a rollback would remove them.

    Args:
        connection: a DB-API connection. The store never commits.
        name: returns the database table's name for a source table.

    Raises:
        ApplyError: two source tables get the same name, or a column's type differs from that in the database table.
    """

    def __init__(
        self,
        connection: SqlConnection,
        dialect: SqlDialect = SQLITE,
        name: Callable[[TableId], str] = default_name,
    ) -> None:
        self._cursor: SqlCursor = connection.cursor()
        self._dialect = dialect
        self._name = name
        self._columns: dict[TableId, dict[str, str]] = {}
        text = dialect.column_type("string")
        for made, columns, key in _OWN_TABLES:
            declared = ", ".join(f"{column} {text}" for column in columns)
            self._run(f"CREATE TABLE IF NOT EXISTS {made} ({declared}, PRIMARY KEY ({key}))")

    def load(self, table: TableId, key: RowKey) -> KeptRow | None:
        of_row = (_table_text(table), _row_text(key))
        found = self._run("SELECT progress FROM cdc_rows WHERE source_table = ? AND row_key = ?", *of_row)
        if not found:
            return None
        columns = [*self._known_columns(table)]
        listed = "".join(f", {_quoted(column)}" for column in columns)
        name = _quoted(self._name(table))
        rows = self._run(f"SELECT {INCOMPLETE}{listed} FROM {name} WHERE {ROW} = ?", of_row[1])  # noqa: S608 - quoted
        progress = _decoded(found[0][0])
        if not rows:
            return KeptRow(progress)
        incomplete, *values = rows[0]
        return KeptRow(progress, dict(zip(columns, values, strict=True)), bool(incomplete))

    def store(self, table: TableId, key: RowKey, row: KeptRow, types: Mapping[str, str]) -> None:
        text, name = _row_text(key), _quoted(self._name(table))
        columns = self._with_columns(table, row.values or {}, types)
        progress = _encoded(row.progress)
        self._put("cdc_rows", ("source_table", "row_key"), (_table_text(table), text), ("progress",), (progress,))
        if row.values is None:
            self._run(f"DELETE FROM {name} WHERE {ROW} = ?", text)  # noqa: S608 - quoted
            return
        values = (self._dialect.parameter_of(row.values.get(column)) for column in columns)
        written = (INCOMPLETE, *map(_quoted, columns))
        self._put(name, (ROW,), (text,), written, (int(row.incomplete), *values))

    def keys(self, table: TableId) -> Iterator[RowKey]:
        for (text,) in self._run("SELECT row_key FROM cdc_rows WHERE source_table = ?", _table_text(table)):
            yield tuple(json.loads(text, parse_float=Decimal))

    def clear(self, table: TableId) -> None:
        self._with_columns(table, {}, {})
        self._run(f"DELETE FROM {_quoted(self._name(table))}")  # noqa: S608 - quoted

    def floor(self, table: TableId, scope: str) -> str:
        asked = "SELECT pos FROM cdc_floors WHERE source_table = ? AND scope = ?"
        found = self._run(asked, _table_text(table), scope)
        return str(found[0][0]) if found else ""

    def set_floor(self, table: TableId, scope: str, pos: str) -> None:
        self._put("cdc_floors", ("source_table", "scope"), (_table_text(table), scope), ("pos",), (pos,))

    def _known_columns(self, table: TableId) -> dict[str, str]:
        """Return a table's columns with their types, in creation order."""
        if table not in self._columns:
            asked = "SELECT source_table, column_name, type FROM cdc_columns WHERE table_name = ? ORDER BY place"
            found = self._run(asked, self._name(table))
            others = {owner for owner, _, _ in found} - {_table_text(table)}
            if others:
                raise ApplyError(
                    f"{self._name(table)} is the name of both {table} and {others.pop()}; give them different names"
                )
            self._columns[table] = {column: type_ for _, column, type_ in found if column}
            if not found:
                name, text = _quoted(self._name(table)), self._dialect.column_type("string")
                flag = self._dialect.column_type("int8")
                self._note_column(table, "", "")
                self._run(f"CREATE TABLE {name} ({ROW} {text} PRIMARY KEY, {INCOMPLETE} {flag})")
        return self._columns[table]

    def _with_columns(self, table: TableId, values: Mapping[str, Value], types: Mapping[str, str]) -> Mapping[str, str]:
        """Return a table's columns, after adding the columns of a row."""
        columns = self._known_columns(table)
        for column in values:
            wanted = self._dialect.column_type(types.get(column, ""))
            if column not in columns:
                name = _quoted(self._name(table))
                self._note_column(table, column, wanted)
                self._run(f"ALTER TABLE {name} ADD COLUMN {_quoted(column)} {wanted}")
                columns[column] = wanted
            elif column in types and columns[column] != wanted:
                raise ApplyError(
                    f"column {quote(column)} of {table} has type {wanted} at the source but {columns[column]} in "
                    "this database; change the column, update its type in cdc_columns, then continue"
                )
        return columns

    def _note_column(self, table: TableId, column: str, type_: str) -> None:
        """Record a column before it is created. SQLite's driver begins a transaction only with an INSERT or a similar
        statement.
        """
        place = f"{len(self._columns[table]):05d}"
        noted = ("table_name", "column_name"), (self._name(table), column)
        self._put("cdc_columns", *noted, ("source_table", "type", "place"), (_table_text(table), type_, place))

    def _put(
        self, name: str, key: Sequence[str], of_row: Sequence[Any], columns: Sequence[str], values: Sequence[Any]
    ) -> None:
        marks = ", ".join("?" * (len(of_row) + len(values)))
        changed = ", ".join(f"{column} = excluded.{column}" for column in columns)
        into = f"INSERT INTO {name} ({', '.join((*key, *columns))}) VALUES ({marks})"  # noqa: S608 - quoted
        self._run(f"{into} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}", *of_row, *values)

    def _run(self, statement: str, *parameters: Any) -> list[Any]:
        """Run a statement, and return its rows. Names in the statement are quoted, and every value is a parameter."""
        self._cursor.execute(statement, parameters)
        return self._cursor.fetchall() if statement.startswith("SELECT") else []


_OWN_TABLES = (
    ("cdc_rows", ("source_table", "row_key", "progress"), "source_table, row_key"),
    ("cdc_floors", ("source_table", "scope", "pos"), "source_table, scope"),
    ("cdc_columns", ("table_name", "column_name", "source_table", "type", "place"), "table_name, column_name"),
)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _table_text(table: TableId) -> str:
    return json.dumps(table, ensure_ascii=False, separators=(",", ":"))


def _row_text(key: RowKey) -> str:
    """Return the key values as one JSON string. It writes each number in only one way, whatever its type."""
    return f"[{','.join(map(_member, key))}]"


def _member(value: Value) -> str:
    if isinstance(value, float) and math.isfinite(value):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        return "0" if not value else _plain(format(value, "f"))
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, bytes):
        value = base64.b64encode(value).decode()
    return json.dumps(str(canonical_text(value)), ensure_ascii=False)


def _plain(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
