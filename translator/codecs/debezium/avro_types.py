"""Define the Avro schemas of a table in Debezium format, and encode its rows.

Key columns have wide types. Other columns have the types that the table schema declares. Events without a schema, such
as all deletes from Canal, therefore have exactly the same key bytes as other events.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

import msgspec

from cdc_core.envelope import TableSchema
from translator._native.layout import AvroColumn, NativeAvroTable
from translator.codecs import _datum
from translator.codecs.debezium.connect import KEY_TYPES, TYPES, type_of
from translator.codecs.debezium.images import Columns, refusal
from translator.codecs.registered import avro_name

Node: TypeAlias = dict[str, Any]
Write: TypeAlias = Callable[[bytes], bytes]
"""Converts the JSON text of a value that is not null to its datum. Raises ValueError if the type cannot hold the value.
"""

KeyKinds: TypeAlias = tuple[tuple[str, str], ...]
"""The key columns in key order. The type of each is long, double, boolean or string."""

_NULL = b"\x00"
_SOME = b"\x02"
_decode = msgspec.json.decode


class WrittenColumn(NamedTuple):
    """A column in its table's schemas."""

    name: str
    type: str | Node
    write: Write

    def native(self) -> AvroColumn:
        """Return the column in the extension's format."""
        node: Node = self.type if isinstance(self.type, dict) else {"type": self.type}
        name = msgspec.json.encode(self.name)
        if "logicalType" in node:
            return name, node["logicalType"], node["precision"], node["scale"]
        return name, node["type"], 0, 0

    def field(self, *, optional: bool) -> Node:
        """Return the Avro field. If the column name is not a valid Avro name, the field records the original."""
        legal = avro_name(self.name)
        doc = {} if legal == self.name else {"doc": f"column {self.name}"}
        if optional:
            return {"name": legal, "type": ["null", self.type], **doc, "default": None}
        return {"name": legal, "type": self.type, **doc}


class AvroTable:
    """Schemas and data of one table, with one schema and one set of key types.

    Args:
        levels: source, database, schema and table.
        schema: None limits the row to its key columns.

    Raises:
        MessageError: two columns would have the same name.
    """

    def __init__(self, levels: Iterable[str | None], schema: TableSchema | None, kinds: KeyKinds) -> None:
        self._namespace = ".".join(avro_name(level) for level in levels if level)
        self._key = tuple(WrittenColumn(name, kind, _WRITERS[kind]) for name, kind in kinds)
        keyed = {column.name: column for column in self._key}
        columns = () if schema is None else schema.columns
        rest = dict.fromkeys(name for name in keyed if schema is None or name not in schema.column_names)
        named = [keyed.get(column.name) or _column(column.name, column.type) for column in columns]
        self._columns = (*named, *(keyed[name] for name in rest))
        self._names = frozenset(column.name for column in self._columns)
        if len({avro_name(name) for name in self._names}) < len(self._names):
            raise refusal(
                "two columns of the table would have the same name in Avro, which allows only ASCII letters, "
                "digits and _"
            )

    @property
    def key_name(self) -> str:
        """The full name of the key record."""
        return f"{self._namespace}.Key"

    @property
    def value_name(self) -> str:
        """The full name of the envelope."""
        return f"{self._namespace}.Envelope"

    def native(self, key_header: Callable[[], bytes], value_header: Callable[[], bytes]) -> NativeAvroTable:
        """Return the table in the extension's format."""
        key, columns = (tuple(column.native() for column in columns) for columns in (self._key, self._columns))
        return NativeAvroTable(key_header, value_header, key, columns)

    def key_schema(self) -> Node:
        """Return the schema for record keys."""
        return self._record("Key", [column.field(optional=False) for column in self._key])

    def row_schema(self) -> Node:
        """Return the schema for both images."""
        return self._record("Value", [column.field(optional=True) for column in self._columns])

    def envelope_schema(self, fields: Callable[[Node, str], list[Node]]) -> Node:
        """Return the schema for record values. `fields` returns the envelope's fields, and defines the row where it
        first appears.
        """
        return self._record("Envelope", fields(self.row_schema(), f"{self._namespace}.Value"))

    def _record(self, name: str, fields: list[Node]) -> Node:
        return {"type": "record", "name": name, "namespace": self._namespace, "fields": fields}

    def key(self, columns: Columns) -> bytes:
        """Return a key's datum."""
        return b"".join(_written(column, bytes(columns[column.name])) for column in self._key)

    def row(self, columns: Columns) -> bytes:
        """Return an image's datum. Missing columns are null.

        Raises:
            MessageError: a column is not in the schema, or a value does not fit its type.
        """
        if not columns.keys() <= self._names:
            stray = min(columns.keys() - self._names)
            raise refusal(f"column {stray!r} is not in the table's schema, so it cannot be written in Avro")
        return b"".join(
            _NULL
            if (value := columns.get(column.name)) is None or bytes(value) == b"null"
            else _SOME + _written(column, bytes(value))
            for column in self._columns
        )

    def known(self, columns: Columns) -> Columns:
        """Return an image without the columns that the schema lacks."""
        if columns.keys() <= self._names:
            return columns
        return {name: value for name, value in columns.items() if name in self._names}


