"""One message -> its outcome: which kind of message it is, and what no message of that kind may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.dialects._json import JsonObject, check_distinct, field, json_type, parse
from translator.dialects._tables import DeclaredTables
from translator.dialects.canal.changes import OPERATIONS, RowMessage, row_changes
from translator.dialects.canal.codings import Spelling
from translator.dialects.canal.head import Head, read_head
from translator.dialects.canal.layout import Layout, Layouts
from translator.dialects.canal.options import Options, check
from translator.dialects.canal.quick import Body, QuickReader, head_of
from translator.dialects.canal.rows import read_data, read_old, read_pk_names, read_types
from translator.dialects.canal.statement import truncates
from translator.dialects.canal.variant import FOREIGN_MARKS, era_of, has_rows, read_images
from translator.envelope import Ddl
from translator.errors import ErrorCode, FatalError, MessageError, unknown
from translator.message import Change, Changes, Message, OtherChange, Outcome, RowChange, Setup, Skip
from translator.options import parse_options

STATEMENTS = frozenset({"CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "QUERY", "DDL"})
"""Types that carry SQL text; DDL is the one word of Alibaba DTS for all of them (formats/canal.md section 3.1)."""

_TRUNCATES = frozenset({"TRUNCATE", "DDL"})

_NOT_TRANSLATED: Mapping[str, str] = {
    "XACOMMIT": "the end of an XA transaction is not in this release",
    "XAROLLBACK": "the end of an XA transaction is not in this release",
    "GTID": "canal never writes it to a topic",
    "MHEARTBEAT": "canal never writes it to a topic",
    "TIDB_WATERMARK": "TiCDC wrote it, and profile ticdc is not in this release",
}

_TYPES = (*OPERATIONS, *STATEMENTS)

_ROWS = frozenset({"$.data[*]", "$.old[*]"})


class Canal:
    """Decodes Canal JSON."""

    name = "canal"

    def __init__(self, setup: Setup, options: Mapping[str, Any]) -> None:
        chosen = parse_options(Options, options, self.name)
        check(chosen)
        self._limits = setup.limits
        self._era_of = era_of(chosen)
        self._alibaba = chosen.profile != "oss"
        self._complete = chosen.row_image == "full"
        spelling = Spelling(chosen.timezone, chosen.tinyint1_as_boolean, documented=not self._alibaba)
        tables = DeclaredTables(setup.source, setup.tables)
        self._layouts = Layouts(setup.source, tables, spelling, complete=self._complete)
        self._quick = QuickReader(self._layouts, setup.limits)

    def learn(self, document: bytes) -> object:
        """Canal messages describe themselves.

        Raises:
            FatalError: always; the document belongs to another dialect.
        """
        raise FatalError("canal: learns nothing; the metadata topic holds a document of another dialect")

    def decode(self, message: Message) -> Outcome:
        """The changes of a message, or a Skip where there is no message in the record."""
        value = message.value
        if value is None:
            return Skip("tombstone")
        if not value or value.isspace():
            return Skip("empty")
        read = self._quick.read(value)
        return self._plainly(value) if read is None else self._quickly(*read)

    def _quickly(self, body: Body, layout: Layout) -> Outcome:
        head = head_of(body, layout.table, self._era_of, gtid_names_transaction=self._alibaba)
        images = read_images(body.type, body.data, body.old or (), head.era)
        rows = RowMessage(head, layout.table, images, layout, layout.clean_columns, self._complete)
        return Changes([*row_changes(rows, self._limits)])

    def _plainly(self, value: bytes) -> Outcome:
        body = parse(value, self._limits, _ROWS)
        if body is None:
            # the literal `null`: what some queue transports make of a lost body (section 5)
            return Skip("null")
        if not isinstance(body, dict):
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"the value is a JSON {json_type(body)}, not object")
        check_distinct(value, body)
        type_ = _type(body)
        # Alibaba writes the GTID of the transaction; canal the set of all that were executed (section 1).
        head = read_head(type_, body, self._era_of, gtid_names_transaction=self._alibaba)
        if type_ in OPERATIONS:
            return Changes([*self._rows(head, body)])
        return Changes([_statement(head, body)])

    def _rows(self, head: Head, body: JsonObject) -> list[RowChange]:
        if field(body, "isDdl", bool, "$", optional=True):
            raise MessageError(ErrorCode.INVALID_FIELD, f"type {head.type} with isDdl true", path="$.isDdl")
        data, old = read_data(body, self._limits), read_old(body, self._limits)
        if not data and not has_rows(old):
            raise _without_rows(head)
        if head.table is None:
            raise MessageError(ErrorCode.TABLE_UNKNOWN, "rows without the name of their table", path="$.table")
        images = read_images(head.type, data, old, head.era)
        layout = self._layouts.of(head.table, read_types(body, self._limits), read_pk_names(body, self._limits))
        rows = RowMessage(head, head.table, images, layout, layout.columns, self._complete)
        return row_changes(rows, self._limits)


def _type(body: JsonObject) -> str:
    """The type of a message that one of the declared writers may have written."""
    for mark, writer in FOREIGN_MARKS.items():
        if mark in body:
            reason = f"{writer} wrote it (member {mark}); its messages are not in this release"
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path=f"$.{mark}")
    type_: str = field(body, "type", str, "$")
    if type_ in _NOT_TRANSLATED:
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"type {type_}: {_NOT_TRANSLATED[type_]}", path="$.type")
    if type_ not in _TYPES:
        raise MessageError(ErrorCode.UNKNOWN_OPERATION, unknown("type", type_, _TYPES), path="$.type")
    return type_


def _without_rows(head: Head) -> MessageError:
    if head.sql is None:
        return MessageError(ErrorCode.MISSING_FIELD, f"type {head.type} without rows and without SQL", path="$.data")
    reason = f"type {head.type} as a statement: the binary log holds SQL text in place of rows (binlog_format)"
    return MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path="$.sql")


def _statement(head: Head, body: JsonObject) -> Change:
    """`isDdl` is not asked: what it means of a QUERY changed twice (section 3.2)."""
    for name in ("data", "old"):
        if has_rows(field(body, name, list, "$", optional=True) or ()):
            reason = f"type {head.type} with rows; only {', '.join(OPERATIONS)} have rows"
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path=f"$.{name}")
    if head.sql is None:
        raise MessageError(ErrorCode.MISSING_FIELD, f"type {head.type} without SQL text", path="$.sql")
    if head.type in _TRUNCATES and head.table is not None and truncates(head.sql, head.table):
        change: Change = RowChange("t", head.table, head.declared_writer)
    else:
        change = OtherChange("schema", head.declared_writer, head.table, head.db, Ddl(head.type, head.sql))
    change.ts_commit_us, change.ts_capture_us = head.ts_commit_us, head.ts_capture_us
    change.pos_native, change.tx = head.pos_native, head.tx
    return change
