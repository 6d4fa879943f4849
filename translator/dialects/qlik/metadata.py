"""Compile documents from metadata messages for reading rows, and report changed structures to consumers."""

from __future__ import annotations

import re
from functools import cached_property

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cdc_core.envelope import Column, Ddl, TableSchema
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._rows import ConvertersOr
from translator.dialects.qlik.avro_values import converter_to
from translator.dialects.qlik.data_schema import reading_part
from translator.dialects.qlik.document import TYPES, MetadataColumn, MetadataDocument
from translator.dialects.qlik.envelope_fields import read_time
from translator.dialects.qlik.row_schema import AvroReading, RowSchema, WriterSchema
from translator.dialects.qlik.tables import UNKNOWN, Table, from_json
from translator.errors import ErrorCode, FatalError, MessageError
from translator.message import Limits, OtherChange, TableName, Writer
from translator.values.numbers import MAX_ZEROS

LOBS = frozenset({"CLOB", "NCLOB", "BLOB"})
TYPE_UNKNOWN = "TYPE_UNKNOWN"
_SIZED = frozenset({"STRING", "WSTRING", "BYTES", "CLOB", "NCLOB", "BLOB"})
"""Types whose length limits the value. For other types, the length is a display width (INT4 10, REAL8 14)."""


class Metadata(Struct, frozen=True, dict=True):
    """The look-up's result for a schema id. `table` is for JSON rows. Avro rows are read with the data schema."""

    document: MetadataDocument
    table: Table
    limits: Limits
    reading: AvroReading

    @cached_property
    def row_schema(self) -> RowSchema:
        """Return the data schema. It is compiled only when the first Avro message needs it, because JSON tables have a
        data schema, too.

        Raises:
            MessageError: the data schema is missing or unusable.
        """
        return self._writer_schema.row

    @cached_property
    def _writer_schema(self) -> WriterSchema:
        text = self.document.data_schema
        if text is None:
            reason = "the metadata of the message has no dataSchema, and Avro cannot be read without it"
            raise MessageError(ErrorCode.MISSING_FIELD, reason, path="$.messageSchemaId")
        return WriterSchema(text.encode(), self.limits, self.reading)

    @cached_property
    def avro_table(self) -> Table:
        """Return the table for rows with the data schema.

        Raises:
            MessageError: the schema is unusable.
        """
        return self.avro_table_by(self.row_schema)

    def avro_table_by(self, schema: RowSchema) -> Table:
        """Return the table for rows with a schema: types from the metadata, spelled as in the schema."""
        types = {column.name: canonical_type(column) for column in self.document.columns}
        converters = {
            name: converter_to(types[name], column) if name in types else column.convert
            for name, column in schema.columns.items()
        }
        return replace(self.table, converters=ConvertersOr(converters, UNKNOWN))

    @property
    def subject(self) -> str:
        """The table that the document describes."""
        return ".".join(part for part in (self.document.schema, self.document.table) if part)

    @property
    def version(self) -> tuple[int, str]:
        """If two documents have the same id, the one with the greater value is current (§11)."""
        return self.document.table_version or 0, self.document.timestamp or ""

    @property
    def content(self) -> MetadataDocument:
        """The part used for reading rows, without the publication time."""
        return msgspec.structs.replace(self.document, table_version=None, timestamp=None)


# -- from bytes to the objects that read rows


def compile_document(
    data: bytes, source: str, declared: DeclaredTables, limits: Limits, reading: AvroReading
) -> Metadata:
    """Parse and compile a stored document.

    Raises:
        FatalError: the translator did not write the bytes, so the metadata topic contains other records.
    """
    try:
        document = _as_now(msgspec.json.decode(data, type=MetadataDocument))
        columns = [(column, canonical_type(column)) for column in document.columns]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        raise FatalError(f"qlik: a stored metadata document cannot be read: {error}") from None
    name = TableName(None, document.schema, document.table)
    key = tuple(c.name for c in sorted(document.columns, key=lambda column: column.key) if c.key)
    key_kind = "primary"
    if not key:
        entry, _ = declared.find(name)
        key = entry.key if entry else ()
        key_kind = "configured" if key else "none"
    schema = TableSchema.of(
        source, None, document.schema, document.table, [_schema_column(c, type_, key) for c, type_ in columns], key_kind
    )
    unknown = [column.name for column in document.columns if column.undocumented is not None]
    return Metadata(
        document,
        Table(
            name,
            ConvertersOr({column.name: from_json(type_) for column, type_ in columns}, UNKNOWN),
            schema,
            key_columns=key,
            key_kind=key_kind,
            ordinals={column.name: column.ordinal for column in document.columns},
            # A column with an unknown type could be a LOB.
            lobs=frozenset(column.name for column in document.columns if column.type in LOBS).union(unknown),
            server=document.server,
            task=document.task,
            # Only the first such column is listed, because a wide table would otherwise repeat all of them in every
            # event.
            notes=(f"{TYPE_UNKNOWN}={unknown[0]}",) if unknown else (),
        ),
        limits,
        reading,
    )


def _as_now(document: MetadataDocument) -> MetadataDocument:
    """Convert a document stored by an earlier release to this release's equivalent."""
    text = document.data_schema
    return document if text is None else replace(document, data_schema=reading_part(text))


# -- announcements to consumers


def announcement(metadata: Metadata, variant: str) -> tuple[OtherChange, ...]:
    """Return the event for a changed structure. Version 1, or no version, is the first publication of a table, so
    nothing has changed.

    An event depends on no other message, so nothing but the message's own version decides. If a version is published
    again, as at every start of a task, it is reported again. The lineage's time has no zone (§2), so it is used only if
    its text contains one.
    """
    document = metadata.document
    if (document.table_version or 1) <= 1:
        return ()
    stamp = document.timestamp or ""
    return (
        OtherChange(
            "schema",
            Writer(variant, "certain", server=document.server, task=document.task),
            table=metadata.table.name,
            ddl=Ddl("metadata"),
            schema=metadata.table.schema,
            ts_commit_us=read_time(stamp) if _ZONED.search(stamp) else None,
            notes=[*metadata.table.notes] or None,
        ),
    )


_ZONED = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})\Z", re.ASCII)


def canonical_type(column: MetadataColumn) -> str:
    """Return a column's type. A NUMERIC without precision may be any number (Oracle's NUMBER, §6). A scale that would
    add too many zeros is not used.
    """
    type_ = TYPES[column.type] if column.undocumented is None else "unknown"
    scaled = column.precision and abs(column.scale) <= MAX_ZEROS
    return f"decimal({column.precision},{column.scale})" if type_ == "decimal" and scaled else type_


def _schema_column(column: MetadataColumn, type_: str, key: tuple[str, ...]) -> Column:
    return Column(
        column.name,
        type_,
        nullable=column.nullable,
        key=key.index(column.name) + 1 if column.name in key else None,
        native=column.type if column.undocumented is None else column.undocumented or None,
        length=column.length if column.length and column.type in _SIZED else None,
    )
