"""The layout of a table, compiled once for all its messages: a converter per column, the key, the schema, the notes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct, structs

from cdc_core.envelope import Column, TableSchema
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._rows import Columns
from translator.dialects.canal.mysql_type import OTHER_NAMES_OF_TEXT, MysqlType, parse
from translator.dialects.canal.types import UNKNOWN, Coding, Spelling, coding, declared_coding, plain
from translator.message import DeclaredTable, TableName

LAYOUTS = 1024
"""Compiled tables that are kept. A table whose messages spell its types in two ways counts twice."""

UNTYPED = "UNTYPED"
"""Note on a row: no type is known for any column, or `UNTYPED=col`, for that one."""

Types = tuple[tuple[str, str], ...]
"""`mysqlType` in its order: column and type text, "" where the writer knew none."""


class Layout(Struct, frozen=True):
    """The compiled reader of a table's rows."""

    table: TableName
    columns: Columns
    clean_columns: Columns
    """For cells that a parser has proven to be text that UTF-8 can carry: what is text stays as it is."""
    key_columns: tuple[str, ...]
    key_kind: str
    schema: TableSchema | None
    notes: tuple[str, ...]
    types: Mapping[str, str]
    """The canonical type of each column that is known, also where they are not all columns of the table."""


class Layouts:
    """The layouts of a source. `complete`: whether `mysqlType` lists all columns of the table."""

    def __init__(self, source: str, tables: DeclaredTables, spelling: Spelling, *, complete: bool) -> None:
        self._source = source
        self._tables = tables
        self._spelling = spelling
        self._complete = complete
        self.of = lru_cache(maxsize=LAYOUTS)(self._compile)

    def of_key_only(self, table: TableName, types: Types, pk_names: tuple[str, ...]) -> Layout:
        """The layout of a message whose `mysqlType` is that of the key alone: it has a schema if `tables:` lists the
        columns. The key is of the types that it has in the other messages of the table.
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
        # The operator's columns stand in where the message cannot list them, and give way where it does.
        if declared is not None and declared.columns is not None and not (types and self._complete):
            codings |= self._declared(declared.columns, codings)
            schema = declared_schema
        elif types and self._complete and set(key) <= parsed.keys():
            columns = [_column(name, parsed[name], codings[name], key) for name in codings]
            schema = TableSchema.of(self._source, table.db, table.schema, table.table, columns, kind)
        converters = {name: found.convert for name, found in codings.items()}
        as_is = {name: None if convert in _TEXT else convert for name, convert in converters.items()}
        return Layout(
            table,
            Columns(converters, UNKNOWN.convert),
            Columns(as_is, None),
            key,
            kind,
            schema,
            _notes(codings),
            {name: found.type for name, found in codings.items()},
        )

    def _declared(self, columns: Mapping[str, str], sent: Mapping[str, Coding]) -> dict[str, Coding]:
        """Codings of the declared types; the sent type is the better reader where it leads to the same one."""
        return {
            name: sent[name]
            if name in sent and sent[name].type == canonical
            else declared_coding(canonical, self._spelling)
            for name, canonical in columns.items()
        }


_TEXT = (plain("string").convert, UNKNOWN.convert)
"""Converters that return text as they get it."""


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
