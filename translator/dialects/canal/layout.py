"""Compile the layout of a table once for all its messages: a converter per column, the key, the schema and the
notes.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from cdc_core.envelope import Column, TableSchema
from cdc_core.sized_cache import SizedCache
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._rows import Columns
from translator.dialects.canal.mysql_type import OTHER_NAMES_OF_TEXT, MysqlType, parse
from translator.dialects.canal.types import UNKNOWN, Coding, Spelling, coding, declared_coding
from translator.message import DeclaredTable, TableName

UNTYPED = "UNTYPED"
"""Notes on a row. Either no column has a known type, or (`UNTYPED=col`) this column has none."""

Types = tuple[tuple[str, str], ...]
"""`mysqlType` in order: each column and the text of its type, which is "" if the writer did not know the type."""


class Layout(Struct, frozen=True):
    """The compiled reader for a table's rows."""

    table: TableName
    columns: Columns
    key_columns: tuple[str, ...]
    key_kind: str
    schema: TableSchema | None
    notes: tuple[str, ...]
    types: Mapping[str, str]
    """The canonical types of the known columns, even if the table has others."""


class Layouts:
    """A source's layouts. `complete`: `mysqlType` lists all columns in the table."""

    def __init__(self, source: str, tables: DeclaredTables, spelling: Spelling, *, complete: bool) -> None:
        self._source = source
        self._tables = tables
        self._spelling = spelling
        self._complete = complete
        self.of = SizedCache(self._compile)

    def of_key_only(self, table: TableName, types: Types, pk_names: tuple[str, ...]) -> Layout:
        """Return the layout for a message whose `mysqlType` contains only the key. The layout has a schema if `tables:`
        lists the columns. The key has the same types as in other messages for the table.
        """
        layout = self.of(table, types, pk_names)
        if not (types and self._complete):
            return layout
        _, listed = self._tables.find(table)
        if listed is None:
            return structs.replace(layout, schema=None)
        sent = {column.name: column for column in layout.schema.columns} if layout.schema else {}
        columns = [sent.get(column.name) or structs.replace(column, key=None) for column in listed.columns]
        schema = TableSchema.of(self._source, table.db, table.schema, table.table, columns, layout.key_kind)
        return structs.replace(layout, schema=schema)

    def _compile(self, table: TableName, types: Types, pk_names: tuple[str, ...]) -> Layout:
        declared, declared_schema = self._tables.find(table)
        key, kind = _key(pk_names, declared)
        parsed = {name: parse(text) for name, text in types}
        codings = {name: coding(type_, self._spelling) for name, type_ in parsed.items()}
        schema = None
        # The operator's columns are used if the message cannot list them. Otherwise the message takes precedence.
        if declared is not None and declared.columns is not None and not (types and self._complete):
            codings |= self._declared(declared.columns, codings)
            schema = declared_schema
        elif types and self._complete and set(key) <= parsed.keys():
            columns = [_column(name, parsed[name], codings[name], key) for name in codings]
            schema = TableSchema.of(self._source, table.db, table.schema, table.table, columns, kind)
        converters = {name: found.convert for name, found in codings.items()}
        return Layout(
            table,
            Columns(converters, UNKNOWN.convert),
            key,
            kind,
            schema,
            _notes(codings),
            {name: found.type for name, found in codings.items()},
        )

    def _declared(self, columns: Mapping[str, str], sent: Mapping[str, Coding]) -> dict[str, Coding]:
        """Return codings for the declared types. If the sent type leads to the same canonical type, its coding is used,
        because it is more specific.
        """
        return {
            name: sent[name]
            if name in sent and sent[name].type == canonical
            else declared_coding(canonical, self._spelling)
            for name, canonical in columns.items()
        }


def _key(pk_names: tuple[str, ...], declared: DeclaredTable | None) -> tuple[tuple[str, ...], str]:
    if pk_names:
        return pk_names, "primary"
    if declared is not None and declared.key:
        return tuple(declared.key), "configured"
    return (), "none"


_LENGTH_TYPES = frozenset(
    {"char", "nchar", "character", "varchar", "nvarchar", "binary", "varbinary", *OTHER_NAMES_OF_TEXT}
)


def _column(name: str, type_: MysqlType | None, found: Coding, key: tuple[str, ...]) -> Column:
    position = key.index(name) + 1 if name in key else None
    if type_ is None:
        return Column(name, found.type, key=position)
    length = type_.numbers[0] if type_.name in _LENGTH_TYPES and type_.numbers else None
    return Column(name, found.type, key=position, native=type_.text, length=length, charset=type_.charset)


def _notes(codings: Mapping[str, Coding]) -> tuple[str, ...]:
    if not codings:
        return (UNTYPED,)
    assumptions = dict.fromkeys(found.note for found in codings.values() if found.note is not None)
    untyped = [f"{UNTYPED}={name}" for name, found in codings.items() if found is UNKNOWN]
    return (*assumptions, *untyped)
