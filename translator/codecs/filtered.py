"""A codec for an output that gets the events of some tables only."""

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
    """A codec of events of any table."""

    name: str

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]: ...


class FilteredCodec:
    """Writes what another codec does, of the tables that a filter takes."""

    def __init__(self, codec: WholeCodec, tables: TableFilter) -> None:
        self.name = codec.name
        self.whole = codec
        """The codec that writes the events of all tables."""
        self._takes = tables.takes

    def takes(self, source: str, table: TableName) -> bool:
        """Say whether rows of a table are written."""
        return self._takes(source, table.db, table.schema, table.table)

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        """The records of the codec; none of a table that is not taken.

        Raises:
            MessageError: the codec refuses the event.
        """
        if not self._takes(event.source, event.db, event.schema, event.table):
            return []
        return self.whole.encode(event, schema)

    def native(self, max_record: int) -> ProjectionForm | None:
        """Return what the native path has to know of a projection; None where it cannot write it."""
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
