"""Convert a parsed row to its change. The meaning of `data` and `key` depends on the operation (§4)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from cdc_core.envelope import TableSchema
from translator.dialects._rows import Findings
from translator.dialects.shareplex.envelope_fields import Meta
from translator.dialects.shareplex.names import Table
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Image, RowChange, Writer


class Cells(Struct):
    """An object with cells: the column names as sent, and the image with the values that have a faithful canonical
    form.
    """

    names: dict[str, Any]
    image: Image


class RowContext(Struct):
    """The input that all builders receive in addition to the cells."""

    table: Table
    meta: Meta
    writer: Writer
    findings: Findings


def insert(row: RowContext, data: Cells) -> RowChange:
    """Return the change for a new row, which is in `data`. Native Post omits NULL columns, and only a declared schema
    shows which columns are missing.
    """
    schema, image = _schema(row, data), data.image
    if schema is not None and len(data.names) < len(row.table.columns):
        # Key columns are never NULL, so a missing key column was not replicated, and the key is unknown.
        values = [column.name for column in schema.columns if column.key is None]
        omitted = dict.fromkeys(name for name in values if name not in data.names)
        if omitted:
            image = image | omitted
            row.meta.note("NULLS_OMITTED")
    return _change(row, "c", None, image, schema)


def delete(row: RowContext, data: Cells) -> RowChange:
    """Return the change for a deleted row, which is in `data` rather than in `key`."""
    return _change(row, "d", data.image, None, _schema(row, data))


def update(row: RowContext, data: Cells, key: Cells | None, *, key_is_key: bool) -> RowChange:
    """Return the change for an update. `data` contains the changed columns, and `key` contains old values. They are
    either the old key or a wide image.

    Raises:
        MessageError: KEY_MISSING, because nothing identifies the row.
    """
    table = row.table
    if key is None:
        if not (table.key and data.names.keys() >= table.key_set):
            reason = "the update has no key, and data lacks the configured key columns (tables:)"
            raise MessageError(ErrorCode.KEY_MISSING, reason, path="$.key")
        row.meta.note("KEY_OLD_UNKNOWN")
        return _change(row, "u", None, data.image, _schema(row, data), changed=list(data.names))
    schema, changed = _schema(row, key, data), _changed(key, data)
    key_columns = table.key
    if not key_columns:
        if key_is_key and _is_key(key, changed):
            key_columns = tuple(key.names)
            row.meta.note("KEY_FROM_MESSAGE")
    elif not key.names.keys() >= table.key_set:
        row.meta.note("KEY_OLD_UNKNOWN")
    return _change(row, "u", key.image, data.image, schema, key_columns, changed, after_sparse=True)


def pair(row: RowContext, before: Cells, after: Cells) -> RowChange:
    """Return the change for an UPDATE BEFORE and its UPDATE AFTER, which have one image each. No sample shows them.

    If only the second image lacks a column, the column is unchanged, or it is NULL and therefore omitted, as in
    inserts.

    Raises:
        MessageError: UNSUPPORTED_SHAPE, because such a column exists.
    """
    if not after.names.keys() >= before.names.keys():
        lacking = next(name for name in before.names if name not in after.names)
        reason = f"UPDATE AFTER lacks column {quote(lacking)} of UPDATE BEFORE, so this column may be unchanged or NULL"
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path="$.data")
    schema = _schema(row, before, after)
    changed = _changed(before, after) if len(before.names) == len(after.names) else None
    return _change(row, "u", before.image, after.image, schema, changed=changed)


def truncate(row: RowContext) -> RowChange:
    """Return the change for a TRUNCATE, which needs no row."""
    return _change(row, "t", None, None, row.table.schema, ())


def _changed(before: Cells, after: Cells) -> list[str]:
    """Return the columns in `after` whose value in `before` is different, is missing, or has no faithful canonical
    form.
    """
    old, new = before.image, after.image
    return [name for name in after.names if name not in old or name not in new or old[name] != new[name]]


def _is_key(key: Cells, changed: list[str]) -> bool:
    """Return whether the columns in `key` can only be the key.

    A wide image (if all columns are logged, or no unique index exists) also contains the old value of a changed column,
    or a null. So does a key that changes. Only `tables:` can show whether such a `key` is a wide image or the key.
    """
    return bool(key.names) and key.names.keys().isdisjoint(changed) and None not in key.names.values()


def _schema(row: RowContext, *images: Cells) -> TableSchema | None:
    """Return the declared schema, unless a cell shows that it is incomplete."""
    table = row.table
    if table.schema is None:
        return None
    for cells in images:
        if not cells.names.keys() <= table.columns:
            undeclared = next(name for name in cells.names if name not in table.columns)
            row.meta.note(f"UNDECLARED_COLUMN={undeclared}")
            return None
    return table.schema


def _change(
    row: RowContext,
    op: str,
    before: Image | None,
    after: Image | None,
    schema: TableSchema | None,
    key_columns: tuple[str, ...] | None = None,
    changed: list[str] | None = None,
    *,
    after_sparse: bool = False,
) -> RowChange:
    """Return the change. `key_columns` defaults to the table's."""
    table, meta, findings = row.table, row.meta, row.findings
    if key_columns is None:
        key_columns = table.key
    if not key_columns and op != "t":
        meta.note("KEY_UNDECLARED")
    issues, notes = None, meta.notes or None
    if findings.issues or findings.notes:
        issues, notes = [*findings.issues] or None, [*meta.notes, *findings.notes] or None
    # The arguments are positional, in field order: this runs once per message, and keyword arguments take four times as
    # long.
    return RowChange(
        op,
        table.name,
        row.writer,
        before,
        after,
        False,  # before_sparse
        after_sparse,
        schema,
        key_columns,
        table.key_kind if table.key or not key_columns else "unique",
        changed,
        None,  # unavailable
        issues,
        meta.ts_commit_us,
        meta.ts_capture_us,
        meta.scn,
        meta.tx,
        notes,
        meta.ext or None,
        0,  # row
        1,  # rows
        None if table.schema is None else table.schema.column_types,
    )
