"""Convert one message's rows to row changes. Images are paired only by index (§4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cdc_core.envelope import TableSchema
from translator.dialects._rows import Findings
from translator.dialects._source_text import SentJson
from translator.dialects.canal.envelope_fields import DBMS, Head
from translator.dialects.canal.layout import UNTYPED, Layout
from translator.dialects.canal.tidb import HANDLE_KEY_ONLY
from translator.dialects.canal.variant import Images, OldRow, Row
from translator.message import Limits, RowChange, TableName, Writer

OPERATIONS: Mapping[str, str] = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "INIT": "r"}
"""Types that contain rows. Only cloud services write INIT, the full load (§3.1)."""


class RowMessage(Struct, frozen=True):
    """A parsed message with rows. `complete`: the images contain all columns, except that `old` may list only the
    changes.

    `sent` is the message text.
    """

    head: Head
    table: TableName
    images: Images
    layout: Layout
    sent: SentJson
    complete: bool
    key_notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes for every row."""
        key_only = (HANDLE_KEY_ONLY,) if self.head.key_only else ()
        return (*self.layout.notes, *self.head.notes, *key_only, *self.images.notes, *self.key_notes)


def row_changes(message: RowMessage, limits: Limits) -> list[RowChange]:
    """Return the changes in row order."""
    images = message.images
    rows = len(images.after or images.before or ())
    nothing: Sequence[None] = (None,) * rows
    shared = _Shared(
        message,
        Writer(images.variant, images.basis, DBMS),
        message.layout.schema,
        message.notes,
        rows,
        Findings(sent=message.sent),
        _columns(message.layout.schema) if message.head.key_only else (),
    )
    pairs = zip(images.before or nothing, images.after or nothing, strict=True)
    return [_change(shared, index, before, after, limits) for index, (before, after) in enumerate(pairs)]


class _Shared(Struct):
    """The fields that all rows in a message share. An empty `findings` is reused for the next row, because few rows
    need more.

    `listed`: the table's columns, if an after image omits columns that exist.
    """

    message: RowMessage
    writer: Writer
    schema: TableSchema | None
    notes: tuple[str, ...]
    rows: int
    findings: Findings
    listed: Sequence[str]


def _change(shared: _Shared, index: int, before: OldRow, after: OldRow, limits: Limits) -> RowChange:
    message, findings = shared.message, shared.findings
    head, layout, columns = message.head, message.layout, message.layout.columns
    untyped = _untyped(layout, before, after)
    sparse, changed = False, None
    if before and after and message.complete:
        sparse = len(before) < len(after)
        changed = _changed(before, after)
    elif before and after:
        before = _with_key(before, after, layout.key_columns)
    # The arguments are positional, in field order: this runs once per row, and keyword arguments take four times as
    # long.
    change = RowChange(
        OPERATIONS[head.type],
        message.table,
        shared.writer,
        columns.image(before, findings, limits) if before else None,
        columns.image(after, findings, limits) if after else None,
        sparse,
        False,  # after_sparse
        # A delete does not define the columns, because its image can consist of the key alone (§4.7).
        shared.schema if after and not untyped else None,
        layout.key_columns,
        layout.key_kind,
        changed,
        _missing(shared.listed, after) if shared.listed and after else None,  # unavailable
        None,  # issues
        head.ts_commit_us,
        head.ts_capture_us,
        head.pos_native,
        head.tx,
        [*shared.notes, *untyped] or None,
        None,  # ext
        index,
        shared.rows,
        layout.types,
    )
    if findings.issues or findings.notes:
        change.issues = [*findings.issues] or None
        change.notes = [*(change.notes or ()), *findings.notes] or None
        shared.findings = Findings(sent=message.sent)
    return change


def _columns(schema: TableSchema | None) -> Sequence[str]:
    return () if schema is None else [column.name for column in schema.columns]


def _missing(listed: Sequence[str], row: Row) -> list[str] | None:
    return [name for name in listed if name not in row] or None


def _changed(before: Row, after: Row) -> list[str]:
    """Return columns whose text differs. After a message's first row, `old` may also list unchanged columns (§4.3)."""
    return [name for name, value in before.items() if value != after[name]]


def _with_key(old: Row, after: Row, key: Sequence[str]) -> Row:
    """Return `old`, plus the key columns that it omits because they did not change. Every row image contains the whole
    key.

    Other columns stay unknown. Under NOBLOB, `old` may lack a column that changed, because the server did not log its
    previous value. In that case, absent does not mean unchanged.
    """
    return {name: old.get(name, value) for name, value in after.items() if name in old or name in key}


def _untyped(layout: Layout, before: OldRow, after: OldRow) -> Sequence[str]:
    """If a message contains types, return notes on the columns that have none."""
    known = layout.columns.names
    # If a row has two images, one of them contains all columns of the other.
    row = after if len(after or ()) >= len(before or ()) else before
    if not known or row is None or row.keys() <= known:
        return ()
    return [f"{UNTYPED}={name}" for name in row if name not in known]
