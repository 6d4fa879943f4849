"""Write Kafka Connect's schema for a Debezium envelope: the field `schema` in the JSON format.

The schema declares nothing but the content of the event: the columns of its row and the fields in its `source`. If a
declared field has no value, Connect passes NULL to its sinks. Sinks cannot see a field that is not declared, so an
absent column is not declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, get_type_hints

import msgspec
from msgspec import Struct

from cdc_core.envelope import NAMESPACE, TableSchema
from translator.codecs.debezium.envelope import ConnectSource, Payload, Transaction
from translator.codecs.debezium.images import Columns

Schema: TypeAlias = dict[str, Any]


class Type(NamedTuple):
    """A Connect type, and the semantic name that gives Debezium consumers more detail."""

    type: str
    name: str | None = None

    def schema(self, *, optional: bool) -> Schema:
        named = {} if self.name is None else {"name": self.name, "version": 1}
        return {"type": self.type, "optional": optional, **named}


STRING = Type("string")

# Connect has no unsigned integers, so each unsigned type is stored in the next wider type. Dates and times stay text,
# as in the images. Debezium's numeric types end at microseconds or in the year 2262, and its text types (IsoDate,
# IsoTimestamp) imply UTC, which is wrong for a local time.
TYPES: Mapping[str, Type] = {
    "boolean": Type("boolean"),
    "int8": Type("int8"),
    "int16": Type("int16"),
    "int32": Type("int32"),
    "int64": Type("int64"),
    "uint8": Type("int16"),
    "uint16": Type("int32"),
    "uint32": Type("int64"),
    "uint64": STRING,
    "decimal": STRING,
    "float32": Type("float"),
    "float64": Type("double"),
    "string": STRING,
    "bytes": Type("bytes"),
    "date": STRING,
    "time": STRING,
    "timestamp": STRING,
    "timestamptz": Type("string", "io.debezium.time.ZonedTimestamp"),
    "interval": STRING,
    "json": Type("string", "io.debezium.data.Json"),
    "uuid": Type("string", "io.debezium.data.Uuid"),
    "enum": STRING,
    "set": STRING,
    "geometry": Type("bytes"),
    "unknown": STRING,
}
_FLOATS = frozenset({"float", "double"})

# A message without a schema, such as a delete from Canal, can still belong to a typed column. Its key must be
# byte-identical to the key under which a message with a schema created the row. Keys therefore have no narrow types.
KEY_TYPES: Mapping[Type, Type] = {
    Type("int8"): Type("int64"),
    Type("int16"): Type("int64"),
    Type("int32"): Type("int64"),
    Type("float"): Type("double"),
}

Names: TypeAlias = tuple[str, ...]
Found: TypeAlias = tuple[tuple[str, Type], ...]
"""The types of columns that no schema declares, according to their values."""


class TableTypes:
    """The schema blocks for one table with one schema.

    Args:
        levels: source, database, schema and table. If a level is absent, the names leave it out.
        schema: None derives the type of each column from its values.
    """

    def __init__(self, levels: Iterable[str | None], schema: TableSchema | None) -> None:
        self._prefix = ".".join(level for level in levels if level)
        columns = () if schema is None else schema.columns
        self._types = {column.name: TYPES[column.type.partition("(")[0]] for column in columns}
        self._declared = frozenset(column.name for column in columns if column.type != "unknown")
        self._floats = frozenset(name for name in self._declared if self._types[name].type in _FLOATS)

    @property
    def declared(self) -> Set[str]:
        """The columns that have a declared type."""
        return self._declared

    @property
    def floats(self) -> Set[str]:
        """Columns with text that Kafka Connect would misread."""
        return self._floats

    def fit(self, columns: Columns) -> Set[str]:
        """Remove the columns that Connect would misread, and return them. Connect reads the text NaN as the number
        0.
        """
        unfit = {name for name in self._floats & columns.keys() if bytes(columns[name]).startswith(b'"')}
        for name in unfit:
            del columns[name]
        return unfit

    def found(self, *images: Columns) -> Found:
        """Return the type of each undeclared column in the images. If the values of a column have different types, the
        column is text.
        """
        types: dict[str, Type] = {}
        for columns in images:
            if columns.keys() <= self._declared:
                continue
            for name, value in columns.items():
                if name not in self._declared and (kind := type_of(bytes(value))):
                    types[name] = STRING if types.get(name, kind) != kind else kind
        return tuple(types.items())

    def key(self, names: Names, found: Found) -> Schema:
        """Return the block for a message key."""
        types = {**self._types, **dict(found)}
        widened = {name: KEY_TYPES.get(kind, kind) for name, kind in types.items() if name in names}
        return self._struct("Key", names, widened, optional=False)

    def row(self, names: Names, found: Found) -> Schema:
        """Return the block for a value that consists of the row alone."""
        return self._struct("Value", names, {**self._types, **dict(found)})

    def value(self, columns: Names | None, found: Found, source: Names) -> Schema:
        """Return the block for a value with these `source` fields.

        Args:
            columns: the columns in both images. None stands for the columns of the table, if the event has no image.
        """
        names = tuple(self._types) if columns is None else columns
        row = {**self._struct("Value", names, {**self._types, **dict(found)}), "optional": True}
        parts: Mapping[str, Schema] = {
            "before": row,
            "after": row,
            "source": _struct_of(ConnectSource, f"{NAMESPACE}.Source", source),
            "transaction": {**_struct_of(Transaction, "event.block"), "optional": True},
            "pkNames": {"type": "array", "items": STRING.schema(optional=False), "optional": True},
        }
        return _struct_of(Payload, f"{self._prefix}.Envelope", parts=parts)

    def _struct(self, suffix: str, names: Names, types: Mapping[str, Type], *, optional: bool = True) -> Schema:
        fields = [{**types.get(name, STRING).schema(optional=optional), "field": name} for name in names]
        return {"type": "struct", "fields": fields, "optional": False, "name": f"{self._prefix}.{suffix}"}


def type_of(value: bytes) -> Type | None:
    """Return a value's type. An image contains a number only if its column has a type. The number then has 64 bits.

    None means that the value is null and has no type.
    """
    if value == b"null":
        return None
    if value.startswith(b'"'):
        return STRING
    if value in (b"true", b"false"):
        return Type("boolean")
    return Type("double") if any(sign in value for sign in b".eE") else Type("int64")


def as_text(columns: Columns, found: Found) -> Columns:
    """Return the image with text in every undeclared text column. Connect would read a number in a text column as a
    missing value.
    """
    text = {name for name, kind in found if kind == STRING}
    return {
        name: value if name not in text or bytes(value).startswith((b'"', b"n")) else msgspec.Raw(b'"' + value + b'"')
        for name, value in columns.items()
    }


_SCALARS: Mapping[Any, Type] = {str: STRING, int: Type("int64")}


def _struct_of(
    kind: type[Struct], name: str, members: Names | None = None, parts: Mapping[str, Schema] = MappingProxyType({})
) -> Schema:
    """Return the struct for a class, with its fields in the order in which they are written.

    Args:
        members: the fields to declare, or None for all.
        parts: the schemas of fields that are not scalars.
    """
    hints = get_type_hints(kind)
    fields = []
    for item in msgspec.structs.fields(kind):
        if members is None or item.name in members:
            schema = parts.get(item.encode_name) or _scalar(hints[item.name])
            fields.append({**schema, "field": item.encode_name})
    return {"type": "struct", "fields": fields, "optional": False, "name": name, "version": 1}


def _scalar(hint: Any) -> Schema:
    optional = type(None) in getattr(hint, "__args__", ())
    plain = next(arm for arm in hint.__args__ if arm is not type(None)) if optional else hint
    return _SCALARS[plain].schema(optional=optional)
