"""Walk strictly over Avro bytes, without building anything. The walk finds errors that fastavro accepts, and the
position of damage.

For fastavro, a negative enum or union index counts from the end, which gives a wrong value without an error. It also
ignores bytes after the datum, and accepts varints of any length and ints beyond 32 bits (§8). This walk rejects all of
these and reports the position. After the walk, nothing but the encoding of text can fail in fastavro.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from translator.dialects._avro_primitives import (
    Damage,
    Scan,
    TooMany,
    double_end,
    enum_scan,
    int_end,
    null_end,
    read_long,
    record_scan,
    sized_end,
    sized_start,
    union_scan,
)


def compile_scan(schema: Any, max_items: int) -> Scan:
    """Return the walk for a parsed schema. Arrays with more than `max_items` items are rejected."""
    return _Compiler(max_items).scan(schema)


def _long(data: bytes, at: int) -> int:
    return at + 1 if data[at] < 0x80 else read_long(data, at)[1]


_PRIMITIVES: dict[str, Scan] = {
    "null": null_end,
    "int": int_end,
    "long": _long,
    "double": double_end,
    "bytes": sized_end,
    "string": sized_end,
}


class _Compiler:
    def __init__(self, max_items: int) -> None:
        self._max_items = max_items
        self._named: dict[str, Scan] = {}
        self._composites: dict[str, Callable[[dict[str, Any]], Scan]] = {
            "record": self._record,
            "enum": lambda schema: enum_scan(len(schema["symbols"])),
            "array": self._array,
            "map": self._map,
        }

    def scan(self, schema: Any) -> Scan:
        if isinstance(schema, list):
            return union_scan([self.scan(branch) for branch in schema])
        if isinstance(schema, str):
            return _PRIMITIVES.get(schema) or self._named[schema]
        made = self._composites[schema["type"]](schema)
        if "name" in schema:
            self._named[schema["name"]] = made
        return made

    def _record(self, schema: dict[str, Any]) -> Scan:
        return record_scan([(field["name"], self.scan(field["type"])) for field in schema["fields"]])

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
                start, end = sized_start(data, at)
                if data[start:end] in keys:
                    raise Damage("a map key occurs twice")
                keys.add(data[start:end])
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
        if count < 0:  # a block that contains its size
            size, at = read_long(data, at)
            count, end = -count, at + size
        items += count
        if items > max_items:
            raise TooMany(f"more than {max_items} items")
        for _ in range(count):
            at = item(data, at)
        if end is not None and end != at:
            raise Damage("the content of a block does not match the block's size")
