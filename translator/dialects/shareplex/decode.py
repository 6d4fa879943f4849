"""Convert one SharePlex message to its changes (§3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from cdc_core.envelope import Ddl
from cdc_core.sized_cache import SizedCache
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._json import JsonObject, field
from translator.dialects._rows import Findings, build_image
from translator.dialects._source_text import SentJson
from translator.dialects.shareplex import rows
from translator.dialects.shareplex.envelope_fields import Meta, MetaReader
from translator.dialects.shareplex.instants import Instants
from translator.dialects.shareplex.names import Table, compile_table, split_table
from translator.dialects.shareplex.native_rows import DEPTH, SharePlexNativeRows
from translator.dialects.shareplex.objects import read_objects
from translator.dialects.shareplex.options import WORDS, Options, documented, rules_of
from translator.dialects.shareplex.parts import PAIR, Part, joined
from translator.dialects.shareplex.rows import Cells, RowContext
from translator.errors import ErrorCode, FatalError, MessageError, quote, unknown
from translator.message import (
    Change,
    Changes,
    Message,
    OtherChange,
    Outcome,
    RowChange,
    Setup,
    Skip,
    TableName,
    Writer,
)

_CONTAINERS = frozenset((dict, list))


class SharePlex:
    """Decodes one source's SharePlex JSON."""

    name = "shareplex"

    def __init__(self, setup: Setup, options: Options) -> None:
        self._rules = rules_of(options)
        self._limits = setup.limits
        self._declared = DeclaredTables(setup.source, setup.tables)
        self._declared_keys = [(declared.table, declared.key) for declared in setup.tables]
        self._table = SizedCache(self._look_up)
        self._writer = SizedCache(self._writer_on, most=256 * 1024, longest=8 * 1024)
        self._instants = Instants(self._rules.zone, self._rules.zone_note)
        self._metas = MetaReader(self._rules, self._instants)

    def decode(self, message: Message) -> Outcome:
        """Return the changes of a message, one for each object in the value, after the two halves of an update have
        been joined.

        Raises:
            MessageError: the message becomes a dead letter. If the value contains several objects, `$[n]` in the
                error's path identifies the invalid object.
        """
        value = message.value
        if value is None:
            return Skip("tombstone")
        if not value:
            return Skip("empty")
        objects = read_objects(value, self._limits)
        several = len(objects) > 1
        parts = [_named(n if several else None, self._part, n, root) for n, root in enumerate(objects)]
        try:
            whole = joined(parts)
        except MessageError as error:
            path = error.path if several else error.path.replace("[0]", "", 1)
            raise MessageError(error.code, error.reason, path=path) from None
        sent = SentJson(value, objects)
        made = [_named(part.place if several else None, self._change, part, sent) for part in whole]
        if len(made) > 1:
            for row, change in enumerate(made):
                if isinstance(change, RowChange):
                    change.row, change.rows = row, len(made)
        return Changes(made)

    def native_rows(self) -> SharePlexNativeRows | None:
        """Return what the native path needs, or None if the limits leave no room for any message."""
        if self._limits.json_depth < DEPTH or not self._limits.rows:
            return None
        return SharePlexNativeRows(self._rules, self._instants, self._limits, self._table, self._writer)

    def learn(self, key: str, document: bytes) -> object:
        """Learn nothing, because SharePlex sends no metadata.

        Raises:
            FatalError: always, because the document belongs to another dialect.
        """
        raise FatalError("shareplex does not use metadata")

    def tables(self, message: Message) -> Sequence[TableName]:
        """Return the tables of all objects in a value.

        Raises:
            MessageError: one of the objects cannot be parsed, or contains no table name.
        """
        objects = read_objects(message.value or b"", self._limits)
        return [self._table_of(field(root, "meta", dict, "$")).name for root in objects]

    def hints(self, *, described: bool) -> list[str]:
        """Return hints about missing settings that no message can make up for."""
        zoneless = (
            [
                (
                    "options.timezone is not set, so commit and capture times without a time zone are unknown (note "
                    "TZ_UNKNOWN)"
                )
            ]
            if self._rules.zone is None
            else []
        )
        if not self._declared_keys:
            return [
                "no tables are declared (tables:), so inserts and deletes have no key, and columns have no type",
                *zoneless,
            ]
        return zoneless + [
            f"tables: {pattern} declares no key, and the messages for inserts and deletes do not contain one"
            for pattern, key in self._declared_keys
            if not key
        ]

    def _part(self, place: int, root: JsonObject) -> Part:
        if "meta" not in root and root.keys() >= {"data", "type"}:
            reason = "the message has data and type but no meta, so it was written by the Flink sink, not by SharePlex"
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
        sent = field(root, "meta", dict, "$")
        operation = self._operation(field(sent, "op", str, "$.meta"))
        return Part(place, operation, root, sent, self._table_of(sent))

    def _operation(self, op: str) -> str:
        known = self._rules.operations
        word = known.get(op) or documented(op)
        if word is None:
            reason = unknown("operation", op, {*known, *WORDS})
            raise MessageError(ErrorCode.UNKNOWN_OPERATION, reason, path="$.meta.op")
        return word

    def _table_of(self, sent: JsonObject) -> Table:
        raw = field(sent, "table", str, "$.meta", optional=True)
        if raw is None:
            raw = self._rules.default_table
        if raw is None:
            reason = "meta contains no table, and the option default_table is not set"
            raise MessageError(ErrorCode.TABLE_UNKNOWN, reason, path="$.meta.table")
        return self._table(raw)

    def _look_up(self, raw: str) -> Table:
        return compile_table(split_table(raw, "$.meta.table"), self._declared)

    def _writer_on(self, host: str | None) -> Writer:
        return Writer(variant=self._rules.preset, variant_basis="declared", server=host)

    # -- the plain path: one builder per operation

    def _change(self, part: Part, sent: SentJson) -> Change:
        operation = _OPERATIONS[part.operation]
        meta = self._metas.read(part.meta)
        if not part.root.keys() <= operation.members:
            _keep_leftovers(part.root, operation.members, meta, "")
        row = RowContext(part.table, meta, self._writer(meta.host), Findings(sent=sent))
        return operation.build(self, part, row)

    def _insert(self, part: Part, row: RowContext) -> Change:
        return rows.insert(row, self._cells(part, "data", row))

    def _update(self, part: Part, row: RowContext) -> Change:
        data = self._cells(part, "data", row, may_be_empty=True)
        key = self._cells(part, "key", row, may_be_empty=True) if part.root.get("key") is not None else None
        if key is not None and not key.names:
            key = None
        if not data.names and key is None:
            raise MessageError(ErrorCode.INVALID_FIELD, "data and key of an update are both empty", path="$.data")
        return rows.update(row, data, key, key_is_key=self._rules.key_is_key)

    def _delete(self, part: Part, row: RowContext) -> Change:
        return rows.delete(row, self._cells(part, "data", row))

    def _truncate(self, part: Part, row: RowContext) -> Change:
        return rows.truncate(row)

    def _drop_column(self, part: Part, row: RowContext) -> Change:
        """Return the event for DROP COLUMN. Only the documented keyword is known. If the message contains the column,
        it stays in `ext`.
        """
        meta = row.meta
        return OtherChange(
            "schema",
            row.writer,
            table=row.table.name,
            ddl=Ddl(type="DROP COLUMN"),
            ts_commit_us=meta.ts_commit_us,
            ts_capture_us=meta.ts_capture_us,
            pos_native=meta.scn,
            tx=meta.tx,
            notes=meta.notes or None,
            ext=meta.ext or None,
        )

    def _pair(self, part: Part, row: RowContext) -> Change:
        """Join the two halves of an update. Where their metadata differ, the second half decides, and `ext` keeps the
        values of the first one.
        """
        if part.other is None:
            raise ValueError("a pair consists of two halves")
        try:
            before = self._first_image(part.other, part, row)
        except MessageError as error:
            raise MessageError(error.code, f"{error.reason}, in its UPDATE BEFORE", path=error.path) from None
        return rows.pair(row, before, self._cells(part, "data", row))

    def _first_image(self, half: Part, other: Part, row: RowContext) -> Cells:
        self._metas.read(half.meta)  # the first half can be the invalid one
        _keep_leftovers(half.root, _OPERATIONS[PAIR].members, row.meta, "UPDATE BEFORE ")
        for name, value in half.meta.items():
            if name != "op" and value is not None and value != other.meta.get(name):
                row.meta.keep(f"UPDATE BEFORE $.meta.{name}", value)
        return self._cells(half, "data", row)

    # -- shared by the builders

    def _cells(self, part: Part, name: str, row: RowContext, *, may_be_empty: bool = False) -> Cells:
        cells: JsonObject = field(part.root, name, dict, "$")
        path = f"$.{name}"
        if not cells and not may_be_empty:
            raise MessageError(ErrorCode.INVALID_FIELD, f"{name} contains no columns", path=path)
        if len(cells) > self._limits.columns:
            reason = f"the row has {len(cells)} columns, but only {self._limits.columns} are allowed (limits.columns)"
            raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason, path=path)
        if not _CONTAINERS.isdisjoint(map(type, cells.values())):
            column = next(column for column, value in cells.items() if type(value) in _CONTAINERS)
            reason = f"column {quote(column)} is an object or an array; expected a string, number, boolean or null"
            raise MessageError(ErrorCode.INVALID_FIELD, reason, path=path)
        return Cells(cells, build_image(cells.items(), row.table.converters, row.findings, self._limits))


