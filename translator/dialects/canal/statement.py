"""Translate messages without rows: DDL, QUERY, statements in place of rows, and the end of an XA transaction (§9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TypeVar

from cdc_core.envelope import Ddl, Tx
from cdc_core.statement_notes import CASCADE_NOT_LOGGED, STATEMENT_NOT_APPLIED, TABLE_DROPPED
from translator.dialects._ddl import Name, Statement, read_statement
from translator.dialects._ddl_defaults import mysql_value
from translator.dialects._ddl_effects import Effect, Literal, SqlType, effects_of, is_row_statement, rows_changed_by
from translator.dialects._ddl_words import MYSQL
from translator.dialects._json import JsonObject
from translator.dialects._statement_events import ConcernedTables, Filled, announced, constant
from translator.dialects.canal.envelope_fields import Head
from translator.dialects.canal.mysql_type import parse
from translator.dialects.canal.types import Spelling, coding
from translator.errors import ErrorCode, MessageError
from translator.message import Change, OtherChange, RowChange, TableName

STATEMENTS = frozenset(
    {"CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "QUERY", "DDL", "INIT_DDL"}
)
"""Types with SQL text. Alibaba DTS uses the type DDL for all statements, and Huawei uses INIT_DDL in a full load
(§3.1).
"""

QUERY = "QUERY"

XA_COMMIT = "XACOMMIT"
"""The end of an XA transaction, whose rows were sent when it was prepared. `sql` is its xid, possibly as in the
statement, or empty (§2).
"""

_XA_COMMIT_STATEMENT = "XA COMMIT "

SQL_NAMES_ANOTHER_TABLE = "SQL_NAMES_ANOTHER_TABLE"
XA_COMMITTED = "XA_COMMITTED"

_TRUNCATES = frozenset({"TRUNCATE", "DDL"})
_BY_TYPE: Mapping[str, str] = {"ERASE": TABLE_DROPPED, "RENAME": STATEMENT_NOT_APPLIED}
_ROW_STATEMENTS = frozenset({"INSERT", "UPDATE", "DELETE"})

T = TypeVar("T", RowChange, OtherChange)


def statement(head: Head, spelling: Spelling) -> list[Change]:
    """Return the announcements of a statement, one for each table whose rows it changes. For a truncate, return the
    truncate of the table.

    Raises:
        MessageError: the message contains no SQL text.
    """
    if head.sql is None:
        raise MessageError(ErrorCode.MISSING_FIELD, f"a message of type {head.type} has no SQL text", path="$.sql")
    read = _read(head.sql)
    if head.type in _TRUNCATES and head.table is not None and read is not None and _truncates(read, head.table):
        return [_placed(head, RowChange("t", head.table, head.declared_writer))]
    effects = effects_of(head.sql, MYSQL)
    named = None if head.table is None else (head.table.table,)
    if head.type == QUERY and is_row_statement(head.sql, MYSQL):
        # The text does not belong to row events (`is_echo`). The server logged it instead of rows, under a type that
        # canal does not know.
        effects = rows_changed_by(head.sql, MYSQL)
    elif head.type == "TRUNCATE" and all(effect.note != STATEMENT_NOT_APPLIED for effect in effects):
        effects += (Effect(STATEMENT_NOT_APPLIED, named),)
    elif not effects and read is None and head.type in _BY_TYPE:
        # The text is not understood here, but the writer understood it.
        effects = (Effect(_BY_TYPE[head.type], named),)
    if head.tidb is not None:
        # TiDB executes cascades as row changes, which TiCDC sends.
        effects = tuple(effect for effect in effects if effect.note != CASCADE_NOT_LOGGED)
    return _announced(head, head.sql, read, effects, spelling)


def is_echo(head: Head, body: JsonObject) -> bool:
    """Return whether a QUERY is the text of row events that have their own messages (§3, ROWS_QUERY).

    MariaDB logs this text by default, and MySQL logs it with binlog_rows_query_log_events. Canal does not name a table
    for such a QUERY, and `isDdl` was false in every release (§3.2).
    """
    named = head.db is not None or head.table is not None or head.sql is None
    return not named and not body.get("isDdl") and is_row_statement(head.sql or "", MYSQL)


def statement_in_place_of_rows(head: Head, spelling: Spelling) -> list[Change]:
    """Return the announcements for SQL text that the server logged in place of rows (`binlog_format` STATEMENT or
    MIXED). The changed rows are unknown.

    Raises:
        MessageError: the message contains neither a row nor SQL text, or the database never logs this type as text.
    """
    if head.sql is None:
        reason = f"a message of type {head.type} has neither rows nor SQL"
        raise MessageError(ErrorCode.MISSING_FIELD, reason, path="$.data")
    if head.type not in _ROW_STATEMENTS:
        reason = f"a message of type {head.type} has SQL text instead of rows, which no known writer sends"
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path="$.sql")
    return _announced(head, head.sql, _read(head.sql), rows_changed_by(head.sql, MYSQL), spelling)


def end_of_xa(head: Head) -> OtherChange:
    """Return the event for a commit of an XA transaction, which makes its rows final."""
    change = _placed(head, OtherChange("tx", head.declared_writer, head.table, head.db, notes=[XA_COMMITTED]))
    if head.sql is not None:
        change.tx = Tx(head.sql.removeprefix(_XA_COMMIT_STATEMENT))
    return change


def alive(head: Head) -> OtherChange:
    """Return a watermark for a message about a table that a server writes only to show that it is alive."""
    return _placed(head, OtherChange("watermark", head.declared_writer, head.table, head.db))


def _placed(head: Head, change: T) -> T:
    """Return the change with the times, positions and notes of its message."""
    change.ts_commit_us, change.ts_capture_us = head.ts_commit_us, head.ts_capture_us
    change.pos_native, change.tx = head.pos_native, head.tx
    change.notes = [*head.notes, *(change.notes or ())] or None
    return change


def _announced(
    head: Head, sql: str, read: Statement | None, effects: Iterable[Effect], spelling: Spelling
) -> list[Change]:
    tables = None if read is None else [_text(name, read, head) for name in read.tables]
    notes = [SQL_NAMES_ANOTHER_TABLE] if read is not None and _names_another(read, head.table) else []
    ddl = Ddl(head.type, sql, tables, read is not None)
    change = _placed(head, OtherChange("schema", head.declared_writer, head.table, head.db, ddl, notes=notes))
    return [*announced(change, effects, partial(_target, head), partial(_filled, spelling))]


def _target(head: Head, effect: Effect) -> ConcernedTables:
    """Return an effect's table. A name without a database is assumed to be in the message's database."""
    name = effect.table
    if name is None or len(name) > 2:
        return ConcernedTables(None, effect.db or head.db)
    db = name[0] if len(name) == 2 else head.db
    if db is None:
        return ConcernedTables(None, None)
    return ConcernedTables(TableName(db, None, name[-1]), db)


def _filled(spelling: Spelling, type_: SqlType, literal: Literal) -> Filled | None:
    """Return the value that canal would send. For an enum or a set, this is the label, however the writer represents
    labels in rows.
    """
    text, parsed = mysql_value(type_, literal), parse(type_.text)
    if text is None or parsed is None:
        return None
    found = coding(parsed, spelling)
    if found.type in ("enum", "set"):
        return Filled(found.type, text)
    return constant(found.type, found.convert, text)


def _read(sql: str) -> Statement | None:
    read = read_statement(sql, "mysql")
    return read if read is not None and all(len(name) <= 2 for name in read.tables) else None


def _truncates(read: Statement, table: TableName) -> bool:
    return read.truncates and len(read.tables) == 1 and _agrees(read.tables[0], table)


def _agrees(name: Name, table: TableName) -> bool:
    return name[-1] == table.table and name[:-1] in ((), (table.db,))


def _names_another(read: Statement, table: TableName | None) -> bool:
    """Return whether a statement names tables, but not the one in the message. This is not an error, because the
    message contains the first table of the statement.
    """
    return table is not None and bool(read.tables) and not any(_agrees(name, table) for name in read.tables)


def _text(name: Name, read: Statement, head: Head) -> str:
    """Return `db.table`, or the name as written. If the statement contains several names, the database they lack is
    unknown (§9).
    """
    alone = len(read.tables) == 1 and len(name) == 1
    if alone and head.table is not None and head.table.db is not None and _agrees(name, head.table):
        return f"{head.table.db}.{head.table.table}"
    return ".".join(name)
