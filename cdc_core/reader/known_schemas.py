"""Keep the table schemas that a reader has learned from the schemas topic, by id, and the newest schema of each
table.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cdc_core.envelope import TableSchema
from cdc_core.reader.errors import ReadError
from cdc_core.table_id import TableId


class KnownSchemas:
    """The table schemas that have been learned. Before you read events, learn the whole schemas topic."""

    def __init__(self) -> None:
        self._by_id: dict[tuple[TableId, str], TableSchema] = {}
        self._newest: dict[TableId, TableSchema] = {}

    def learn(self, value: bytes | None) -> None:
        """Learn a record value from the schemas topic. A record without a value is ignored.

        Raises:
            ReadError: the value is not a table schema.
        """
        if value is None:
            return
        try:
            fields: Any = msgspec.json.decode(value)
            schema = msgspec.convert(fields, TableSchema)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise ReadError(
                "a record in the schemas topic is not a table schema; check that this is the right topic"
            ) from None
        self.add(schema)

    def add(self, schema: TableSchema) -> None:
        """Learn a table schema, and make it the newest schema for its table."""
        table = TableId.of(schema)
        self._by_id[table, schema.id] = schema
        self._newest[table] = schema

    def get(self, table: TableId, schema_id: str) -> TableSchema | None:
        """Return the schema with this id for an event that refers to it. Make it the newest schema of its table.

        It returns None if the schema has not been learned.
        """
        found = self._by_id.get((table, schema_id))
        if found is not None:
            self._newest[table] = found
        return found

    def newest(self, table: TableId) -> TableSchema | None:
        """Return the schema of the table's last event. If no event had one, return the schema that was learned last."""
        return self._newest.get(table)
