"""A codec for an output that receives only events from some tables."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from cdc_core.envelope import ChangeEvent, TableSchema
from translator._native.layout import LayoutOperation, NativeLayout, ProjectedOperation, ProjectionForm
from translator.codecs.debezium import DebeziumCodec
from translator.codecs.record import Record
from translator.config.table_filter import TableFilter
from translator.message import TableName


class WholeCodec(Protocol):
    """A codec for events from any table."""

    name: str

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]: ...


class FilteredCodec:
    """Pass events from selected tables to another codec."""

    def __init__(self, codec: WholeCodec, tables: TableFilter) -> None:
        self.name = codec.name
        self.whole = codec
        """The codec without the table filter."""
        self._takes = tables.takes

    def takes(self, source: str, table: TableName) -> bool:
        """Return whether a table's rows are written."""
        return self._takes(source, table.db, table.schema, table.table)

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        """Return the codec's records, or none if the table is not selected.

        Raises:
            MessageError: the codec rejects the event.
        """
        if not self._takes(event.source, event.db, event.schema, event.table):
            return []
        return self.whole.encode(event, schema)

    def native(self, max_record: int) -> ProjectionForm | None:
        """Return the settings that the native path needs for a projection, or None if the path does not support it."""
        if not isinstance(self.whole, DebeziumCodec):
            return None
        form = self.whole.native(max_record)
        whole = form.operation

        def operation(
            source: str, dialect: str, layout: NativeLayout, operation: LayoutOperation
        ) -> ProjectedOperation:
            projected = whole(source, dialect, layout, operation)
            if self.takes(source, layout.table):
                return projected
            return replace(projected, changes=tuple(() for _ in projected.changes))

        return replace(form, operation=operation)
