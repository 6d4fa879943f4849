"""Kafka Connect's schema of a Debezium envelope: the `schema` member of its JSON form.

Only what an event has is declared: the columns of its row, the members of its `source`. Connect hands a declared member
without a value to its sinks as NULL; one that is not declared does not exist for them, which is what "absent" means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, get_type_hints

import msgspec
from msgspec import Struct

from translator.codecs.debezium.envelope import Payload, Source, Transaction
from translator.codecs.debezium.images import Columns
from translator.envelope import NAMESPACE, TableSchema

Schema: TypeAlias = dict[str, Any]


class Type(NamedTuple):
    """A Connect type, and the name by which Debezium's readers know more of it."""

    type: str
    name: str | None = None

    def schema(self, *, optional: bool) -> Schema:
        named = {} if self.name is None else {"name": self.name, "version": 1}
        return {"type": self.type, "optional": optional, **named}


STRING = Type("string")

# Connect has no unsigned integers: each goes into the next wider one. Dates and times stay the text that the images
# hold: Debezium's numeric types end at microseconds or at the year 2262, and its text types (IsoDate, IsoTimestamp)
# claim UTC, which a local time is not.
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

Names: TypeAlias = tuple[str, ...]


class TableTypes:
    """The blocks of one table under one schema.

    Args:
        levels: source, database, schema and table; the absent ones are left out of the names.
        schema: without it, every column is optional text.
    """

    def __init__(self, levels: Iterable[str | None], schema: TableSchema | None) -> None:
        self._prefix = ".".join(level for level in levels if level)
        columns = () if schema is None else schema.columns
        self._types = {column.name: TYPES[column.type.partition("(")[0]] for column in columns}
        # Types whose values the image may hold in another form than Connect reads; most tables have none.
        plain = {column.name for column in columns if column.type != "unknown"}
        self._regular = frozenset(name for name in plain if self._types[name].type not in _FLOATS)

    def fit(self, columns: Columns) -> Set[str]:
        """Writes numbers and booleans of undeclared type as text, and takes out what Connect would misread.

        Connect's converter reads a number as an absent text, and the text NaN as the number 0.
        """
        unfit = set()
        for name in columns.keys() - self._regular:
            value = bytes(columns[name])
            is_text, is_null = value.startswith(b'"'), value == b"null"
            if self._type(name).type in _FLOATS:
                if is_text:
                    unfit.add(name)
            elif not is_text and not is_null:
                columns[name] = msgspec.Raw(b'"' + value + b'"')
        for name in unfit:
            del columns[name]
        return unfit

    def key(self, names: Names) -> Schema:
        """The block of a message key."""
        return self._struct("Key", names, optional=False)

    def value(self, columns: Names | None, source: Names) -> Schema:
        """The block of a value with these members of `source`.

        Args:
            columns: of both images; None: of the table, as no image is there.
        """
        row = {**self._struct("Value", tuple(self._types) if columns is None else columns), "optional": True}
        parts: Mapping[str, Schema] = {
            "before": row,
            "after": row,
            "source": _struct_of(Source, f"{NAMESPACE}.Source", source),
            "transaction": {**_struct_of(Transaction, "event.block"), "optional": True},
            "pkNames": {"type": "array", "items": STRING.schema(optional=False), "optional": True},
        }
        return _struct_of(Payload, f"{self._prefix}.Envelope", parts=parts)

    def _struct(self, suffix: str, names: Names, *, optional: bool = True) -> Schema:
        fields = [{**self._type(name).schema(optional=optional), "field": name} for name in names]
        return {"type": "struct", "fields": fields, "optional": False, "name": f"{self._prefix}.{suffix}"}

    def _type(self, name: str) -> Type:
        return self._types.get(name, STRING)


_SCALARS: Mapping[Any, Type] = {str: STRING, int: Type("int64")}


def _struct_of(
    kind: type[Struct], name: str, members: Names | None = None, parts: Mapping[str, Schema] = MappingProxyType({})
) -> Schema:
    """The struct of a class, its fields in the order in which they are written.

    Args:
        members: those to declare; None: all.
        parts: the schemas of the members that are no scalars.
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
