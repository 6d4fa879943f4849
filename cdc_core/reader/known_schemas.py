"""The table schemas that a reader knows: what the schemas topic says, by id, and the newest of each table."""

from __future__ import annotations

from typing import Any

import msgspec

from cdc_core.envelope import TableSchema
from cdc_core.reader.errors import ReadError
from cdc_core.table_id import TableId


class KnownSchemas:
    """Table schemas, as far as they were learned. Learn the schemas topic to its end before reading events."""

    def __init__(self) -> None:
        self._by_id: dict[tuple[TableId, str], TableSchema] = {}
        self._newest: dict[TableId, TableSchema] = {}

    def learn(self, value: bytes | None) -> None:
        """Take in the value of a record of the schemas topic; one without a value is passed over.

        Raises:
            ReadError: not a table schema.
        """
        if value is None:
            return
        try:
            fields: Any = msgspec.json.decode(value)
            schema = msgspec.convert(fields, TableSchema)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise ReadError("a record of the schemas topic is not a table schema; is it another topic?") from None
        self.add(schema)

    def add(self, schema: TableSchema) -> None:
        """Take in a table schema; it is the newest of its table from here on."""
        table = TableId.of(schema)
        self._by_id[table, schema.id] = schema
        self._newest[table] = schema

    def get(self, table: TableId, schema_id: str) -> TableSchema | None:
        """The schema of that id, which an event names: it is the newest of its table from here on.

        None when it was not learned.
        """
        found = self._by_id.get((table, schema_id))
        if found is not None:
            self._newest[table] = found
        return found

    def newest(self, table: TableId) -> TableSchema | None:
        """The schema of a table that an event named last, else the one that was learned last."""
        return self._newest.get(table)
