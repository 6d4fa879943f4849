"""Read the Kafka key. It contains a table's key columns, and is the last resort for the row of a DELETE (§8).

A key is empty, the table name, or the key columns, as text or as an Avro record. If the text has several columns, its
delimiter is not documented, so it is never split. Text with one column could also be `SCHEMA+TABLE`. It is therefore
read only if the operator declares what the key contains.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from translator.dialects._json import JsonObject, check_distinct, parse_object
from translator.dialects._rows import Converters, ConvertersOr
from translator.dialects._source_text import SentJson
from translator.dialects.qlik.avro import FRAME_BYTES
from translator.dialects.qlik.avro_values import AvroColumn, avro_column, converter_to
from translator.dialects.qlik.row_schema import WriterSchema
from translator.dialects.qlik.tables import UNKNOWN, Table
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Limits


class KeyRow(Struct, frozen=True):
    """The cells in a Kafka key, how to read them, and which of them form the key. `sent` is a JSON key's text."""

    cells: JsonObject
    converters: Converters
    key_columns: tuple[str, ...]
    key_kind: str
    sent: SentJson | None = None


def is_framed(key: bytes | None) -> bool:
    """Return whether a key is Avro in Confluent's frame. No text begins with byte 00."""
    return key is not None and key.startswith(b"\x00") and len(key) >= FRAME_BYTES


def is_object(key: bytes | None) -> bool:
    """Return whether a key can be a JSON object."""
    return key is not None and key.startswith(b"{")


class KeyRecord:
    """Compile the schema for Avro keys ("Encode the message key in Avro format", §3).

    Raises:
        MessageError: the schema is unusable, or is not the schema of a record.
    """

    def __init__(self, schema: WriterSchema) -> None:
        self._reader = schema.record
        self.columns = {name: avro_column(name, type_) for name, type_ in self._reader.schema.fields}

    def row(self, key: bytes, table: Table) -> KeyRow:
        """Return the row from an Avro key.

        Raises:
            MessageError: MALFORMED_AVRO, or the key does not belong to the table.
        """
        cells = self._reader.read(key[FRAME_BYTES:], _PATH)
        converters = {name: self._converter(column, table) for name, column in self.columns.items()}
        return _checked(cells, ConvertersOr(converters, UNKNOWN), table)

    @staticmethod
    def _converter(column: AvroColumn, table: Table) -> Any:
        types = {known.name: known.type for known in table.schema.columns} if table.schema else {}
        return converter_to(types.get(column.name, column.type), column)


_PATH = "$key"


def row_of_text(key: bytes, table: Table, limits: Limits, *, is_primary_key: bool) -> KeyRow:
    """Return the row from a key: a JSON object with columns or, if the operator declares this, the text of the only key
    column.
    """
    cells: JsonObject
    sent: SentJson | None = None
    is_text = is_primary_key and len(table.key_columns) == 1
    if is_object(key) and not (is_text and _is_no_json(key, limits)):
        cells = parse_object(key, limits)
        check_distinct(key, cells)
        sent = SentJson(key, (cells,))
    elif is_text:
        try:
            cells = {table.key_columns[0]: key.decode()}
        except UnicodeDecodeError:
            raise MessageError(ErrorCode.INVALID_FIELD, "the Kafka key is not valid UTF-8", path=_PATH) from None
    else:
        raise MessageError(
            ErrorCode.MISSING_FIELD,
            "a DELETE has no row in beforeData or data, and the Kafka key is not an object of columns (to read the "
            "plain value of a single key column, set the option message_key: primary_key)",
            path=_PATH,
        )
    converters = ConvertersOr({name: table.text_converter(name) for name in cells}, UNKNOWN)
    return _checked(cells, converters, table, sent)


def named_key(key: bytes | None, row: JsonObject, limits: Limits) -> tuple[str, ...] | None:
    """Return the row's key columns that a JSON key contains. The result is () if the key has other columns, and None if
    it is not an object.
    """
    if not is_object(key):
        return None
    try:
        cells = parse_object(key or b"", limits)
        check_distinct(key or b"", cells)
    except MessageError:
        return None
    return tuple(cells) if cells.keys() <= row.keys() else ()


def _is_no_json(key: bytes, limits: Limits) -> bool:
    """Return whether a key looks like an object only because of its first character, like `{3F2504E0-…}`."""
    try:
        parse_object(key, limits)
    except MessageError as error:
        return error.code is ErrorCode.MALFORMED_JSON
    return False


def _checked(cells: JsonObject, converters: Converters, table: Table, sent: SentJson | None = None) -> KeyRow:
    """Return the row, if it has all of the table's key columns and no unknown columns."""
    lacking = next((name for name in table.key_columns if cells.get(name) is None), None)
    known = table.schema.column_names if table.schema else cells.keys()
    stray = next((name for name in cells if name not in known), None)
    if lacking is not None or not cells:
        reason = f"the Kafka key lacks the key column {quote(lacking)}" if cells else "the Kafka key is empty"
        raise MessageError(ErrorCode.MISSING_FIELD, f"a DELETE has no row, and {reason}", path=_PATH)
    if stray is not None:
        reason = f"a DELETE has no row, and member {quote(stray)} of the Kafka key is not a column of the table"
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=_PATH)
    if table.key_columns:
        return KeyRow(cells, converters, table.key_columns, table.key_kind, sent)
    return KeyRow(cells, converters, tuple(cells), "primary", sent)
