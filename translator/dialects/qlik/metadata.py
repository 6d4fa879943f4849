"""Metadata messages (type MD, formats/qlik.md section 2): what they say, kept as a document, compiled for reading rows.

The document is what the metadata topic stores under the schema id. The same message gives the same bytes, so that a
repeated publication changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from translator.dialects._json import JsonObject, field, one_of
from translator.dialects._rows import ConvertersOr
from translator.dialects._tables import DeclaredTables
from translator.dialects.qlik.avro_values import converter_to
from translator.dialects.qlik.frame import Frame, read_schema_id
from translator.dialects.qlik.headers import read_time
from translator.dialects.qlik.row_schema import Reading, RowSchema, WriterSchema
from translator.dialects.qlik.tables import UNKNOWN, Table, from_json
from translator.envelope import Column, Ddl, TableSchema
from translator.errors import ErrorCode, FatalError, MessageError, quote
from translator.message import Limits, OtherChange, TableName, Writer

TYPES: Mapping[str, str] = {
    "BOOLEAN": "boolean",
    "INT1": "int8",
    "INT2": "int16",
    "INT4": "int32",
    "INT8": "int64",
    "UINT1": "uint8",
    "UINT2": "uint16",
    "UINT4": "uint32",
    "UINT8": "uint64",
    "NUMERIC": "decimal",
    "REAL4": "float32",
    "REAL8": "float64",
    "STRING": "string",
    "WSTRING": "string",
    "CLOB": "string",
    "NCLOB": "string",
    "BYTES": "bytes",
    "BLOB": "bytes",
    "DATE": "date",
    "TIME": "time",
    "DATETIME": "timestamp",
}
"""Replicate's type names (sections 2 and 6). A DATETIME has no zone: columns are not moved to UTC."""

LOBS = frozenset({"CLOB", "NCLOB", "BLOB"})
_SIZED = frozenset({"STRING", "WSTRING", "BYTES", "CLOB", "NCLOB", "BLOB"})
"""Types whose length limits the value; that of the others is a display width (INT4 10, REAL8 14)."""

MAX_DIGITS = 1000
"""Precision and scale beyond any database's (PostgreSQL has 1000): such a number is not one of a column."""


class MetadataColumn(Struct, frozen=True):
    """A column as announced. `key` is its place in the primary key, 0 outside of it."""

    name: str
    ordinal: int
    type: str
    length: int
    precision: int
    scale: int
    key: int
    nullable: bool | None


class Document(Struct, frozen=True, rename="camel"):
    """A metadata message without what reading rows does not take; columns stand by ordinal."""

    schema_id: str
    server: str | None
    task: str | None
    schema: str | None
    table: str
    table_version: int | None
    timestamp: str | None
    columns: Annotated[tuple[MetadataColumn, ...], Meta(min_length=1)]
    data_schema: str | None


class Metadata(Struct, frozen=True, dict=True):
    """What the look-up returns for a schema id. `table` reads JSON; Avro is read by the data schema."""

    document: Document
    table: Table
    limits: Limits
    reading: Reading

    @cached_property
    def row_schema(self) -> RowSchema:
        """The data schema. It is compiled when the first Avro message needs it: JSON tables announce one too.

        Raises:
            MessageError: there is none, or it is not usable.
        """
        return self._writer_schema.row

    @cached_property
    def _writer_schema(self) -> WriterSchema:
        text = self.document.data_schema
        if text is None:
            reason = "the metadata of the message has no dataSchema, without which Avro is not readable"
            raise MessageError(ErrorCode.MISSING_FIELD, reason, path="$.messageSchemaId")
        return WriterSchema(text.encode(), self.limits, self.reading)

    @cached_property
    def avro_table(self) -> Table:
        """The table for rows of the data schema.

        Raises:
            MessageError: the schema is not usable.
        """
        return self.avro_table_by(self.row_schema)

    def avro_table_by(self, schema: RowSchema) -> Table:
        """The table for rows of a schema: types of the metadata, spelled as the schema says."""
        types = {column.name: canonical_type(column) for column in self.document.columns}
        converters = {
            name: converter_to(types[name], column) if name in types else column.convert
            for name, column in schema.columns.items()
        }
        return replace(self.table, converters=ConvertersOr(converters, UNKNOWN))

    @property
    def subject(self) -> str:
        """The table that it describes."""
        return ".".join(part for part in (self.document.schema, self.document.table) if part)

    @property
    def version(self) -> tuple[int, str]:
        """Of two documents of one id, the one with the greater stands (section 11, Metadata)."""
        return self.document.table_version or 0, self.document.timestamp or ""

    @property
    def content(self) -> Document:
        """What rows are read by: not when it was published."""
        return msgspec.structs.replace(self.document, table_version=None, timestamp=None)


