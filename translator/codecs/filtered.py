"""A codec for an output that receives only the events of some tables."""

from __future__ import annotations

from typing import Protocol

from cdc_core.envelope import ChangeEvent, TableSchema
from translator._native.layout import NativeCodec, OutputOperation
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

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> OutputOperation | None:
        whole = self.whole
        if not isinstance(whole, NativeCodec):
            raise TypeError(f"the native path does not support {self.name}")
        if not self._takes(event.source, event.db, event.schema, event.table):
            return None
        return whole.native_operation(event, schema)
