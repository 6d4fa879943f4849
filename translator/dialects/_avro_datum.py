"""Read a record with a schema that arrived with the data. A strict walk over the bytes comes first, and then fastavro
reads them.

For fastavro, a negative enum or union index counts from the end. It also ignores bytes after the datum, and accepts
integers of any length. The walk rejects all of this, reports the position, and builds nothing. After the walk, nothing
but the encoding of text can fail in fastavro. The library never gets the original schema. Instead, it gets a schema
built from the checked types, with generated names. Logical types are left out, because the caller interprets them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import fastavro

from translator.dialects._avro_primitives import (
    LONG_BYTES,
    TRUNCATED,
    Damage,
    Scan,
    double_end,
    enum_scan,
    index_reader,
    null_end,
    record_scan,
    sized_end,
    union_scan,
)
from translator.dialects._avro_schema import AvroType
from translator.errors import ErrorCode, MessageError

Datum: TypeAlias = dict[str, Any]


class DatumReader:
    """Reads records with one schema."""

    def __init__(self, schema: AvroType) -> None:
        if schema.kind != "record":
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"the schema has type {schema.kind}; expected record")
        self.schema = schema
        self._scan = _Compiler().scan(schema)
        self._plain = fastavro.parse_schema(_Renamed().write(schema))

    def read(self, data: bytes, path: str = "$") -> Datum:
        """Return the record that the bytes contain. No bytes may be left over.

        Raises:
            MessageError: MALFORMED_AVRO.
        """
        try:
            end = self._scan(data, 0)
            if end != len(data):
                raise Damage(
                    TRUNCATED if end > len(data) else f"the record is followed by {len(data) - end} unexpected bytes"
                )
        except Damage as damage:
            reason = f"the record does not match its schema: {damage.reason}"
            raise MessageError(ErrorCode.MALFORMED_AVRO, reason, path=path + damage.path[1:]) from None
        try:
            record: Datum = fastavro.schemaless_reader(io.BytesIO(data), self._plain, None)  # type: ignore[assignment]
        except UnicodeDecodeError:
            raise MessageError(ErrorCode.MALFORMED_AVRO, "a string is not valid UTF-8", path=path) from None
        return record

    def write(self, record: Datum) -> bytes:
        """Return the encoded record. If several types of a union are possible, the best one is used."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._plain, record)
        return out.getvalue()


# -- the walk


def _boolean(data: bytes, at: int) -> int:
    if data[at] > 1:
        raise Damage("a boolean has a value other than 0 and 1")
    return at + 1


def _varint(data: bytes, at: int, most: int, last: int, bits: int) -> int:
    """Return the end of an integer that has at most `most` bytes. If the integer has exactly `most` bytes, its last
    byte must not be greater than `last`.
    """
    for end in range(at, at + most - 1):
        if data[end] < 0x80:
            return end + 1
    if data[at + most - 1] > last:
        raise Damage(f"an integer has more than {bits} bits")
    return at + most


def _long(data: bytes, at: int) -> int:
    return at + 1 if data[at] < 0x80 else _varint(data, at, LONG_BYTES, 0x01, 64)


def _int(data: bytes, at: int) -> int:
    return at + 1 if data[at] < 0x80 else _varint(data, at, 5, 0x0F, 32)


def _float(data: bytes, at: int) -> int:
    return at + 4


_PRIMITIVES: Mapping[str, Scan] = {
    "null": null_end,
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _float,
    "double": double_end,
    "bytes": sized_end,
    "string": sized_end,
}


class _Compiler:
    def __init__(self) -> None:
        self._made: dict[int, Scan] = {}
        """Cached by identity, because a type that others refer to appears several times but is compiled only once."""
        self._composites: Mapping[str, Callable[[AvroType], Scan]] = {
            "record": self._record,
            "enum": lambda schema: enum_scan(len(schema.symbols)),
            "fixed": lambda schema: _fixed(schema.size),
            "union": self._union,
        }

    def scan(self, schema: AvroType) -> Scan:
        if schema.kind in _PRIMITIVES:
            return _PRIMITIVES[schema.kind]
        if id(schema) not in self._made:
            self._made[id(schema)] = self._composites[schema.kind](schema)
        return self._made[id(schema)]

    def _record(self, schema: AvroType) -> Scan:
        return record_scan([(name, self.scan(type_)) for name, type_ in schema.fields])

    def _union(self, schema: AvroType) -> Scan:
        if len(schema.branches) == 2 and schema.branches[0].kind == "null":
            return _nullable(self.scan(schema.branches[1]))
        return union_scan([self.scan(branch) for branch in schema.branches])


def _nullable(value: Scan) -> Scan:
    """Read null or a value. Nearly every column has this type. Integers and strings of common sizes are read in one
    step.
    """
    index = index_reader("union index", 2)

    def of_integer(data: bytes, at: int) -> int:
        branch = data[at]
        if branch == 2:
            return at + 2 if data[at + 1] < 0x80 else value(data, at + 1)
        return at + 1 if branch == 0 else any_other(data, at)

    def of_text(data: bytes, at: int) -> int:
        branch = data[at]
        if branch == 2:
            length = data[at + 1]
            return at + 2 + (length >> 1) if length < 0x80 and not length & 1 else sized_end(data, at + 1)
        return at + 1 if branch == 0 else any_other(data, at)

    def of_anything(data: bytes, at: int) -> int:
        branch = data[at]
        if branch == 2:
            return value(data, at + 1)
        return at + 1 if branch == 0 else any_other(data, at)

    def any_other(data: bytes, at: int) -> int:
        """Read an index that is invalid or uses more bytes than necessary."""
        number, end = index(data, at)
        return value(data, end) if number else end

    if value in (_int, _long):
        return of_integer
    return of_text if value is sized_end else of_anything


def _fixed(size: int) -> Scan:
    return lambda data, at: at + size


# -- the schema that fastavro gets


class _Renamed:
    """Return the checked types as a schema. Named types are called t0, t1, … in the order of their first occurrence."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def write(self, schema: AvroType) -> Any:
        if schema.kind == "union":
            return [self.write(branch) for branch in schema.branches]
        if not schema.name:
            return schema.kind
        if id(schema) in self._names:
            return self._names[id(schema)]
        name = self._names[id(schema)] = f"t{len(self._names)}"
        written: dict[str, Any] = {"type": schema.kind, "name": name}
        if schema.kind == "record":
            written["fields"] = [{"name": field, "type": self.write(type_)} for field, type_ in schema.fields]
        elif schema.kind == "enum":
            written["symbols"] = list(schema.symbols)
        else:
            written["size"] = schema.size
        return written
