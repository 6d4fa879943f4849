"""Decode one message: determine its type, and reject content that the type does not allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._json import (
    JsonObject,
    check_distinct,
    field,
    json_type,
    parse,
    parse_sequence,
)
from translator.dialects._source_text import SentJson
from translator.dialects._topic_patterns import TopicTables
from translator.dialects.canal.changes import OPERATIONS, RowMessage, row_changes
from translator.dialects.canal.continuity import continuity_guard, continuity_of
from translator.dialects.canal.envelope_fields import Head, read_head, table_of
from translator.dialects.canal.forms import DeclaredFormGuard, DeclaredForms, UndeclaredFormGuard
from translator.dialects.canal.heartbeat import HeartbeatTables
from translator.dialects.canal.layout import Layouts
from translator.dialects.canal.marks import TYPES, WATERMARK, check_format, check_writer
from translator.dialects.canal.native_rows import DEPTH, CanalNativeRows
from translator.dialects.canal.options import Options, check, check_declared
from translator.dialects.canal.profile import PROFILES
from translator.dialects.canal.protobuf import flat_messages
from translator.dialects.canal.rows import RowForm, fit_key, read_data, read_old, read_pk_names, read_types
from translator.dialects.canal.statement import (
    QUERY,
    STATEMENTS,
    XA_COMMIT,
    alive,
    end_of_xa,
    is_echo,
    statement,
    statement_in_place_of_rows,
)
from translator.dialects.canal.tidb import check_key_only, read_tidb
from translator.dialects.canal.types import spelling_of
from translator.dialects.canal.variant import era_of, has_rows, notes_on_old, read_images
from translator.errors import ErrorCode, FatalError, MessageError, quote, unknown
from translator.message import (
    Change,
    Changes,
    Guard,
    Limits,
    Message,
    OtherChange,
    Outcome,
    RowChange,
    Setup,
    Skip,
    TableName,
)

_NOT_TRANSLATED: Mapping[str, str] = {
    "XAROLLBACK": "the XA transaction was rolled back, but its rows were sent when it was prepared; undo these rows",
    "GTID": "canal never writes this type to a topic",
    "MHEARTBEAT": "canal never writes this type to a topic",
}

_TYPES = (*OPERATIONS, *sorted(STATEMENTS), XA_COMMIT)
_KNOWN = [*_TYPES, *TYPES, *_NOT_TRANSLATED]

_ROWS = frozenset({"$.data[*]", "$.old[*]", "$[*].data[*]", "$[*].old[*]"})
_SEVERAL = "set newline_batches: true"


class Canal:
    """Decodes Canal JSON."""

    name = "canal"

    def __init__(self, setup: Setup, chosen: Options) -> None:
        check(chosen)
        self._limits = setup.limits
        self._era_of = era_of(chosen)
        self._profile = chosen.profile
        profile = PROFILES[chosen.profile]
        self._batches = chosen.newline_batches
        self._protobuf = chosen.protobuf
        self._form = RowForm(profile.native_cells, chosen.object_rows)
        self._complete = chosen.row_image == "full"
        self._key_only = chosen.handle_key_only == "unavailable"
        spelling = spelling_of(chosen)
        tables = DeclaredTables(setup.source, setup.tables)
        self._spelling = spelling
        self._layouts = Layouts(setup.source, tables, spelling, complete=self._complete)
        self._topics = TopicTables(self.name, "DB", chosen.topics)
        self._heartbeats = HeartbeatTables(chosen.heartbeat_tables)
        self._auto = chosen.profile == "auto"
        self._continuity = continuity_of(chosen)
        self._source = setup.source
        self._forms = partial(DeclaredForms, setup.source, chosen.profile, fatal=chosen.continuity is None)
        self._options = chosen

    def guard(self) -> Guard | None:
        """Return one partition's guard. It checks whether the writer is the declared one. Optionally, it also checks
        whether updates are consistent with each other. With `auto`, the guard gives hints about the profile to declare.
        """
        if self._auto:
            return UndeclaredFormGuard()
        if self._continuity.action == "off":
            return DeclaredFormGuard(self._forms())
        return continuity_guard(self._source, self._continuity, self._options, self.decode, complete=self._complete)

    def check_declared(self, options: Mapping[str, Any]) -> None:
        """Reject a configured source that does not declare its writer."""
        check_declared(options)

    def hints(self, *, described: bool) -> list[str]:
        """Return hints about the writer and its time zone, which messages do not contain."""
        found = []
        if self._auto:
            found.append(
                "profile auto does not identify the writer, so updates whose meaning depends on the writer become "
                "dead letters (AMBIGUOUS_VARIANT)"
            )
        if self._options.timezone is None:
            found.append(
                "options.timezone is not set, so TIMESTAMP columns are translated as local times without a "
                "time zone (note TZ_UNKNOWN)"
            )
        return found

    def learn(self, key: str, document: bytes) -> object:
        """Learn nothing, because Canal messages describe themselves.

        Raises:
            FatalError: always, because any document must belong to another dialect.
        """
        raise FatalError(
            "canal does not use metadata, but the metadata topic contains a document from another dialect for "
            "this source"
        )

    def decode(self, message: Message) -> Outcome:
        """Return the changes in a message, or a Skip if the record contains no message."""
        value = message.value
        if value is None:
            return Skip("tombstone")
        if not value or value.isspace():
            return Skip("empty")
        if self._protobuf:
            value = b"\n".join(flat_messages(value))
            if not value:
                return Skip("transaction_mark")
        if self._batches or self._protobuf:
            parsed = parse_sequence(value, self._limits, _ROWS)
        else:
            parsed = [parse(value, self._limits, _ROWS, several=_SEVERAL)]
        if parsed == [None]:
            # The literal `null`, which some queue transports write for a lost body (§5).
            return Skip("null")
        check_distinct(value, parsed)
        sent, bodies = SentJson(value, parsed), _bodies(parsed)
        changes = [change for body in bodies for change in self._changes(body, sent, message.topic)]
        if not changes:
            return Skip("statement_of_rows")
        if len(bodies) > 1:
            _count_through(changes, self._limits)
        return Changes(changes)

    def native_rows(self) -> CanalNativeRows | None:
        """Return what the native path needs. None if rows do not contain all columns, if records are Protobuf, or
        if the limits leave no room for any message.
        """
        if not self._complete or self._protobuf or self._limits.json_depth < DEPTH:
            return None
        checked = self._continuity.action != "off"
        return CanalNativeRows(self._options, self._limits, self._heartbeats, self._layouts, is_checked=checked)

    def tables(self, message: Message) -> Sequence[TableName]:
        """Return the tables in all of a record's messages.

        Raises:
            MessageError: one of the messages cannot be parsed, or contains no table name.
        """
        value = message.value or b""
        if self._protobuf:
            value = b"\n".join(flat_messages(value))
        parsed = parse_sequence(value, self._limits, _ROWS)
        check_distinct(value, parsed)
        bodies = _bodies(parsed)
        by_topic = self._topics.find(message.topic)
        named = [(table_of(body) or by_topic) if isinstance(body, dict) else None for body in bodies]
        tables = [table for table in named if table is not None]
        if not bodies or len(tables) < len(bodies):
            raise MessageError(
                ErrorCode.TABLE_UNKNOWN, "the message does not contain the name of its table", path="$.table"
            )
        return tables

    def _changes(self, body: Any, sent: SentJson, topic: str) -> Sequence[Change]:
        if not isinstance(body, dict):
            reason = f"the message is a JSON {json_type(body)}, not an object or an array of objects"
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
        check_writer(body, self._profile)
        tidb = read_tidb(body)  # checked first, because all other fields can be missing if the row is stored elsewhere
        type_ = _type(body)
        head = read_head(type_, body, tidb, self._era_of, self._profile)
        if type_ in OPERATIONS:
            return self._rows(head.in_table(self._topics.find(topic)), body, sent, topic)
        return [_watermark(head)] if type_ == WATERMARK else self._without_rows(head, body)

    def _without_rows(self, head: Head, body: JsonObject) -> list[Change]:
        """Return the changes of a message without rows. In a QUERY, `isDdl` only helps to recognize the text of row
        events, because its meaning changed twice (§3.2).
        """
        for name in ("data", "old"):
            if has_rows(field(body, name, list, "$", optional=True) or ()):
                reason = f"a message of type {head.type} cannot have rows; expected {', '.join(OPERATIONS)}"
                raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path=f"$.{name}")
        if head.type == XA_COMMIT:
            return [end_of_xa(head)]
        return [] if head.type == QUERY and is_echo(head, body) else statement(head, self._spelling)

    def _rows(self, head: Head, body: JsonObject, sent: SentJson, topic: str) -> list[Change]:
        if field(body, "isDdl", bool, "$", optional=True):
            raise MessageError(ErrorCode.INVALID_FIELD, f"a message of type {head.type} has isDdl true", path="$.isDdl")
        data = read_data(body, self._limits, self._form, sent)
        old = read_old(body, self._limits, self._form, sent)
        if not data and not has_rows(old):
            return statement_in_place_of_rows(head, self._spelling)
        if head.table is None:
            raise _table_unknown(self._profile, topic)
        if head.table in self._heartbeats:
            return [alive(head)]
        images = read_images(head.type, data, old, head.era)
        types = read_types(body, self._limits)
        pk_names, key_notes = fit_key(read_pk_names(body, self._limits), images.first)
        if head.key_only and images.after:
            layout = self._layouts.of_key_only(head.table, types, pk_names)
            check_key_only(images.after, layout.schema, wanted=self._key_only)
        else:
            layout = self._layouts.of(head.table, types, pk_names)
        complete = self._complete and not head.key_only
        notes = (*key_notes, *notes_on_old(images, head.era, layout.key_columns)) if complete else key_notes
        rows = RowMessage(head, head.table, images, layout, sent, complete, notes)
        return [*row_changes(rows, self._limits)]


def _bodies(parsed: Sequence[Any]) -> list[Any]:
    """Return the messages of a record. These are its JSON values, and an array is expanded to its messages.

    Raises:
        MessageError: an empty array.
    """
    bodies: list[Any] = []
    for value in parsed:
        if value == []:
            raise MessageError(
                ErrorCode.UNSUPPORTED_SHAPE, "the value is an empty JSON array, so it contains no message"
            )
        bodies += value if isinstance(value, list) else [value]
    return bodies


def _type(body: JsonObject) -> str:
    """Return a message's type, which must be known and supported."""
    if body.get("type") not in _KNOWN:
        check_format(body)
    type_: str = field(body, "type", str, "$")
    if type_ in _NOT_TRANSLATED:
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"type {type_}: {_NOT_TRANSLATED[type_]}", path="$.type")
    if type_ not in _TYPES and type_ not in TYPES:
        raise MessageError(ErrorCode.UNKNOWN_OPERATION, unknown("type", type_, _TYPES), path="$.type")
    return type_


