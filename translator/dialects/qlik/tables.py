"""Determine the table and the column types of a row without metadata messages.

A default message contains no table name (§0, point 6). Either the operator declares it by topic, or the task was
configured to add the names to its messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

from msgspec import Struct, structs

from cdc_core.envelope import Column, TableSchema
from cdc_core.sized_cache import SizedCache
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._json import field
from translator.dialects._rows import Converters, ConvertersOr
from translator.dialects._topic_patterns import Topics, TopicTables
from translator.dialects.qlik.avro_values import converter_to
from translator.dialects.qlik.frame import Frame
from translator.dialects.qlik.row_schema import NamespaceParts, RowSchema
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Message, Setup, TableName
from translator.values import Converter, bytes_from_hex, converter

UNKNOWN = converter("unknown")

CACHED = 4096
"""Maximum number of tables to cache. When the limit is exceeded, the least recently used table is dropped."""
CACHED_OF_SCHEMA = 16
"""Maximum number of tables to cache per Avro schema. A schema usually belongs to only one table."""


class Table(Struct, frozen=True):
    """Everything needed to read a row. `ordinals` come only from metadata. If None, positions in the row are used."""

    name: TableName
    converters: Converters
    """An undeclared column has the type `unknown`."""
    schema: TableSchema | None = None
    key_columns: tuple[str, ...] = ()
    key_kind: str = "none"
    ordinals: dict[str, int] | None = None
    lobs: frozenset[str] = frozenset()
    """Columns that have no bit in a changeMask (§5)."""
    server: str | None = None
    task: str | None = None
    notes: tuple[str, ...] = ()
    """The assumptions under which the table was found."""

    def text_converter(self, column: str) -> Converter | None:
        """Return a column's converter for its format in JSON or in text."""
        if self.schema is None:
            return self.converters[column]
        return next((from_json(known.type) for known in self.schema.columns if known.name == column), UNKNOWN)

    def with_key(self, columns: tuple[str, ...]) -> Table:
        """Return the table with the key from a Kafka key. `columns` is () for a key with columns that the row does not
        have.
        """
        if not columns:
            return structs.replace(self, notes=(*self.notes, "KEY_INCOMPLETE"))
        schema = None if self.schema is None else _keyed(self.schema, columns)
        return structs.replace(self, schema=schema, key_columns=columns, key_kind="primary")


@lru_cache(CACHED)
def _keyed(schema: TableSchema, key: tuple[str, ...]) -> TableSchema:
    places = {name: place for place, name in enumerate(key, 1)}
    columns = [structs.replace(column, key=places.get(column.name)) for column in schema.columns]
    return TableSchema.of(schema.source, schema.db, schema.schema, schema.table, columns, "primary")


def from_json(canonical_type: str) -> Converter:
    """Return the converter for a type in JSON. In JSON, binary values are hex digits (§6), and `values` reads all other
    types.
    """
    return bytes_from_hex if canonical_type == "bytes" else converter(canonical_type)


