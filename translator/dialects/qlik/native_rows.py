"""Describe a source's common row messages that the native path supports, and find the tables for reading them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct, structs

from translator._native.layout import (
    LayoutColumn,
    LayoutOperation,
    NativeLayout,
    NativeReader,
    QlikReading,
    RecordForm,
)
from translator.dialects.qlik.frame import CONFLUENT_AVRO, ENVELOPED_AVRO
from translator.dialects.qlik.native_avro import layout_column, record_step
from translator.dialects.qlik.row_schema import RowSchema
from translator.dialects.qlik.tables import UNKNOWN, Table
from translator.errors import MessageError
from translator.message import Lookup, Writer
from translator.values.native_kinds import native_kind

OPERATIONS = ("c", "u", "d", "r")
"""The letters for the operations, in the extension's order."""

DEPTH = 3
"""A message's nesting depth: the envelope, the message, a section."""


class Described(Struct, frozen=True):
    """All parts of a message that determine its table. Parts that do not matter are empty."""

    variant: str
    schema_id: str
    topic: str
    key: bytes
    schema: str
    table: str
    key_columns: bytes
    """The columns in the Kafka key, as JSON, for a table without another key."""

    key_schema_id: str
    """The schema id in the Kafka key, for a table without another key."""


class QlikNativeRows:
    """The dialect's support for the native path, for one source.

    Args:
        table: finds a table as the plain path does. If it returns None, the table is left to the plain path.
        row_schema: finds the schema for Avro rows by their metadata id, or by its own id.
        reversed_masks: the first byte of a mask in Avro is the least significant one.
    """

    def __init__(
        self,
        reading: QlikReading,
        lookup: Lookup,
        table: Callable[[Described], Table | None],
        row_schema: Callable[[str], RowSchema],
        *,
        reversed_masks: bool,
    ) -> None:
        self._reading = reading
        self._lookup = lookup
        self._table = table
        self._row_schema = row_schema
        self._reversed_masks = reversed_masks

    def open(self, form: RecordForm) -> NativeReader:
        """Return the extension's reader. The extension must be installed."""
        from translator._native import rows

        return rows.QlikRows(self._reading, form, form.compiler(self.layout), self._lookup)

    def layout(self, *parts: bytes) -> NativeLayout | None:
        """Return the layout for the table that the parts of `Described` identify, or None for the plain path.

        Raises:
            ValueError: a part is not text.
        """
        variant, schema_id, topic, key, schema, table, key_columns, key_schema_id = parts
        names = (variant.decode(), schema_id.decode(), topic.decode(), key, schema.decode(), table.decode())
        described = Described(*names, key_columns, key_schema_id.decode())
        try:
            found = self._table(described)
            if found is None or found.notes:
                return None
            if key_columns:
                found = found.with_key(msgspec.json.decode(key_columns, type=tuple[str, ...]))
            if described.variant in (ENVELOPED_AVRO, CONFLUENT_AVRO):
                return self._avro_layout(described.variant, found, self._row_schema(described.schema_id))
            return _layout(described.variant, found, _columns(found))
        except MessageError:
            return None

    def _avro_layout(self, variant: str, table: Table, schema: RowSchema) -> NativeLayout | None:
        """Return the layout for Avro rows. Return None if the structure of their sections was inferred, which is
        rare.
        """
        if schema.basis != "certain":
            return None
        layout = _layout(variant, table, _avro_columns(table, schema))
        record = record_step(schema.type, reversed_masks=self._reversed_masks)
        return None if layout is None else structs.replace(layout, record=record)


def words_of(operations: Mapping[str, str]) -> dict[bytes, int]:
    """Return each operation's number by its keywords, as JSON, spelled as in Replicate's messages."""
    return {msgspec.json.encode(word): OPERATIONS.index(op) for word, op in operations.items()}


def _columns(table: Table) -> tuple[LayoutColumn, ...]:
    """Return the columns for JSON rows."""
    columns = table.schema.columns if table.schema else ()
    converters = [table.converters[column.name] for column in columns]
    return tuple(
        LayoutColumn(column.name, native_kind(column.type, convert), convert)
        for column, convert in zip(columns, converters, strict=True)
    )


def _avro_columns(table: Table, schema: RowSchema) -> tuple[LayoutColumn, ...]:
    """Return the columns of Avro rows. Their types come from metadata or the operator or, failing that, from the
    schema.
    """
    columns = table.schema.columns if table.schema else ()
    return tuple(
        layout_column(column.name, column.type, table.converters[column.name], schema.declared.get(column.name))
        for column in columns
    )


def _layout(variant: str, table: Table, columns: tuple[LayoutColumn, ...]) -> NativeLayout | None:
    if columns and not {column.name for column in columns} >= set(table.key_columns):
        return None
    writer = Writer(variant, "certain", server=table.server, task=table.task)
    return NativeLayout(
        table.name,
        columns,
        table.key_columns,
        table.key_kind,
        table.schema,
        # A row with undeclared columns has no schema.
        tuple(
            tuple(LayoutOperation(op, writer, with_schema=with_schema, notes=()) for op in OPERATIONS)
            for with_schema in (True, False)
        ),
        LayoutColumn("", native_kind("unknown", UNKNOWN), UNKNOWN) if table.ordinals is None else None,
        tuple(table.ordinals[column.name] for column in columns) if table.ordinals else (),
        bool(table.lobs),
    )
