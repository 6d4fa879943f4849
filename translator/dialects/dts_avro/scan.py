"""A strict walk over Avro bytes that builds nothing: what fastavro lets through, and where the damage is.

fastavro takes a negative index of an enum or a union for one from the end (a wrong value without an error), ignores
bytes after the datum, and accepts varints of any length and ints beyond 32 bits (formats/dts_avro.md section 8). This
walk refuses all of that and names the place; after it fastavro has only the text encoding left to complain about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Scan: TypeAlias = Callable[[bytes, int], int]
"""Takes the bytes and where a value starts, returns where it ends; beyond the last byte when the value is cut off."""


class Damage(Exception):
    """The bytes are no datum of the schema. `path` leads to the place."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.names: list[str] = []

    @property
    def path(self) -> str:
        """Where: a JSON path from `$`."""
        return "$" + "".join(f".{name}" for name in reversed(self.names))


class TooMany(Damage):
    """An array has more items than the limit allows, or a map more than the bytes can hold."""


TRUNCATED = "the bytes end inside a value"
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


def compile_scan(schema: Any, max_items: int) -> Scan:
    """The walk for a parsed schema; arrays of more than `max_items` are refused."""
    return _Compiler(max_items).scan(schema)


def _null(data: bytes, at: int) -> int:
    return at


def _long(data: bytes, at: int) -> int:
    return at + 1 if data[at] < 0x80 else read_long(data, at)[1]


def _int(data: bytes, at: int) -> int:
    if data[at] < 0x80:
        return at + 1
    number, end = read_long(data, at)
    if not -(2**31) <= number < 2**31:
        raise Damage("an int of more than 32 bits")
    return end


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


_PRIMITIVES: dict[str, Scan] = {
    "null": _null,
    "int": _int,
    "long": _long,
    "double": _double,
    "bytes": _sized,
    "string": _sized,
}


class _Compiler:
    def __init__(self, max_items: int) -> None:
        self._max_items = max_items
        self._named: dict[str, Scan] = {}
        self._composites: dict[str, Callable[[dict[str, Any]], Scan]] = {
            "record": self._record,
            "enum": self._enum,
            "array": self._array,
            "map": self._map,
        }

    def scan(self, schema: Any) -> Scan:
        if isinstance(schema, list):
            return _union([self.scan(branch) for branch in schema])
        if isinstance(schema, str):
            return _PRIMITIVES.get(schema) or self._named[schema]
        made = self._composites[schema["type"]](schema)
        if "name" in schema:
            self._named[schema["name"]] = made
        return made

    def _record(self, schema: dict[str, Any]) -> Scan:
        fields = [(field["name"], self.scan(field["type"])) for field in schema["fields"]]

        def record(data: bytes, at: int) -> int:
            name = ""
            try:
                for name, scan in fields:  # noqa: B007 - the handlers need the field that was reached
                    at = scan(data, at)
            except IndexError:
                damage = Damage(TRUNCATED)
                damage.names.append(name)
                raise damage from None
            except Damage as damage:
                damage.names.append(name)
                raise
            return at

        return record

    def _enum(self, schema: dict[str, Any]) -> Scan:
        read = _index("enum ordinal", len(schema["symbols"]))

        def enum(data: bytes, at: int) -> int:
            return read(data, at)[1]

        return enum

    def _array(self, schema: dict[str, Any]) -> Scan:
        item = self.scan(schema["items"])

        def array(data: bytes, at: int) -> int:
            return _blocks(data, at, item, self._max_items)

        return array

    def _map(self, schema: dict[str, Any]) -> Scan:
        value = self.scan(schema["values"])

        def map_(data: bytes, at: int) -> int:
            keys: set[bytes] = set()

            def entry(data: bytes, at: int) -> int:
                end = _sized(data, at)
                if data[at:end] in keys:
                    raise Damage("a key that is there twice")
                keys.add(data[at:end])
                return value(data, end)

            return _blocks(data, at, entry, len(data))

        return map_


def _blocks(data: bytes, at: int, item: Scan, max_items: int) -> int:
    items = 0
    while True:
        count, at = read_long(data, at)
        if count == 0:
            return at
        end = None
        if count < 0:  # a block that tells its size
            size, at = read_long(data, at)
            count, end = -count, at + size
        items += count
        if items > max_items:
            raise TooMany(f"more than {max_items} items")
        for _ in range(count):
            at = item(data, at)
        if end is not None and end != at:
            raise Damage("a block that does not end where it says")


def _index(what: str, count: int) -> Callable[[bytes, int], tuple[int, int]]:
    def read(data: bytes, at: int) -> tuple[int, int]:
        number, end = read_long(data, at)
        if not 0 <= number < count:
            raise Damage(f"{what} {number}; allowed: 0 to {count - 1}")
        return number, end

    return read


def _union(branches: list[Scan]) -> Scan:
    read = _index("union index", len(branches))
    # Zigzag doubles: an index below 64 is one byte, and then this table saves the arithmetic.
    by_byte = {2 * number: branch for number, branch in enumerate(branches[:64])}

    def union(data: bytes, at: int) -> int:
        branch = by_byte.get(data[at])
        if branch is not None:
            return branch(data, at + 1)
        number, end = read(data, at)
        return branches[number](data, end)

    return union
