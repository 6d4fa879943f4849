"""Messages without rows: DDL, QUERY, statements in place of rows, the end of an XA transaction (§9)."""

from __future__ import annotations

from typing import TypeVar

from cdc_core.envelope import Ddl, Tx
from translator.dialects._ddl import Name, Statement, read_statement
from translator.dialects.canal.envelope_fields import Head
from translator.errors import ErrorCode, MessageError
from translator.message import Change, OtherChange, RowChange, TableName

STATEMENTS = frozenset(
    {"CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "QUERY", "DDL", "INIT_DDL"}
)
"""Types that carry SQL text. DDL is the one word of Alibaba DTS for all of them, INIT_DDL that of Huawei in a full load
(§3.1)."""

XA_COMMIT = "XACOMMIT"
"""The end of an XA transaction whose rows were sent when it was prepared; `sql` is its xid, or empty (§2)."""

STATEMENT_NOT_APPLIED = "STATEMENT_NOT_APPLIED"
SQL_NAMES_ANOTHER_TABLE = "SQL_NAMES_ANOTHER_TABLE"
XA_COMMITTED = "XA_COMMITTED"

_TRUNCATES = frozenset({"TRUNCATE", "DDL"})
_ROW_STATEMENTS = frozenset({"INSERT", "UPDATE", "DELETE"})

T = TypeVar("T", RowChange, OtherChange)


def statement(head: Head) -> Change:
    """The announcement of a statement, or the truncate of the table that the message names.

    Raises:
        MessageError: there is no SQL text.
    """
    if head.sql is None:
        raise MessageError(ErrorCode.MISSING_FIELD, f"type {head.type} without SQL text", path="$.sql")
    read = _read(head.sql)
    if head.type in _TRUNCATES and head.table is not None and read is not None and _truncates(read, head.table):
        return _placed(head, RowChange("t", head.table, head.declared_writer))
    empties = head.type == "TRUNCATE" or (read is not None and read.truncates)
    return _announced(head, head.sql, read, not_applied=empties)


def statement_in_place_of_rows(head: Head) -> OtherChange:
    """`binlog_format` STATEMENT or MIXED: the server logged SQL text, and which rows it changed nobody can say.

    Raises:
        MessageError: there is neither a row nor a text, or it is of a type that is never logged so.
    """
    if head.sql is None:
        reason = f"type {head.type} without rows and without SQL"
        raise MessageError(ErrorCode.MISSING_FIELD, reason, path="$.data")
    if head.type not in _ROW_STATEMENTS:
        reason = f"type {head.type} with SQL text in place of rows; no writer is known that means something by it"
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path="$.sql")
    return _announced(head, head.sql, _read(head.sql), not_applied=True)


def end_of_xa(head: Head) -> OtherChange:
    """The rows of the transaction stand."""
    change = _placed(head, OtherChange("tx", head.declared_writer, head.table, head.db, notes=[XA_COMMITTED]))
    if head.sql is not None:
        change.tx = Tx(head.sql)
    return change


def alive(head: Head) -> OtherChange:
    """A message of a table that is written for no other end than to show that its server is alive."""
    return _placed(head, OtherChange("watermark", head.declared_writer, head.table, head.db))


def _placed(head: Head, change: T) -> T:
    """The change with the times, positions and notes of its message."""
    change.ts_commit_us, change.ts_capture_us = head.ts_commit_us, head.ts_capture_us
    change.pos_native, change.tx = head.pos_native, head.tx
    change.notes = [*head.era.notes, *(change.notes or ())] or None
    return change


def _announced(head: Head, sql: str, read: Statement | None, *, not_applied: bool) -> OtherChange:
    """`not_applied`: the statement changed rows, and no event says which."""
    tables = None if read is None else [_text(name, read, head) for name in read.tables]
    notes = [STATEMENT_NOT_APPLIED] if not_applied else []
    if read is not None and _names_another(read, head.table):
        notes.append(SQL_NAMES_ANOTHER_TABLE)
    ddl = Ddl(head.type, sql, tables, read is not None)
    return _placed(head, OtherChange("schema", head.declared_writer, head.table, head.db, ddl, notes=notes))


def _read(sql: str) -> Statement | None:
    read = read_statement(sql, "mysql")
    return read if read is not None and all(len(name) <= 2 for name in read.tables) else None


def _truncates(read: Statement, table: TableName) -> bool:
    return read.truncates and len(read.tables) == 1 and _agrees(read.tables[0], table)


def _agrees(name: Name, table: TableName) -> bool:
    return name[-1] == table.table and name[:-1] in ((), (table.db,))


def _names_another(read: Statement, table: TableName | None) -> bool:
    """Tables are named, but not the one of the message. Its first table is the rule, and no reason to refuse it."""
    return table is not None and bool(read.tables) and not any(_agrees(name, table) for name in read.tables)


def _text(name: Name, read: Statement, head: Head) -> str:
    """`db.table`, or as written: of several names the database that they lack is lost (§9)."""
    alone = len(read.tables) == 1 and len(name) == 1
    if alone and head.table is not None and head.table.db is not None and _agrees(name, head.table):
        return f"{head.table.db}.{head.table.table}"
    return ".".join(name)
