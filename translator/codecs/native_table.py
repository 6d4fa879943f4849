"""Prepare the bytes that all events of a table share on the native path, using the codec's own functions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cdc_core.envelope import NO_KEY, ChangeEvent, Context, Detail, ImageText, Origin, TableSchema
from cdc_core.position import position
from translator._native.layout import (
    LayoutColumn,
    LayoutOperation,
    NativeCodec,
    NativeColumn,
    NativeLayout,
    NativeTable,
    TableOperation,
)
from translator.codecs import _datum
from translator.codecs.record import ID_HEADER, Record, record_key_head, record_size, shared_headers
from translator.message import Counted, TableName

BEFORE_MERGED = "BEFORE_MERGED"
"""The note for an old image that was completed."""


def native_table(source: str, dialect: str, outputs: Sequence[NativeCodec], layout: NativeLayout) -> NativeTable:
    """Return the parts that the extension writes for every row of a table.

    Raises:
        ValueError: a name that UTF-8 cannot encode.
    """
    table = layout.table
    names = [column.name for column in layout.columns]
    return NativeTable(
        tuple(map(_column, layout.columns)),
        tuple(sorted(range(len(names)), key=names.__getitem__)),
        tuple(names.index(name) for name in layout.key_columns) if names else (),
        tuple(map(msgspec.json.encode, layout.key_columns)),
        None if layout.undeclared is None else _column(layout.undeclared),
        layout.ordinals,
        layout.has_lobs,
        layout.record,
        _datum.text(layout.key_kind if layout.key_columns else "none"),
        record_key_head(source, table.db, table.schema, table.table),
        tuple(
            tuple(None if found is None else _operation(source, dialect, outputs, layout, found) for found in era)
            for era in layout.operations
        ),
    )


def _column(column: LayoutColumn) -> NativeColumn:
    quoted, avro_name = msgspec.json.encode(column.name), _datum.text(column.name)
    return NativeColumn(quoted, avro_name, column.kind, column.convert, column.is_open)


def _operation(
    source: str, dialect: str, outputs: Sequence[NativeCodec], layout: NativeLayout, operation: LayoutOperation
) -> TableOperation:
    table, writer, op = layout.table, operation.writer, operation.op
    schema = layout.schema if operation.with_schema else None
    schema_id = schema.id if schema else None
    name = (table.db, table.schema, table.table)
    wrote = (writer.variant, writer.variant_basis, writer.dbms, writer.server, writer.task)
    event = _sample(source, dialect, table, operation, schema_id)
    first, last = shared_headers(("row", op, *name, source, schema_id))
    return TableOperation(
        operation,
        table,
        Counted(*name, op),
        schema.topic_key if schema else None,
        _datum.shared_names("row", op, source, dialect, (*wrote, *name)),
        _datum.text(_state(layout, schema)),
        _datum.maybe_text(schema_id),
        _datum.maybe_names(operation.notes),
        _datum.maybe_names((*operation.notes, BEFORE_MERGED)),
        first,
        last,
        record_size(Record(None, None, [*first, (ID_HEADER, b""), *last])),
        tuple(codec.native_operation(event, schema) for codec in outputs),
        schema,
        ("row", op, source, dialect, *wrote, *name),
        schema_id,
    )


def _sample(
    source: str, dialect: str, table: TableName, operation: LayoutOperation, schema_id: str | None
) -> ChangeEvent:
    """Return an event with this operation, without position, times, key and images."""
    writer = operation.writer
    at = Context(
        id="",
        source=source,
        dialect=dialect,
        variant=writer.variant,
        variant_basis=writer.variant_basis,
        dbms=writer.dbms,
        server=writer.server,
        task=writer.task,
        db=table.db,
        schema=table.schema,
        table=table.table,
        pos=position(0, 0),
        pos_scope="",
        pos_native=None,
        ts_commit_us=None,
        ts_capture_us=None,
        ts_origin_us=0,
        schema_id=schema_id,
        tx=None,
        origin=Origin("", 0, 0, 0, 1),
    )
    event = ChangeEvent.insert(at, NO_KEY, ImageText("{}", "partial"), Detail())
    return msgspec.structs.replace(event, op=operation.op)


def _state(layout: NativeLayout, schema: TableSchema | None) -> str:
    """Return the state of an image with all columns, following the rule in `translation/event_builders.py`."""
    names = {column.name for column in layout.columns}
    if schema is not None and names >= schema.column_names:
        return "full"
    return "key" if layout.key_columns and names == set(layout.key_columns) else "partial"