# -- message -> document


def read_document(frame: Frame, limits: Limits) -> Document:
    """The document of a metadata message.

    Raises:
        MessageError: something is missing, of an unknown type, or contradicts itself; nothing of it is learned.
    """
    body, path = frame.body, frame.path
    lineage, at = field(body, "lineage", dict, path), f"{path}.lineage"
    table = field(lineage, "table", str, at)
    if not table:
        raise MessageError(ErrorCode.INVALID_FIELD, "table is empty", path=f"{at}.table")
    return Document(
        schema_id=_announced_id(frame),
        server=field(lineage, "server", str, at, optional=True) or None,
        task=field(lineage, "task", str, at, optional=True) or None,
        schema=field(lineage, "schema", str, at, optional=True) or None,
        table=table,
        table_version=_number(lineage, "tableVersion", at, 0, 2**63 - 1, optional=True),
        timestamp=field(lineage, "timestamp", str, at, optional=True),
        columns=_columns(field(body, "tableStructure", dict, path), f"{path}.tableStructure", limits),
        data_schema=_data_schema(body, path, limits),
    )


def _announced_id(frame: Frame) -> str:
    """The id that data messages will name. The envelope repeats it, or (by Help's wording) may leave it null."""
    path = f"{frame.path}.schemaId"
    schema_id = read_schema_id(frame.body, "schemaId", frame.path)
    if schema_id is None:
        raise MessageError(ErrorCode.MISSING_FIELD, "schemaId is missing, null or empty", path=path)
    if frame.schema_id not in (None, schema_id):
        raise MessageError(
            ErrorCode.INVALID_FIELD,
            f"schemaId {quote(schema_id)} is not the messageSchemaId {quote(frame.schema_id)} of the envelope",
            path=path,
        )
    return schema_id


def _data_schema(body: JsonObject, path: str, limits: Limits) -> str | None:
    """The Avro schema of the data messages, kept as it is: only Avro messages are read with it."""
    text: str | None = field(body, "dataSchema", str, path, optional=True)
    if text is not None and len(text.encode()) > limits.schema_text_bytes:
        raise MessageError(
            ErrorCode.LIMIT_EXCEEDED,
            f"dataSchema is longer than {limits.schema_text_bytes} bytes (limits.schema_text_bytes)",
            path=f"{path}.dataSchema",
        )
    return text


def _columns(structure: JsonObject, path: str, limits: Limits) -> tuple[MetadataColumn, ...]:
    listed, path = field(structure, "tableColumns", dict, path), f"{path}.tableColumns"
    if not listed:
        raise MessageError(ErrorCode.INVALID_FIELD, "tableColumns is empty", path=path)
    if len(listed) > limits.columns:
        raise MessageError(
            ErrorCode.LIMIT_EXCEEDED, f"{len(listed)} columns; allowed: {limits.columns} (limits.columns)", path=path
        )
    columns = [_column(name, field(listed, name, dict, path), f"{path}.{quote(name)}", limits) for name in listed]
    _check_unique("ordinal", [column.ordinal for column in columns], path)
    _check_unique("primaryKeyPosition", [column.key for column in columns if column.key], path)
    return tuple(sorted(columns, key=lambda column: column.ordinal))


