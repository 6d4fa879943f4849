"""A change is an envelope event whose images have Python values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from cdc_core.envelope import ChangeEvent, TableSchema
from cdc_core.reader.errors import ReadError, UnknownSchema
from cdc_core.reader.known_schemas import KnownSchemas
from cdc_core.reader.values import Value, plain_value, python_value
from cdc_core.statement_notes import statement_notes
from cdc_core.table_id import TableId
from cdc_core.transaction import SourceTransaction

RowKey: TypeAlias = tuple[Value, ...]
"""The key column values, in key order. If two keys write the same number differently, they are equal."""

RowValues: TypeAlias = Mapping[str, Value]


class Missing(Enum):
    """The reason why an image has no value for a column. In neither case is the value NULL."""

    ABSENT = "absent"
    """The column was not sent."""
    UNAVAILABLE = "unavailable"
    """The value exists. However, the source withheld it, or it cannot be represented exactly."""


class Change(Struct, frozen=True, dict=True):
    """An event and its images. In an image, NULL is None, and a column that was not sent is missing.

    `event` has all envelope fields. `table` is None if the event has no table. `schema` is the schema that the event
    refers to. If it refers to none, this is the newest known schema of its table. Without a schema, values have JSON
    types, so a decimal is text.
    """

    event: ChangeEvent
    table: TableId | None
    schema: TableSchema | None
    key: RowValues | None
    key_old: RowValues | None
    before: RowValues | None
    after: RowValues | None

    @classmethod
    def of(cls, event: ChangeEvent, schemas: KnownSchemas | None) -> Change:
        """Read an event's images.

        Args:
            schemas: the known schemas. None leaves all values in their JSON types.

        Raises:
            ReadError: an image does not match its schema.
            UnknownSchema: the event's schema has not been learned.
        """
        table = None if event.table is None else TableId(event.source, event.db, event.schema, event.table)
        schema, types = None, _NO_TYPES
        if table is not None and event.kind == "row" and schemas is not None:
            schema = _schema(event, table, schemas)
            types = _NO_TYPES if schema is None else schema.column_types
        elif event.kind == "schema" and schemas is not None:
            # The notes contain the column types for a statement's image.
            types = {note.column: note.type for note in statement_notes(event.notes) if note.column and note.type}
        strict = event.schema_id is not None
        images = (
            _image(event.id, name, getattr(event, name), types, strict)
            for name in ("key", "key_old", "before", "after")
        )
        return cls(event, table, schema, *images)

    @property
    def kind(self) -> str:
        """The kind: `row`, `schema`, `tx`, `watermark`, or a kind from a later release."""
        return self.event.kind

    @property
    def op(self) -> str | None:
        """The operation: `r`, `c`, `u`, `d` or `t`, or None unless the kind is `row`."""
        return self.event.op

    @property
    def transaction(self) -> SourceTransaction:
        """The source transaction that contains the change."""
        event = self.event
        return SourceTransaction.of(event.pos_scope, None if event.tx is None else event.tx.id, event.ts_commit_us)

    @property
    def is_full(self) -> bool:
        """Return whether `after` is the complete new row according to its schema."""
        return self.event.after_state == "full"

    @cached_property
    def withheld(self) -> frozenset[str]:
        """The columns whose new value the source withheld or cannot be represented exactly."""
        event = self.event
        named = {*(event.unavailable or ()), *(issue.col for issue in event.issues or ())}
        return frozenset(named - (self.after or {}).keys())

    def new(self, column: str) -> Value | Missing:
        """Return the value of a column after the change, or the reason why it has none."""
        return _found(self.after, column, self.withheld)

    def old(self, column: str) -> Value | Missing:
        """Return the value of a column before the change, or the reason why it has none."""
        event = self.event
        return _found(self.before, column, {*(event.unavailable or ()), *(issue.col for issue in event.issues or ())})


_NO_TYPES: Mapping[str, str] = {}


def _schema(event: ChangeEvent, table: TableId, schemas: KnownSchemas) -> TableSchema | None:
    if event.schema_id is None:
        return schemas.newest(table)
    found = schemas.get(table, event.schema_id)
    if found is None:
        raise UnknownSchema(
            f"{event.id}: schema {event.schema_id} of {table} is unknown; read the whole schemas topic, then read "
            "this record again"
        )
    return found


def _image(
    event_id: str, name: str, text: str | None, types: Mapping[str, str], strict: bool
) -> dict[str, Value] | None:
    """Return the columns in an image. Unless `strict` is true, the types are a guess. A value that does not match its
    type is then left unchanged.
    """
    if text is None:
        return None
    try:
        sent = _OBJECT.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise ReadError(f"{event_id}: {name} is not a JSON object") from None
    return {column: _value(event_id, name, column, value, types, strict) for column, value in sent.items()}


def _value(event_id: str, name: str, column: str, value: Any, types: Mapping[str, str], strict: bool) -> Value:
    try:
        if column in types:
            try:
                return python_value(types[column], value)
            except ValueError:
                if strict:
                    raise
        return plain_value(value)
    except ValueError as error:
        raise ReadError(f"{event_id}: {column} of {name} is {error}") from None


_OBJECT = msgspec.json.Decoder(dict[str, Any])


def _found(image: RowValues | None, column: str, withheld: frozenset[str] | set[str]) -> Value | Missing:
    if image is not None and column in image:
        return image[column]
    return Missing.UNAVAILABLE if column in withheld else Missing.ABSENT
