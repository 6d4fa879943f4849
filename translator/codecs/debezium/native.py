"""Prepare what the native path needs for a projection, using the codec's own functions.

For this codec, rows on the native path differ in only two respects: whether they have a key, and how complete their old
image is. The output for each case comes from a sample row. The bytes that all rows with the same operation share are
cut out of a sample record.
"""

from __future__ import annotations

from itertools import product

import msgspec

from cdc_core.envelope import ChangeEvent, TableSchema
from translator._native.layout import AvroTables, DebeziumOperation, ProjectedChange, ProjectedColumn, SchemaBlocks
from translator.codecs.debezium.connect import TableTypes
from translator.codecs.debezium.envelope import OFFSET_LIMIT, payload
from translator.codecs.debezium.form import Form, FormOf
from translator.codecs.debezium.images import Columns, ConnectChange, ImageRow, changes, operation_of
from translator.codecs.debezium.options import Options
from translator.errors import MessageError

_KEY: Columns = {"key": msgspec.Raw(b"1")}
_ROW: Columns = {**_KEY, "changed": msgspec.Raw(b"2")}
_BEFORE: tuple[Columns | None, ...] = (None, _KEY, _ROW)
"""The possible old images, in the extension's order: none, an incomplete one, and a complete one."""

_columns = msgspec.json.Decoder(Columns).decode


class _Blocks:
    """The schema blocks for one operation, cut out of records that the codec writes."""

    def __init__(self, event: ChangeEvent, op: str, form: Form) -> None:
        self._event = event
        self._op = op
        self._form = form

    def value(self, before: bytes | None, after: bytes | None, commit_us: int | None) -> bytes:
        """Return the block for a value with these images and this commit time."""
        event = msgspec.structs.replace(self._event, ts_commit_us=commit_us)
        old, new = (None if image is None else _columns(image) for image in (before, after))
        return block_of(self._form.value(payload(event, ConnectChange(self._op, None, old, new), 0)))

    def key(self, key: bytes) -> bytes:
        """Return the block for a key."""
        return block_of(self._form.key(_columns(key)))


def block_of(record: bytes) -> bytes:
    """Return the schema block of a key or value."""
    return bytes(_columns(record)["schema"])


def json_operation(
    options: Options, form_of: FormOf, event: ChangeEvent, schema: TableSchema | None
) -> DebeziumOperation:
    """Return what a JSON projection's records for one operation share.

    Args:
        event: a sample event with this operation.
    """
    op = operation_of(event)
    text = msgspec.json.encode(payload(event, ConnectChange(op, None, None, None), 0))
    head, _, rest = text.partition(b'"source":')[2].partition(b'"sequence":')
    origin = rest.partition(b',"lsn":0')[2].partition(b',"transaction":')[0]
    blocks = _Blocks(event, op, form_of(event, schema)) if options.schema_block else None
    return debezium_operation(options, event, schema, head, origin, blocks=blocks)


def debezium_operation(
    options: Options,
    event: ChangeEvent,
    schema: TableSchema | None,
    source: bytes,
    origin: bytes,
    *,
    blocks: SchemaBlocks | None = None,
    tables: AvroTables | None = None,
) -> DebeziumOperation:
    """Return what a projection's records for one operation share, given the parts that depend on its format."""
    op = operation_of(event)
    cases = product(_BEFORE, (None, _KEY))
    return DebeziumOperation(
        OFFSET_LIMIT,
        options.tombstones,
        options.unavailable == "omit",
        source,
        origin,
        tuple(_changes(options, op, before, key) for before, key in cases),
        projected_columns(schema),
        blocks,
        tables,
    )


def projected_columns(schema: TableSchema | None) -> tuple[ProjectedColumn, ...]:
    """Return the columns of a schema in the extension's format."""
    if schema is None:
        return ()
    types = TableTypes((), schema)
    return tuple(
        ProjectedColumn(msgspec.json.encode(column.name), column.name in types.declared, column.name in types.floats)
        for column in schema.columns
    )


def _changes(
    options: Options, op: str, before: Columns | None, key: Columns | None
) -> tuple[ProjectedChange, ...] | None:
    row = ImageRow(
        op=op,
        key=key,
        key_old=None,
        before=before,
        after=None if op == "d" else _ROW,
        before_state="key" if before == _KEY else "full",
        changed=None if before is None else _ROW.keys() - _KEY.keys(),
        without_form=frozenset(),
        withheld=frozenset(),
        schema=None,
    )
    try:
        return tuple(_change(row, change) for change in changes(row, options))
    except MessageError:
        return None


def _change(row: ImageRow, change: ConnectChange) -> ProjectedChange:
    images = {"none": None, "sent": row.before, "key": _KEY}
    kind = next(name for name, image in images.items() if change.before == image)
    return ProjectedChange(msgspec.json.encode(change.op), kind)