def _table_unknown(profile: str, topic: str) -> MessageError:
    """Return the error for rows without a table name. Flink's and SeaTunnel's own sinks leave the name to the
    operator.
    """
    if PROFILES[profile].native_cells:
        reason = f"and topic {quote(topic, 249)} is not in the option topics, which assigns tables to such messages"
    else:
        reason = (
            f"which profile {profile} requires; if the sink of Flink or SeaTunnel wrote it, declare profile "
            "flink_cdc, and declare the table with the option topics"
        )
    return MessageError(
        ErrorCode.TABLE_UNKNOWN, f"the message does not contain the name of its table, {reason}", path="$.table"
    )


def _watermark(head: Head) -> OtherChange:
    """Return a watermark. It means that TiCDC has sent everything that was committed before it (§5). A watermark is
    progress, not data.
    """
    if head.tidb is None or head.tidb.watermark_ts is None:
        reason = f"a message of type {head.type} contains no watermark time"
        raise MessageError(ErrorCode.MISSING_FIELD, reason, path="$._tidb.watermarkTs")
    change = OtherChange("watermark", head.declared_writer)
    change.ts_commit_us, change.ts_capture_us = head.ts_commit_us, head.ts_capture_us
    change.pos_native = str(head.tidb.watermark_ts)
    return change


def _count_through(changes: Sequence[Change], limits: Limits) -> None:
    """Number the rows in a record with several messages as if they were all in one message."""
    if len(changes) > limits.rows:
        reason = (
            f"the record contains {len(changes)} rows and statements, but only {limits.rows} are allowed (limits.rows)"
        )
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason)
    rows = [change for change in changes if isinstance(change, RowChange)]
    for index, change in enumerate(rows):
        change.row, change.rows = index, len(rows)
