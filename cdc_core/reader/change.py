"""A change: an event of the envelope, with its images as values of Python."""

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
"""The values of the key columns, in key order: two spellings of one number are one key."""

RowValues: TypeAlias = Mapping[str, Value]


class Missing(Enum):
    """The reason why an image has no value of a column; neither is NULL."""

    ABSENT = "absent"
    """It was not sent."""
    UNAVAILABLE = "unavailable"
    """It exists, and the source withheld its value, or it has no faithful form."""


class Change(Struct, frozen=True, dict=True):
    """An event and its images. NULL is None; a column that was not sent is not in its image.

    `event` has all fields of the envelope. `table` is None for an event that is of no table. `schema` is the one that
    the event names, else the newest known of its table; where there is none, values are as JSON has them: a decimal is
    text.
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
        """Read the images of an event.

        Args:
            schemas: None leaves all values as JSON has them.

        Raises:
            ReadError: an image is not what its schema says.
            UnknownSchema: the schema that it names was not learned.
        """
        table = None if event.table is None else TableId(event.source, event.db, event.schema, event.table)
        schema, types = None, _NO_TYPES
        if table is not None and event.kind == "row" and schemas is not None:
            schema = _schema(event, table, schemas)
            types = _NO_TYPES if schema is None else schema.column_types
        elif event.kind == "schema" and schemas is not None:
            # The image of a statement has the types that its notes name.
            types = {note.column: note.type for note in statement_notes(event.notes) if note.column and note.type}
        strict = event.schema_id is not None
        images = (
            _image(event.id, name, getattr(event, name), types, strict)
            for name in ("key", "key_old", "before", "after")
        )
        return cls(event, table, schema, *images)

    @property
    def kind(self) -> str:
        """`row`, `schema`, `tx`, `watermark`, or one of a later release."""
        return self.event.kind

    @property
    def op(self) -> str | None:
        """`r`, `c`, `u`, `d` or `t`; None unless the kind is `row`."""
        return self.event.op

    @property
    def transaction(self) -> SourceTransaction:
        """The transaction of the source that the change is part of."""
        event = self.event
        return SourceTransaction.of(event.pos_scope, None if event.tx is None else event.tx.id, event.ts_commit_us)

    @property
    def is_full(self) -> bool:
        """Tell whether `after` is the whole new row by its schema."""
        return self.event.after_state == "full"

    @cached_property
    def withheld(self) -> frozenset[str]:
        """Columns whose new value the source withheld or sent in no faithful form."""
        event = self.event
        named = {*(event.unavailable or ()), *(issue.col for issue in event.issues or ())}
        return frozenset(named - (self.after or {}).keys())

    def new(self, column: str) -> Value | Missing:
        """The value of a column after the change, or why there is none."""
        return _found(self.after, column, self.withheld)

    def old(self, column: str) -> Value | Missing:
        """The value of a column before the change, or why there is none."""
        event = self.event
        return _found(self.before, column, {*(event.unavailable or ()), *(issue.col for issue in event.issues or ())})


_NO_TYPES: Mapping[str, str] = {}


def _schema(event: ChangeEvent, table: TableId, schemas: KnownSchemas) -> TableSchema | None:
    if event.schema_id is None:
        return schemas.newest(table)
    found = schemas.get(table, event.schema_id)
    if found is None:
        raise UnknownSchema(
            f"{event.id}: no schema {event.schema_id} of {table} is known; read the schemas topic to its end, then "
            "read the record again"
        )
    return found


def _image(
    event_id: str, name: str, text: str | None, types: Mapping[str, str], strict: bool
) -> dict[str, Value] | None:
    """The columns of an image. Not `strict`: the types are a guess, and a value that is none of its type stays."""
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