def _named(place: int | None, step: Callable[..., Any], *given: Any) -> Any:
    """Apply a step to an object. If the value contains several objects, the path in an error begins with the object's
    number.
    """
    try:
        return step(*given)
    except MessageError as error:
        if place is None:
            raise
        raise MessageError(error.code, error.reason, path=f"$[{place}]{error.path[1:]}") from None


def _keep_leftovers(root: JsonObject, read: frozenset[str], meta: Meta, whose: str) -> None:
    for name, value in root.items():
        if name not in read and value is not None:
            meta.keep(f"{whose}$.{name}", value)
            meta.note(f"NOT_TRANSLATED={name}")


class _Operation(Struct, frozen=True):
    build: Callable[[SharePlex, Part, RowContext], Change]
    members: frozenset[str]
    """The root fields that are read. Other fields are kept in `ext`."""


_OPERATIONS: Mapping[str, _Operation] = {
    "ins": _Operation(SharePlex._insert, frozenset(("meta", "data"))),
    "upd": _Operation(SharePlex._update, frozenset(("meta", "data", "key"))),
    "del": _Operation(SharePlex._delete, frozenset(("meta", "data"))),
    "TRUNCATE": _Operation(SharePlex._truncate, frozenset(("meta",))),
    "DROP COLUMN": _Operation(SharePlex._drop_column, frozenset(("meta",))),
    PAIR: _Operation(SharePlex._pair, frozenset(("meta", "data"))),
}