def _column(name: str, told: JsonObject, path: str, limits: Limits) -> MetadataColumn:
    type_ = field(told, "type", str, path)
    one_of(type_, TYPES, "column type", f"{path}.type", ErrorCode.INVALID_FIELD)
    return MetadataColumn(
        name,
        # A mask has a bit for every ordinal, so they are held to the limit on columns though gaps are legal.
        _number(told, "ordinal", path, 1, limits.columns),
        type_,
        _number(told, "length", path, 0, 2**63 - 1, optional=True) or 0,
        _number(told, "precision", path, 0, MAX_DIGITS, optional=True) or 0,
        _number(told, "scale", path, -MAX_DIGITS, MAX_DIGITS, optional=True) or 0,
        _number(told, "primaryKeyPosition", path, 0, limits.columns, optional=True) or 0,
        field(told, "nullable", bool, path, optional=True),
    )


def _number(parent: Mapping[str, Any], name: str, path: str, low: int, high: int, *, optional: bool = False) -> Any:
    number = field(parent, name, int, path, optional=optional)
    if number is not None and not low <= number <= high:
        raise MessageError(ErrorCode.INVALID_FIELD, f"{name} is outside {low} to {high}", path=f"{path}.{name}")
    return number


def _check_unique(what: str, numbers: list[int], path: str) -> None:
    number, times = Counter(numbers).most_common(1)[0] if numbers else (0, 0)
    if times > 1:
        raise MessageError(ErrorCode.INVALID_FIELD, f"{times} columns have {what} {number}", path=path)


# -- document <-> bytes -> what reads rows


def encode_document(document: Document) -> bytes:
    """Compact JSON with members in the order of the class."""
    return msgspec.json.encode(document)


def compile_document(data: bytes, source: str, declared: DeclaredTables, limits: Limits, reading: Reading) -> Metadata:
    """Parse and compile a stored document.

    Raises:
        FatalError: the bytes are none of ours; the metadata topic holds something else.
    """
    try:
        document = msgspec.json.decode(data, type=Document)
        columns = [(column, canonical_type(column)) for column in document.columns]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        raise FatalError(f"qlik: a stored metadata document is not readable: {error}") from None
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
    return Metadata(
        document,
        Table(
            name,
            ConvertersOr({column.name: from_json(type_) for column, type_ in columns}, UNKNOWN),
            schema,
            key_columns=key,
            key_kind=key_kind,
            ordinals={column.name: column.ordinal for column in document.columns},
            lobs=frozenset(column.name for column in document.columns if column.type in LOBS),
            server=document.server,
            task=document.task,
        ),
        limits,
        reading,
    )


# -- what consumers hear of it


def announcement(metadata: Metadata, variant: str) -> tuple[OtherChange, ...]:
    """The event of a changed structure. Version 1, or none, is the first publication of a table: nothing changed.

    An event depends on no other message, so that the message's own version decides, and a version that is published
    again, as at each start of a task, is announced again. The lineage's time has no zone (section 2): it is carried
    only where its text names one.
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
        ),
    )


_ZONED = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})\Z", re.ASCII)


def canonical_type(column: MetadataColumn) -> str:
    """A NUMERIC without precision is a number of any (Oracle's NUMBER, section 6)."""
    type_ = TYPES[column.type]
    return f"decimal({column.precision},{column.scale})" if type_ == "decimal" and column.precision else type_


def _schema_column(column: MetadataColumn, type_: str, key: tuple[str, ...]) -> Column:
    return Column(
        column.name,
        type_,
        nullable=column.nullable,
        key=key.index(column.name) + 1 if column.name in key else None,
        native=column.type,
        length=column.length if column.length and column.type in _SIZED else None,
    )
