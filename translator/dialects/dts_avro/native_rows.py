"""A source's common row messages that the native path supports, and the tables for reading them."""

from __future__ import annotations

from collections.abc import Callable

from translator._native.layout import (
    DtsAvroReading,
    LayoutColumn,
    LayoutOperation,
    NativeLayout,
    NativeReader,
    RecordForm,
)
from translator.dialects.dts_avro import charsets
from translator.dialects.dts_avro.envelope_fields import writer_of
from translator.dialects.dts_avro.layout import Layout
from translator.dialects.dts_avro.options import Options
from translator.dialects.dts_avro.record import VERSION_2, VERSION_3, DtsRecord
from translator.dialects.dts_avro.rows import LOGICAL_NAMES, ROWS, RowReader
from translator.dialects.dts_avro.schema import OPERATIONS, SOURCE_TYPES
from translator.dialects.dts_avro.types import MYSQL_FAMILY
from translator.message import Limits
from translator.values import converter
from translator.values.native_kinds import native_kind, with_fraction

_UTF8 = [name for name, decode in charsets.OTHERS.items() if decode == bytes.decode and charsets.MYSQL[name] == decode]


class DtsAvroNativeRows:
    """The dialect's support for the native path, for one source."""

    def __init__(
        self,
        options: Options,
        limits: Limits,
        read: Callable[[bytes], DtsRecord],
        rows: RowReader,
    ) -> None:
        self._read = read
        self._rows = rows
        self._reading = DtsAvroReading(
            tuple(OPERATIONS.index(name) for name in ROWS),
            len(OPERATIONS),
            len(SOURCE_TYPES),
            tuple(SOURCE_TYPES.index(name) for name in sorted(MYSQL_FAMILY)),
            tuple(spelled.encode() for name in _UTF8 for spelled in (name, name.upper())),
            tuple(name.encode() for name in LOGICAL_NAMES) if options.logical_names else (),
            options.extras,
            limits.value_bytes,
            limits.columns,
        )

    def open(self, form: RecordForm) -> NativeReader:
        """Return the extension's reader. The extension must be installed."""
        from translator._native import rows

        return rows.DtsAvroRows(self._reading, form, form.compiler(self.layout), form.compiler(self.contrary_layout))

    def layout(self, message: bytes) -> NativeLayout:
        """Return the layout for rows like the one in this message. The layout ignores values that contradict it.

        Raises:
            MessageError: the message cannot be read.
        """
        record = self._read(message)
        return _native_layout(record, self._rows.layout(record))

    def contrary_layout(self, message: bytes) -> NativeLayout:
        """Return the layout for rows that contradict the same columns as this message.

        Raises:
            MessageError: the message cannot be read.
        """
        record = self._read(message)
        return _native_layout(record, self._rows.layout_as_sent(record))


def _native_layout(record: DtsRecord, layout: Layout) -> NativeLayout:
    open_columns = {index for index, _ in layout.text_or_bytes}
    digits = layout.shape.reading.digits
    return NativeLayout(
        layout.shape.table,
        tuple(
            LayoutColumn(
                column.name,
                with_fraction(native_kind(column.type, converter(column.type)), digits),
                layout.converters[column.name],
                is_open=index in open_columns,
            )
            for index, column in enumerate(layout.schema.columns)
        ),
        layout.key_columns,
        layout.schema.key_kind,
        layout.schema,
        tuple(
            tuple(
                LayoutOperation(row.op, writer_of(version, record), with_schema=True, notes=layout.notes)
                for row in ROWS.values()
            )
            for version in (VERSION_2, VERSION_3)
        ),
    )
