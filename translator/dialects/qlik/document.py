"""Metadata messages (type MD, §2). Their contents are checked and stored as a document.

The metadata topic stores the document under the schema id. The same message always produces the same bytes, so
publishing it again changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from translator.dialects._json import JsonObject, field
from translator.dialects.qlik.data_schema import reading_part
from translator.dialects.qlik.frame import Frame, read_schema_id
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Limits

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
"""Replicate's type names (sections 2 and 6). A DATETIME has no zone: columns are not converted to UTC. A column with
any other type has the type `unknown`.
"""

MAX_DIGITS = 1000
"""Limit for precision and scale. No database allows more (PostgreSQL allows 1000). Greater numbers are not used."""


class MetadataColumn(Struct, frozen=True, omit_defaults=True):
    """A column as announced. `key` is its position in the primary key, or 0.

    `undocumented` is the type as sent if it is not in `TYPES`. In that case, `type` is STRING, so that an earlier
    release can still read the document after a rollback.
    """

    name: str
    ordinal: int
    type: str
    length: int
    precision: int
    scale: int
    key: int
    nullable: bool | None
    undocumented: str | None = None


class MetadataDocument(Struct, frozen=True, rename="camel"):
    """A metadata message without the parts that reading rows does not need. Columns are sorted by ordinal."""

    schema_id: str
    server: str | None
    task: str | None
    schema: str | None
    table: str
    table_version: int | None
    timestamp: str | None
    columns: Annotated[tuple[MetadataColumn, ...], Meta(min_length=1)]
    data_schema: str | None


def read_document(frame: Frame, limits: Limits) -> MetadataDocument:
    """Return a metadata message's document.

    Raises:
        MessageError: something is missing, has the wrong JSON type, or contradicts something else. Nothing is learned
            from the message.
    """
    body, path = frame.body, frame.path
    lineage, at = field(body, "lineage", dict, path), f"{path}.lineage"
    table = field(lineage, "table", str, at)
    if not table:
        raise MessageError(ErrorCode.INVALID_FIELD, "table is empty", path=f"{at}.table")
    return MetadataDocument(
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
    """Return the id to which data messages refer. The envelope repeats the id or, according to Replicate's Help, may
    leave it null.
    """
    path = f"{frame.path}.schemaId"
    schema_id = read_schema_id(frame.body, "schemaId", frame.path)
    if schema_id is None:
        raise MessageError(ErrorCode.MISSING_FIELD, "schemaId is missing, null or empty", path=path)
    if frame.schema_id not in (None, schema_id):
        raise MessageError(
            ErrorCode.INVALID_FIELD,
            f"schemaId {quote(schema_id)} differs from the envelope's messageSchemaId {quote(frame.schema_id)}",
            path=path,
        )
    return schema_id


def _data_schema(body: JsonObject, path: str, limits: Limits) -> str | None:
    """Return the part of the Avro schema that data messages are read with. Only Avro messages need it."""
    text: str | None = field(body, "dataSchema", str, path, optional=True)
    if text is not None and len(text.encode()) > limits.schema_text_bytes:
        raise MessageError(
            ErrorCode.LIMIT_EXCEEDED,
            f"dataSchema is longer than {limits.schema_text_bytes} bytes (limits.schema_text_bytes)",
            path=f"{path}.dataSchema",
        )
    return None if text is None else reading_part(text)


def _columns(structure: JsonObject, path: str, limits: Limits) -> tuple[MetadataColumn, ...]:
    listed, path = field(structure, "tableColumns", dict, path), f"{path}.tableColumns"
    if not listed:
        raise MessageError(ErrorCode.INVALID_FIELD, "tableColumns is empty", path=path)
    if len(listed) > limits.columns:
        raise MessageError(
            ErrorCode.LIMIT_EXCEEDED,
            f"the table has {len(listed)} columns, but only {limits.columns} are allowed (limits.columns)",
            path=path,
        )
    columns = [_column(name, field(listed, name, dict, path), f"{path}.{quote(name)}", limits) for name in listed]
    _check_unique("ordinal", [column.ordinal for column in columns], path)
    _check_unique("primaryKeyPosition", [column.key for column in columns if column.key], path)
    return tuple(sorted(columns, key=lambda column: column.ordinal))


def _column(name: str, told: JsonObject, path: str, limits: Limits) -> MetadataColumn:
    type_: str = field(told, "type", str, path)
    # Conversion to upper case can turn letters from other alphabets into letters in a name.
    known = type_.upper() if type_.isascii() else ""
    return MetadataColumn(
        name,
        # A mask has a bit for every ordinal, so ordinals must not exceed the limit on columns, although gaps are valid.
        _number(told, "ordinal", path, 1, limits.columns),
        known if known in TYPES else "STRING",
        _number(told, "length", path, 0, 2**63 - 1, optional=True) or 0,
        _number(told, "precision", path, 0, MAX_DIGITS, optional=True) or 0,
        _number(told, "scale", path, -MAX_DIGITS, MAX_DIGITS, optional=True) or 0,
        _number(told, "primaryKeyPosition", path, 0, limits.columns, optional=True) or 0,
        field(told, "nullable", bool, path, optional=True),
        None if known in TYPES else type_,
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


def encode_document(document: MetadataDocument) -> bytes:
    """Return compact JSON with fields in the order in which the class declares them."""
    return msgspec.json.encode(document)
