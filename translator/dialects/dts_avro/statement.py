"""Translate DDL and COMMAND records, whose plain text takes the place of the after image (§3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import structs

from cdc_core.envelope import Ddl
from cdc_core.statement_notes import STATEMENT_NOT_APPLIED, TABLE_DROPPED
from translator.dialects._ddl import Name, Statement, read_statement
from translator.dialects._ddl_defaults import mysql_canonical, mysql_value, plain_value
from translator.dialects._ddl_effects import Effect, Literal, SqlType, effects_of
from translator.dialects._ddl_words import OTHER
from translator.dialects._statement_events import ConcernedTables, Filled, announced, constant
from translator.dialects.dts_avro.envelope_fields import Head
from translator.dialects.dts_avro.names import ObjectName, place
from translator.dialects.dts_avro.record import DtsRecord
from translator.dialects.dts_avro.rows import LOGICAL_NAMES
from translator.dialects.dts_avro.types import MYSQL_FAMILY
from translator.errors import ErrorCode, MessageError
from translator.message import Change, OtherChange, RowChange, TableName
from translator.values import converter

STATEMENTS = frozenset({"DDL", "COMMAND"})

SQL_NAMES_ANOTHER_TABLE = "SQL_NAMES_ANOTHER_TABLE"

_GRAMMARS: Mapping[str, str] = {
    "MySQL": "mysql",
    "DRDS": "mysql",
    "Oracle": "oracle",
    "PostgreSQL": "postgres",
    "PPAS": "postgres",
    "SQLServer": "tsql",
}
"""Each source type's SQL dialect, by sqlglot's name. Text from other sources is passed on unparsed."""

_FOLDS: Mapping[str, Callable[[str], str]] = {"Oracle": str.upper, "PostgreSQL": str.lower, "PPAS": str.lower}
"""The function that folds the case of unquoted names, by source."""


_MAX_PARTS = 3

T = TypeVar("T", RowChange, OtherChange)


def statement(record: DtsRecord, head: Head, *, whole_tables: bool) -> list[Change]:
    """Return the announcements of a statement, one for each table whose rows it changes. For a truncate, return the
    truncate of the table.

    Args:
        whole_tables: whether a source table corresponds to an event table. Otherwise, it is a shard (`logical_names`),
            and its truncate does not empty a table.

    Raises:
        MessageError: the record contains no text, or objectName is invalid.
    """
    sql = _text(record)
    where = place(record.object_name)
    read = _read(sql, record.source_type)
    names = [] if read is None else [_folded(name, sql, record.source_type) for name in read.tables]
    default = where.db if where.table is None and record.source_type in MYSQL_FAMILY else None
    empties = read is not None and read.truncates
    if whole_tables and empties and len(names) == 1 and (table := _table(names[0], where, default)) is not None:
        return [_placed(RowChange("t", table, head.writer), head)]
    notes = []
    if where.table is not None and names and not any(_agrees(name, where.table) for name in names):
        notes.append(SQL_NAMES_ANOTHER_TABLE)
    tables = None if read is None else [_full(name, names, where, default) for name in names]
    ddl = Ddl(record.operation, sql, tables, read is not None)
    change = _placed(OtherChange("schema", head.writer, where.table, where.db, ddl, notes=notes or None), head)
    grammar = _GRAMMARS.get(record.source_type, OTHER)
    effects, fill = effects_of(sql, grammar), partial(_filled, record.source_type)
    target = partial(_target, where, record.source_type)
    if whole_tables:
        return [*announced(change, effects, target, fill)]
    logical = _logical(record) or where.table
    parts = {where.table: logical}
    if effects:
        change.table = logical
    return [*announced(change, map(_of_part, effects), lambda effect: _renamed(target(effect), parts), fill)]


def _renamed(target: ConcernedTables, names: Mapping[TableName | None, TableName | None]) -> ConcernedTables:
    found = names.get(target.table, target.table)
    return target if found is None else ConcernedTables(found, found.db)


def _of_part(effect: Effect) -> Effect:
    """Return the effect on the table that appears in the events. The dropped table was only one shard of that table."""
    return structs.replace(effect, note=STATEMENT_NOT_APPLIED) if effect.note == TABLE_DROPPED else effect


def _logical(record: DtsRecord) -> TableName | None:
    """Return the table that row events refer to, if the record contains it."""
    db, table = map(record.tags.get, LOGICAL_NAMES)
    return TableName(db, None, table) if db and table else None


def _target(where: ObjectName, source_type: str, effect: Effect) -> ConcernedTables:
    """Return an effect's table. Missing levels of the name come from the record if it has them, and otherwise from the
    source.
    """
    name = effect.table
    if name is None:
        return ConcernedTables(None, effect.db or where.db)
    if where.table is not None and _agrees(name, where.table):
        return ConcernedTables(where.table, where.db)
    if source_type in _DEFAULT_SCHEMAS:
        schema = name[-2] if len(name) > 1 else _DEFAULT_SCHEMAS[source_type]
        db = name[-3] if len(name) > 2 else where.db
        return ConcernedTables(None, None) if db is None else ConcernedTables(TableName(db, schema, name[-1]), db)
    db = name[-2] if len(name) > 1 else where.db
    return ConcernedTables(None, None) if db is None else ConcernedTables(TableName(db, None, name[-1]), db)


_DEFAULT_SCHEMAS: Mapping[str, str] = {"PostgreSQL": "public", "PPAS": "public", "SQLServer": "dbo"}
"""The default schema, for sources with schemas inside databases."""


def _filled(source_type: str, type_: SqlType, literal: Literal) -> Filled | None:
    """Return the value that a row record would contain."""
    if source_type in MYSQL_FAMILY:
        found = mysql_canonical(type_), mysql_value(type_, literal)
    else:
        found = plain_value(type_, literal, _GRAMMARS.get(source_type, OTHER)) or (None, None)
    canonical, text = found
    return None if canonical is None or text is None else constant(canonical, converter(canonical), text)


def _text(record: DtsRecord) -> str:
    text = next((text for text in (record.after, record.before) if isinstance(text, str) and text), None)
    if text is None:
        reason = f"the {record.operation} has no text in either image"
        raise MessageError(ErrorCode.MISSING_FIELD, reason, path="$.afterImages")
    return text


def _read(sql: str, source_type: str) -> Statement | None:
    grammar = _GRAMMARS.get(source_type)
    read = read_statement(sql, grammar) if grammar is not None else None
    return read if read is not None and all(len(name) <= _MAX_PARTS for name in read.tables) else None


def _placed(change: T, head: Head) -> T:
    """Return the change with its record's times and positions."""
    change.ts_commit_us, change.ts_capture_us = head.ts_commit_us, head.ts_capture_us
    change.pos_native, change.tx, change.ext = head.pos_native, head.tx, head.ext
    return change


# -- names in a statement


def _folded(name: Name, sql: str, source_type: str) -> Name:
    """Spell a name as the source does. The parser does not remember the quotes of single parts. If any part has
    quotes, all parts therefore stay as written.
    """
    fold = _FOLDS.get(source_type)
    return name if fold is None or '"' in sql else tuple(fold(part) for part in name)


def _table(name: Name, where: ObjectName, default: str | None) -> TableName | None:
    """Return the record's table if the statement refers to it. `default` is the database for names without one."""
    if where.table is not None:
        return where.table if _agrees(name, where.table) else None
    if default is not None and name[:-1] in ((), (default,)):
        return TableName(default, None, name[-1])
    return None


def _agrees(name: Name, table: TableName) -> bool:
    """Return whether the name is the table's full name or its last levels."""
    return name == _path(table)[-len(name) :]


def _path(table: TableName) -> Name:
    return tuple(part for part in (table.db, table.schema, table.table) if part is not None)


def _full(name: Name, names: Sequence[Name], where: ObjectName, default: str | None) -> str:
    """Return the full name. If the statement has only one name, a missing database is added. With several names, the
    database is unknown.
    """
    table = _table(name, where, default) if len(names) == 1 else None
    return ".".join(name if table is None else _path(table))
