"""One SharePlex message -> its changes (formats/shareplex.md sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from translator.dialects._json import JsonObject, field
from translator.dialects._rows import build_image
from translator.dialects._tables import DeclaredTables
from translator.dialects.shareplex.meta import Meta, read_meta
from translator.dialects.shareplex.names import Table, compile_table, split_table
from translator.dialects.shareplex.objects import read_objects
from translator.dialects.shareplex.options import ALIASES, rules_of
from translator.envelope import Ddl
from translator.errors import ErrorCode, FatalError, MessageError, quote, unknown
from translator.message import Change, Changes, Image, Message, OtherChange, Outcome, RowChange, Setup, Skip, Writer

_TABLES_CACHED = 4096
_CONTAINERS = frozenset((dict, list))


class SharePlex:
    """SharePlex JSON of one source."""

    name = "shareplex"

    def __init__(self, setup: Setup, options: Mapping[str, Any]) -> None:
        self._rules = rules_of(options)
        self._limits = setup.limits
        self._declared = DeclaredTables(setup.source, setup.tables)
        self._table = lru_cache(maxsize=_TABLES_CACHED)(self._look_up)
        self._writer = Writer(variant=self._rules.preset, variant_basis="declared")

    def decode(self, message: Message) -> Outcome:
        """Each object of the value is one change and one row of the message.

        Raises:
            MessageError: the message becomes a dead letter; of several rows, `$[n]` in its path is the bad one.
        """
        if message.value is None:
            return Skip("tombstone")
        if not message.value:
            return Skip("empty")
        objects = read_objects(message.value, self._limits)
        if len(objects) == 1:
            return Changes([self._change(objects[0])])
        return Changes([self._row_of_several(root, row, len(objects)) for row, root in enumerate(objects)])

    def learn(self, key: str, document: bytes) -> object:
        """SharePlex sends no metadata.

        Raises:
            FatalError: always; the document belongs to another dialect.
        """
        raise FatalError("shareplex learns nothing from messages")

    def _row_of_several(self, root: JsonObject, row: int, rows: int) -> Change:
        try:
            change = self._change(root)
        except MessageError as error:
            raise MessageError(error.code, error.reason, path=f"$[{row}]{error.path[1:]}") from None
        if isinstance(change, RowChange):
            change.row, change.rows = row, rows
        return change

    def _change(self, root: JsonObject) -> Change:
        if "meta" not in root and root.keys() >= {"data", "type"}:
            reason = "data and type without meta: that is what the Flink sink writes, not SharePlex"
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
        sent = field(root, "meta", dict, "$")
        operation = _OPERATIONS[self._operation_word(field(sent, "op", str, "$.meta"))]
        table = self._table_of(sent)
        meta = read_meta(sent, self._rules)
        if not root.keys() <= operation.members:
            _keep_leftovers(root, operation.members, meta)
        change = operation.build(self, root, table, meta)
        if isinstance(change, RowChange):
            change.issues = [*meta.findings.issues] or None
            if change.op != "t" and not change.key_columns:
                meta.note("KEY_UNDECLARED")
        change.ts_commit_us = meta.ts_commit_us
        change.ts_capture_us = meta.ts_capture_us
        change.pos_native = meta.scn
        change.tx = meta.tx
        change.notes = [*meta.notes, *meta.findings.notes] or None
        change.ext = meta.ext or None
        return change

    def _operation_word(self, op: str) -> str:
        known = self._rules.operations
        word = known.get(op) or ALIASES.get(op.upper().replace(" ", "").replace("_", ""))
        if word is None:
            reason = unknown("operation", op, {**known, **ALIASES})
            raise MessageError(ErrorCode.UNKNOWN_OPERATION, reason, path="$.meta.op")
        return word

    def _table_of(self, sent: JsonObject) -> Table:
        raw = field(sent, "table", str, "$.meta", optional=True)
        if raw is None:
            raw = self._rules.default_table
        if raw is None:
            reason = "meta names no table, and the option default_table is not set"
            raise MessageError(ErrorCode.TABLE_UNKNOWN, reason, path="$.meta.table")
        return self._table(raw)

    def _look_up(self, raw: str) -> Table:
        return compile_table(split_table(raw, "$.meta.table"), self._declared)

    # -- one builder per operation

    def _insert(self, root: JsonObject, table: Table, meta: Meta) -> Change:
        """The new row is in `data`. Native Post leaves NULL columns out, which only a declared schema can tell."""
        data = self._cells(root, "data")
        change = self._row("c", table, meta, data)
        change.after = self._image(data, table, meta)
        if change.schema is not None:
            # No key column is NULL: one that is missing was not replicated, and the key stays unknown.
            values = [column.name for column in change.schema.columns if column.key is None]
            omitted = [name for name in values if name not in data]
            if omitted:
                change.after.update(dict.fromkeys(omitted))
                meta.note("NULLS_OMITTED")
        return change

    def _update(self, root: JsonObject, table: Table, meta: Meta) -> Change:
        """`data` holds the changed columns, `key` old values: those of the key, or a wide image (section 4)."""
        data = self._cells(root, "data", may_be_empty=True)
        key = self._cells(root, "key", may_be_empty=True) if root.get("key") is not None else {}
        if not data and not key:
            raise MessageError(ErrorCode.INVALID_FIELD, "data and key of an update are both empty", path="$.data")
        if not key and not (table.key and data.keys() >= table.key_set):
            reason = "an update without key, and no configured key columns (tables:) that data holds"
            raise MessageError(ErrorCode.KEY_MISSING, reason, path="$.key")
        change = self._row("u", table, meta, {**key, **data})
        before = self._image(key, table, meta)
        after = self._image(data, table, meta)
        change.before = before if key else None
        change.after, change.after_sparse = after, True
        change.changed = [
            name for name in data if name not in before or name not in after or before[name] != after[name]
        ]
        if not table.key and self._rules.key_is_key and _is_key(key, change.changed):
            change.key_columns, change.key_kind = tuple(key), "unique"
            meta.note("KEY_FROM_MESSAGE")
        elif not key.keys() >= table.key_set:
            meta.note("KEY_OLD_UNKNOWN")
        return change

    def _delete(self, root: JsonObject, table: Table, meta: Meta) -> Change:
        """The old row is in `data`, not in `key`."""
        data = self._cells(root, "data")
        change = self._row("d", table, meta, data)
        change.before = self._image(data, table, meta)
        return change

    def _truncate(self, root: JsonObject, table: Table, meta: Meta) -> Change:
        return RowChange("t", table.name, self._writer_of(meta), schema=table.schema)

    def _drop_column(self, root: JsonObject, table: Table, meta: Meta) -> Change:
        """The documented word is all that is known: which column it was, if that is sent, stays in `ext`."""
        return OtherChange("schema", self._writer_of(meta), table=table.name, ddl=Ddl(type="DROP COLUMN"))

    def _half_an_update(self, root: JsonObject, table: Table, meta: Meta) -> Change:
        reason = "half an update (UPDATE BEFORE or UPDATE AFTER): this release does not join the two messages"
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path="$.meta.op")

    # -- what the builders share

    def _cells(self, root: JsonObject, name: str, *, may_be_empty: bool = False) -> JsonObject:
        cells: JsonObject = field(root, name, dict, "$")
        path = f"$.{name}"
        if not cells and not may_be_empty:
            raise MessageError(ErrorCode.INVALID_FIELD, f"{name} names no column", path=path)
        if len(cells) > self._limits.columns:
            reason = f"{len(cells)} columns, {self._limits.columns} are allowed (limits.columns)"
            raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason, path=path)
        if not _CONTAINERS.isdisjoint(map(type, cells.values())):
            column = next(column for column, value in cells.items() if type(value) in _CONTAINERS)
            reason = f"column {quote(column)} holds an object or an array; a cell is a string, number, boolean or null"
            raise MessageError(ErrorCode.INVALID_FIELD, reason, path=path)
        return cells

    def _row(self, op: str, table: Table, meta: Meta, cells: JsonObject) -> RowChange:
        """A row without its images. Its schema is the declared one, unless a cell shows that to be incomplete."""
        schema = table.schema
        if schema is not None and not cells.keys() <= table.columns:
            undeclared = next(name for name in cells if name not in table.columns)
            meta.note(f"UNDECLARED_COLUMN={undeclared}")
            schema = None
        kind = "configured" if table.key else "none"
        return RowChange(op, table.name, self._writer_of(meta), schema=schema, key_columns=table.key, key_kind=kind)

    def _image(self, cells: JsonObject, table: Table, meta: Meta) -> Image:
        return build_image(cells.items(), table.converters, meta.findings, self._limits)

    def _writer_of(self, meta: Meta) -> Writer:
        if meta.host is None:
            return self._writer
        return msgspec.structs.replace(self._writer, server=meta.host)


def _is_key(key: JsonObject, changed: list[str]) -> bool:
    """Whether the columns of `key` can only be the key.

    A wide image (all columns logged, or no unique index) holds the old value of a changed column too, or a null; so
    does the key itself when it changes. Which of the two it is, only `tables:` can tell.
    """
    return bool(key) and key.keys().isdisjoint(changed) and None not in key.values()


def _keep_leftovers(root: JsonObject, read: frozenset[str], meta: Meta) -> None:
    for name, value in root.items():
        if name not in read and value is not None:
            meta.keep(f"$.{name}", value)
            meta.note(f"NOT_TRANSLATED={name}")


class _Operation(Struct, frozen=True):
    build: Callable[[SharePlex, JsonObject, Table, Meta], Change]
    members: frozenset[str]
    """The members of the root that it reads; others are kept in `ext`."""


_OPERATIONS: Mapping[str, _Operation] = {
    "ins": _Operation(SharePlex._insert, frozenset(("meta", "data"))),
    "upd": _Operation(SharePlex._update, frozenset(("meta", "data", "key"))),
    "del": _Operation(SharePlex._delete, frozenset(("meta", "data"))),
    "TRUNCATE": _Operation(SharePlex._truncate, frozenset(("meta",))),
    "DROP COLUMN": _Operation(SharePlex._drop_column, frozenset(("meta",))),
    "UPDATE BEFORE": _Operation(SharePlex._half_an_update, frozenset(("meta",))),
    "UPDATE AFTER": _Operation(SharePlex._half_an_update, frozenset(("meta",))),
}