def key_kinds(key: Columns | None, schema: TableSchema | None) -> KeyKinds:
    """Return the types of a key: the declared types of its columns or, failing that, the types of its values."""
    types = {} if schema is None else schema.column_types
    if key is None:
        names: Iterable[str] = () if schema is None else schema.key_columns
        return tuple((name, _kind(types[name], b'""')) for name in names)
    return tuple((name, _kind(types.get(name, "unknown"), bytes(value))) for name, value in key.items())


def _kind(canonical: str, value: bytes) -> str:
    if canonical == "unknown":
        found = type_of(value)
        canonical = "string" if found is None else {"int64": "int64", "double": "float64"}.get(found.type, found.type)
    known = TYPES[canonical.partition("(")[0]]
    return _KEY_KINDS.get(KEY_TYPES.get(known, known).type, "string")


_KEY_KINDS: Mapping[str, str] = {"int64": "long", "double": "double", "boolean": "boolean"}


def _column(name: str, canonical: str) -> WrittenColumn:
    head, _, rest = canonical.partition("(")
    if head == "decimal" and rest:
        precision, scale = (int(number) for number in rest.rstrip(")").split(","))
        if 0 <= scale <= precision:
            node = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            return WrittenColumn(name, node, _decimal(precision, scale))
    known = TYPES[head]
    plain, connect = _AVRO[known.type]
    if known.name is not None:
        return WrittenColumn(name, {"type": plain, "connect.version": 1, "connect.name": known.name}, _WRITERS[plain])
    return WrittenColumn(name, {"type": plain, **connect} if connect else plain, _WRITERS[plain])


_AVRO: Mapping[str, tuple[str, Node]] = {
    "boolean": ("boolean", {}),
    "int8": ("int", {"connect.type": "int8"}),
    "int16": ("int", {"connect.type": "int16"}),
    "int32": ("int", {}),
    "int64": ("long", {}),
    "float": ("float", {}),
    "double": ("double", {}),
    "string": ("string", {}),
    "bytes": ("bytes", {}),
}
"""Connect's types in Avro. An annotation tells Connect's converter which of them are narrow."""


# -- values


def _written(column: WrittenColumn, value: bytes) -> bytes:
    try:
        return column.write(value)
    except (ValueError, ArithmeticError, struct.error, msgspec.MsgspecError):
        raise refusal(f"column {column.name!r} has a value that does not fit its type") from None


def _integer(write: Callable[[int], bytes]) -> Write:
    def integer(value: bytes) -> bytes:
        return write(_decode(value, type=int))

    return integer


def _text(value: bytes) -> bytes:
    """Encode text, or any value in a column without a declared type."""
    return _datum.text(_decode(value, type=str) if value.startswith(b'"') else value.decode())


def _bytes(value: bytes) -> bytes:
    try:
        data = base64.b64decode(_decode(value, type=str), validate=True)
    except binascii.Error as error:
        raise ValueError from error
    return _datum.long(len(data)) + data


def _boolean(value: bytes) -> bytes:
    return b"\x01" if _decode(value, type=bool) else b"\x00"


def _packed(form: str) -> Write:
    pack = struct.Struct(form).pack

    def floating(value: bytes) -> bytes:
        # In an image, NaN and the infinities are text.
        return pack(float(_decode(value, type=float | str)))

    return floating


def _decimal(precision: int, scale: int) -> Write:
    def decimal(value: bytes) -> bytes:
        number = Decimal(_decode(value, type=str))
        if not number.is_finite() or (number and number.adjusted() >= precision - scale):
            raise ValueError
        sign, digits, exponent = number.as_tuple()
        shift = int(exponent) + scale if number else 0
        whole = int("".join(map(str, digits)))
        unit: int = 10 ** min(abs(shift), precision + len(digits))
        if shift >= 0:
            unscaled = whole * unit
        else:
            unscaled, lost = divmod(whole, unit)
            if lost:
                raise ValueError
        unscaled = -unscaled if sign else unscaled
        size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return _datum.long(size) + unscaled.to_bytes(size, "big", signed=True)

    return decimal


_WRITERS: Mapping[str, Write] = {
    "boolean": _boolean,
    "int": _integer(_datum.integer),
    "long": _integer(_datum.long),
    "float": _packed("<f"),
    "double": _packed("<d"),
    "string": _text,
    "bytes": _bytes,
}