class UntypedTables:
    """Tables for messages without metadata. The name of a table comes from the topic or, failing that, from the
    message. Its types come from `tables:`. Otherwise, they are unknown.
    """

    def __init__(self, setup: Setup, topics: Topics, *, key_is_table: bool) -> None:
        self._key_is_table = key_is_table
        self._topics = TopicTables("qlik", "SCHEMA", topics)
        self._declared = DeclaredTables(setup.source, setup.tables)
        self._source = setup.source
        self._of_name = SizedCache(self._build)

    @property
    def can_name(self) -> bool:
        """True if the operator configured whether the topic or the key identifies the table of a message without
        metadata.
        """
        return self._key_is_table or self._topics.declared

    def find(self, message: Message, frame: Frame) -> Table:
        """Return a message's table.

        Raises:
            MessageError: TABLE_UNKNOWN.
        """
        return self._of_name(self._declared_name(message) or _named_by_message(frame) or _unknown(message.topic, frame))

    def _declared_name(self, message: Message) -> TableName | None:
        """Return the table that the operator declares for the topic, or for keys."""
        name = self._topics.find(message.topic)
        return name if name is not None or not self._key_is_table else _named_by_key(message.key)

    def find_avro(self, message: Message, frame: Frame, schema: RowSchema) -> NamespaceParts:
        """Return the table name of an Avro message. It is the declared name or, without one, the name in the namespace
        or the message.

        Raises:
            MessageError: TABLE_UNKNOWN.
        """
        name = self._declared_name(message)
        if name is None and schema.named is not None:
            return schema.named
        name = name or _named_by_message(frame) or _unknown(message.topic, frame)
        return NamespaceParts(name, schema.named.task if schema.named else None, assumed=False)

    def declared_key(self, name: TableName) -> tuple[str, ...]:
        """Return the key that the operator declares."""
        entry, _ = self._declared.find(name)
        return entry.key if entry else ()

    def of_schema(self, schema: RowSchema, named: NamespaceParts, record_key: tuple[str, ...]) -> Table:
        """Return the table for Avro messages without metadata. The schema lists all columns, and types declared by the
        operator apply to them. The key is the declared one or, failing that, the one from the key record.
        """
        named_as = (named.table, named.task, named.assumed, record_key)
        found = schema.made.get(named_as)
        if found is None:
            if len(schema.made) >= CACHED_OF_SCHEMA:
                schema.made.clear()
            found = schema.made[named_as] = self._build_by_schema(schema, *named_as)
        return found

    def _build_by_schema(
        self, schema: RowSchema, name: TableName, task: str | None, assumed: bool, record_key: tuple[str, ...]
    ) -> Table:
        declared, wanted = self._declared.find(name)
        types = {column.name: column.type for column in wanted.columns} if wanted else {}
        kind = "configured" if declared and declared.key else "primary"
        key = declared.key if declared and declared.key else record_key
        notes = ("TABLE_ASSUMED",) if assumed else ()
        if not set(key) <= schema.columns.keys():
            notes, key = (*notes, "KEY_INCOMPLETE"), ()
        kind = kind if key else "none"
        columns = [
            Column(
                column.name,
                types.get(column.name, column.type),
                key=key.index(column.name) + 1 if column.name in key else None,
                native=column.native,
            )
            for column in schema.columns.values()
        ]
        return Table(
            name,
            ConvertersOr({c.name: converter_to(c.type, schema.columns[c.name]) for c in columns}, UNKNOWN),
            TableSchema.of(self._source, None, name.schema, name.table, columns, kind),
            key_columns=key,
            key_kind=kind,
            task=task,
            notes=notes,
        )

    def _build(self, name: TableName) -> Table:
        declared, schema = self._declared.find(name)
        columns = schema.columns if schema else ()
        key = declared.key if declared else ()
        return Table(
            name,
            ConvertersOr({column.name: converter(column.type) for column in columns}, UNKNOWN),
            schema,
            key_columns=key,
            key_kind="configured" if key else "none",
        )


def _named_by_key(key: bytes | None) -> TableName | None:
    """Return the table in a key written as `SCHEMA+TABLE` (§8)."""
    try:
        parts = (key or b"").decode().split("+")
    except UnicodeDecodeError:
        parts = []
    if len(parts) != 2 or not all(parts):
        raise MessageError(
            ErrorCode.TABLE_UNKNOWN, "the Kafka key is not in the form SCHEMA+TABLE (option message_key)", path="$key"
        )
    return TableName(None, *parts)


def _unknown(topic: str, frame: Frame) -> NoReturn:
    raise MessageError(
        ErrorCode.TABLE_UNKNOWN,
        f"the table is unknown: there is no metadata for it, topic {quote(topic, 249)} is not in the option topics, "
        "no namespace contains the table name, and neither the headers nor the message have a member table",
        path=frame.path,
    )


def _named_by_message(frame: Frame) -> TableName | None:
    """Read the fields `schema` and `table`, which the Message Format may add to the headers or next to them (§1).

    `data` is not searched, because these names could be columns of the table there.
    """
    headers: Mapping[str, Any] = frame.body["headers"]
    for section, path in ((headers, f"{frame.path}.headers"), (frame.body, frame.path)):
        table = field(section, "table", str, path, optional=True)
        if table:
            return TableName(None, field(section, "schema", str, path, optional=True) or None, table)
    return None
