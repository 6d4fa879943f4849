"""Write the two JSON formats that Debezium consumers support: the bare envelope, and the envelope with its schema."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Protocol, TypeAlias

import msgspec

from cdc_core.envelope import ChangeEvent, TableSchema
from translator.codecs.debezium.connect import Found, Names, Schema, TableTypes, as_text
from translator.codecs.debezium.envelope import ConnectSource, Payload
from translator.codecs.debezium.images import Columns

_ENCODER = msgspec.json.Encoder()
_NOTHING: frozenset[str] = frozenset()

# Cache limits. Names come from messages, so the number of tables and of column sets in partial images is unlimited.
_MAX_TABLES = 1024
_MAX_BLOCK_BYTES = 64 * 1024


_Shape: TypeAlias = tuple[Names, Found] | tuple[Names | None, Found, Names | None]
"""The names that a schema block declares: the columns of a key, or the columns of a row and its `source` fields, if
any.
"""


class Keys(Protocol):
    """The format in which a table's keys are written."""

    def fit(self, columns: Columns) -> Set[str]:
        """Remove and return the columns that this format cannot express."""
        ...

    def key(self, columns: Columns) -> bytes: ...


class Rows(Keys, Protocol):
    """The format in which rows without an envelope are written."""

    def row(self, columns: Columns) -> bytes: ...


class Envelopes(Keys, Protocol):
    """The format in which envelopes are written."""

    def value(self, payload: Payload) -> bytes: ...


class Form(Rows, Envelopes, Protocol):
    """A format for both rows and envelopes."""


FormOf: TypeAlias = Callable[[ChangeEvent, TableSchema | None], Form]
"""Return the format for an event's table."""


class Plain:
    """The envelope without its schema. Consumers of this format have to know the types."""

    def fit(self, columns: Columns) -> Set[str]:
        return _NOTHING

    def key(self, columns: Columns) -> bytes:
        return _ENCODER.encode(columns)

    def row(self, columns: Columns) -> bytes:
        return _ENCODER.encode(columns)

    def value(self, payload: Payload) -> bytes:
        return _ENCODER.encode(payload)


class WithSchema:
    """`{"schema": …, "payload": …}`, as Kafka Connect's JSON converter reads and writes it."""

    def __init__(self, types: TableTypes) -> None:
        self._types = types
        self._blocks: dict[_Shape, msgspec.Raw] = {}
        self._blocks_bytes = 0

    def fit(self, columns: Columns) -> Set[str]:
        return self._types.fit(columns)

    def key(self, columns: Columns) -> bytes:
        names, found = tuple(columns), self._types.found(columns)
        block = self._blocks.get((names, found)) or self._keep((names, found), self._types.key(names, found))
        return _ENCODER.encode({"schema": block, "payload": columns})

    def row(self, columns: Columns) -> bytes:
        found = self._types.found(columns)
        shape = (tuple(columns), found, None)
        block = self._blocks.get(shape) or self._keep(shape, self._types.row(tuple(columns), found))
        return _ENCODER.encode({"schema": block, "payload": columns})

    def value(self, payload: Payload) -> bytes:
        image = (
            payload.before if payload.after is None else payload.after
        )  # the old columns are a subset of the new ones
        images = [columns for columns in (payload.before, payload.after) if columns is not None]
        found = self._types.found(*images)
        if len(images) > 1 and found:
            before, after = (as_text(columns, found) for columns in images)
            payload = msgspec.structs.replace(payload, before=before, after=after)
        source = tuple(name for name in ConnectSource.__struct_fields__ if getattr(payload.source, name) is not None)
        names = None if image is None else tuple(image)
        shape = (names, found, source)
        block = self._blocks.get(shape) or self._keep(shape, self._types.value(names, found, source))
        return _ENCODER.encode({"schema": block, "payload": payload})

    def _keep(self, shape: _Shape, schema: Schema) -> msgspec.Raw:
        text = _ENCODER.encode(schema)
        if self._blocks_bytes > _MAX_BLOCK_BYTES:
            self._blocks.clear()
            self._blocks_bytes = 0
        self._blocks_bytes += len(text)
        block = self._blocks[shape] = msgspec.Raw(text)
        return block


def plain() -> FormOf:
    """Writes the bare envelope."""
    form = Plain()
    return lambda event, schema: form


def with_schema() -> FormOf:
    """Writes the envelope with its schema. Each table's blocks are built once."""
    tables: dict[tuple[str | None, ...], WithSchema] = {}

    def form_of(event: ChangeEvent, schema: TableSchema | None) -> WithSchema:
        levels = (event.source, event.db, event.schema, event.table)
        known = (*levels, None if schema is None else schema.id)
        found = tables.get(known)
        if found is None:
            if len(tables) >= _MAX_TABLES:
                tables.clear()
            found = tables[known] = WithSchema(TableTypes(levels, schema))
        return found

    return form_of
