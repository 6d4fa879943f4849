"""Bytes -> record, by a schema that arrived with the data: fastavro after a strict walk.

fastavro takes a negative index of an enum or a union for one from the end, ignores bytes after the datum and accepts
integers of any length (facts/peers.md E3). The walk refuses all that and names the place, building nothing; after it
fastavro has only the text encoding left to complain about. It is never shown the schema as it came, but one that is
made anew of the checked types, with names of ours and without logical types: what they mean, the caller knows better.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import fastavro

from translator.dialects._avro_schema import AvroType
from translator.errors import ErrorCode, MessageError, quote

Scan: TypeAlias = Callable[[bytes, int], int]
"""Takes the bytes and where a value starts, returns where it ends; beyond the last byte when the value is cut off."""

Datum: TypeAlias = dict[str, Any]


class Damage(Exception):
    """The bytes are no datum of the schema. `names` lead to the place, from the inside."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.names: list[str] = []


class DatumReader:
    """Reads records of one schema."""

    def __init__(self, schema: AvroType) -> None:
        if schema.kind != "record":
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"a schema of type {schema.kind}, not of a record")
        self.schema = schema
        self._scan = _Compiler().scan(schema)
        self._plain = fastavro.parse_schema(_Renamed().write(schema))

    def read(self, data: bytes, path: str = "$") -> Datum:
        """The record that all of the bytes make up.

        Raises:
            MessageError: MALFORMED_AVRO.
        """
        try:
            end = self._scan(data, 0)
            if end != len(data):
                raise Damage(_TRUNCATED if end > len(data) else f"{len(data) - end} bytes after the record")
        except Damage as damage:
            at = path + "".join(f".{quote(name)[1:-1]}" for name in reversed(damage.names))
            reason = f"not a record of its schema: {damage.reason}"
            raise MessageError(ErrorCode.MALFORMED_AVRO, reason, path=at) from None
        try:
            record: Datum = fastavro.schemaless_reader(io.BytesIO(data), self._plain, None)  # type: ignore[assignment]
        except UnicodeDecodeError:
            raise MessageError(ErrorCode.MALFORMED_AVRO, "a string is not UTF-8", path=path) from None
        return record


_TRUNCATED = "the bytes end inside a value"
_LONG_BYTES = 10


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of at most 64 bits, and where it ends.

    Raises:
        IndexError: the bytes end before it does.
    """
    number = shift = 0
    for end in range(at + 1, at + _LONG_BYTES + 1):
        byte = data[end - 1]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> 64:
                break
            return (number >> 1) ^ -(number & 1), end
        shift += 7
    raise Damage("an integer of more than 64 bits")


# -- the walk


def _null(data: bytes, at: int) -> int:
    return at


def _boolean(data: bytes, at: int) -> int:
    if data[at] > 1:
        raise Damage("a boolean that is neither 0 nor 1")
    return at + 1


def _varint(data: bytes, at: int, most: int, last: int, bits: int) -> int:
    """The end of an integer of at most `most` bytes, of which the last has no bits above those of `last`."""
    for end in range(at, at + most - 1):
        if data[end] < 0x80:
            return end + 1
    if data[at + most - 1] > last:
        raise Damage(f"an integer of more than {bits} bits")
    return at + most


def _long(data: bytes, at: int) -> int:
    return at + 1 if data[at] < 0x80 else _varint(data, at, _LONG_BYTES, 0x01, 64)


def _int(data: bytes, at: int) -> int:
    return at + 1 if data[at] < 0x80 else _varint(data, at, 5, 0x0F, 32)


def _float(data: bytes, at: int) -> int:
    return at + 4


def _double(data: bytes, at: int) -> int:
    return at + 8


def _sized(data: bytes, at: int) -> int:
    byte = data[at]
    if byte < 0x80 and not byte & 1:
        return at + 1 + (byte >> 1)
    length, start = read_long(data, at)
    if length < 0:
        raise Damage("a negative length")
    return start + length


_PRIMITIVES: Mapping[str, Scan] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _sized,
    "string": _sized,
}


class _Compiler:
    def __init__(self) -> None:
        self._made: dict[int, Scan] = {}
        """By identity: a type that is referred to stands at several places, and is compiled once."""
        self._composites: Mapping[str, Callable[[AvroType], Scan]] = {
            "record": self._record,
            "enum": lambda schema: _index("enum ordinal", len(schema.symbols)),
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
        fields = [(name, self.scan(type_)) for name, type_ in schema.fields]

        def record(data: bytes, at: int) -> int:
            name = ""
            try:
                for name, scan in fields:  # noqa: B007 - the handlers need the field that was reached
                    at = scan(data, at)
            except IndexError:
                damage = Damage(_TRUNCATED)
                damage.names.append(name)
                raise damage from None
            except Damage as damage:
                damage.names.append(name)
                raise
            return at

        return record

    def _union(self, schema: AvroType) -> Scan:
        if len(schema.branches) == 2 and schema.branches[0].kind == "null":
            return _nullable(self.scan(schema.branches[1]))
        branches = [self.scan(branch) for branch in schema.branches]
        index = _index("union index", len(branches))
        # Zigzag doubles: an index below 64 is one byte, and then this table saves the arithmetic.
        by_byte = {2 * number: branch for number, branch in enumerate(branches[:64])}

        def union(data: bytes, at: int) -> int:
            branch = by_byte.get(data[at])
            if branch is not None:
                return branch(data, at + 1)
            end = index(data, at)
            return branches[read_long(data, at)[0]](data, end)

        return union


def _nullable(value: Scan) -> Scan:
    """Null or a value, as nearly every column is. The common sizes of an integer and of a text are read in one go."""
    index = _index("union index", 2)

    def of_integer(data: bytes, at: int) -> int:
        branch = data[at]
        if branch == 2:
            return at + 2 if data[at + 1] < 0x80 else value(data, at + 1)
        return at + 1 if branch == 0 else any_other(data, at)

    def of_text(data: bytes, at: int) -> int:
        branch = data[at]
        if branch == 2:
            length = data[at + 1]
            return at + 2 + (length >> 1) if length < 0x80 and not length & 1 else _sized(data, at + 1)
        return at + 1 if branch == 0 else any_other(data, at)

    def of_anything(data: bytes, at: int) -> int:
        branch = data[at]
        if branch == 2:
            return value(data, at + 1)
        return at + 1 if branch == 0 else any_other(data, at)

    def any_other(data: bytes, at: int) -> int:
        """An index that is none, or one that is spelled in more bytes than it needs."""
        end = index(data, at)
        return value(data, end) if read_long(data, at)[0] else end

    if value in (_int, _long):
        return of_integer
    return of_text if value is _sized else of_anything


def _fixed(size: int) -> Scan:
    return lambda data, at: at + size


def _index(what: str, count: int) -> Scan:
    def read(data: bytes, at: int) -> int:
        number, end = read_long(data, at)
        if not 0 <= number < count:
            raise Damage(f"{what} {number}; allowed: 0 to {count - 1}")
        return end

    return read


# -- the schema that fastavro is shown


class _Renamed:
    """The checked types as a schema; named types are called t0, t1, … in the order in which they are met."""

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
