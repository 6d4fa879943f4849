"""Read Avro's binary encoding strictly. This module has scalars, the steps that walks over all schemas share, and the
error type.

All readers take the bytes and the start of a value, and return its end. If a value is truncated, its end is beyond the
last byte, so the next read raises IndexError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from translator.errors import quote

Scan: TypeAlias = Callable[[bytes, int], int]
"""Takes the bytes and the start of a value, and returns its end. For a truncated value, the end is beyond the last
byte.
"""


class Damage(Exception):
    """The bytes are not a datum with this schema. `names` are the names on the path to the damage, innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.names: list[str] = []

    @property
    def path(self) -> str:
        """The location of the damage, as a JSON path from `$`."""
        return "$" + "".join(f".{quote(name)[1:-1]}" for name in reversed(self.names))


class TooMany(Damage):
    """An array has more items than the limit allows, or a map has more entries than the bytes can contain."""


TRUNCATED = "the data ends in the middle of a value"
LONG_BYTES = 10


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 64 bits. Return it together with its end.

    Raises:
        IndexError: the bytes end before the varint does.
    """
    number = data[at]
    if number < 0x80:
        return (number >> 1) ^ -(number & 1), at + 1
    number &= 0x7F
    shift = 7
    for end in range(at + 2, at + LONG_BYTES + 1):
        byte = data[end - 1]
        if byte < 0x80:
            number |= byte << shift
            if number >> 64:
                break
            return (number >> 1) ^ -(number & 1), end
        number |= (byte & 0x7F) << shift
        shift += 7
    raise Damage("an integer has more than 64 bits")


def read_int(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint with at most 32 bits. Avro's own readers accept longer varints."""
    number, end = read_long(data, at)
    if not -(2**31) <= number < 2**31:
        raise Damage("an int has more than 32 bits")
    return number, end


def int_end(data: bytes, at: int) -> int:
    """Return the end of an int."""
    return at + 1 if data[at] < 0x80 else read_int(data, at)[1]


def sized_start(data: bytes, at: int) -> tuple[int, int]:
    """Return the start and the end of a text or of bytes, without the length in front of them."""
    length = data[at]
    if not length & 0x81:
        return at + 1, at + 1 + (length >> 1)
    length, start = read_long(data, at)
    if length < 0:
        raise Damage("a negative length")
    return start, start + length


def sized_end(data: bytes, at: int) -> int:
    """Return the end of text or bytes."""
    length = data[at]
    return at + 1 + (length >> 1) if not length & 0x81 else sized_start(data, at)[1]


def read_text(data: bytes, at: int) -> tuple[str, int]:
    """Read a string.

    Raises:
        UnicodeDecodeError: the string is not UTF-8.
    """
    length = data[at]
    if not length & 0x81:
        end = at + 1 + (length >> 1)
        return data[at + 1 : end].decode(), end
    start, end = sized_start(data, at)
    return data[start:end].decode(), end


def read_index(data: bytes, at: int, count: int) -> tuple[int, int]:
    """Return the index of the branch in a union with this many branches, or the ordinal of the symbol in an enum with
    this many symbols.
    """
    index, at = read_long(data, at)
    if not 0 <= index < count:
        raise Damage("an index is out of range")
    return index, at


def read_count(data: bytes, at: int, max_items: int) -> tuple[int, int, int | None]:
    """Return the number of items in a block and the start of the items. If the block states its size, also return the
    end of the items.
    """
    count, at = read_long(data, at)
    end = None
    if count < 0:
        size, at = read_long(data, at)
        count, end = -count, at + size
    if count > max_items:
        raise TooMany("items")
    return count, at, end


def check_block(items: int, at: int, end: int | None, max_items: int) -> None:
    """Reject a block that does not end where its size says, or that exceeds the limit on items."""
    if end is not None and end != at:
        raise Damage("the content of a block does not match the block's size")
    if items > max_items:
        raise TooMany("items")


# -- walks, which build nothing


def null_end(data: bytes, at: int) -> int:
    """Return the end of a null."""
    return at


def double_end(data: bytes, at: int) -> int:
    """Return the end of a double."""
    return at + 8


def record_scan(fields: Sequence[tuple[str, Scan]]) -> Scan:
    """Return a function that walks over a record with these fields. Its errors name the damaged field."""

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


def union_scan(branches: Sequence[Scan]) -> Scan:
    """Return a function that walks over a union."""
    read = index_reader("union index", len(branches))
    # Zigzag doubles a number, so an index below 64 takes one byte, and this table saves the arithmetic.
    by_byte = {2 * number: branch for number, branch in enumerate(branches[:64])}

    def union(data: bytes, at: int) -> int:
        branch = by_byte.get(data[at])
        if branch is not None:
            return branch(data, at + 1)
        number, end = read(data, at)
        return branches[number](data, end)

    return union


def enum_scan(symbols: int) -> Scan:
    """Return a function that walks over an enum with this many symbols."""
    read = index_reader("enum ordinal", symbols)
    return lambda data, at: read(data, at)[1]


def index_reader(what: str, count: int) -> Callable[[bytes, int], tuple[int, int]]:
    """Return a reader like `read_index`. If an index is out of range, the error mentions `what`."""

    def read(data: bytes, at: int) -> tuple[int, int]:
        number, end = read_long(data, at)
        if not 0 <= number < count:
            # A symbol that a later schema adds has a small number. A large number is more likely a value in the wrong
            # place.
            named = number if -_NEAR <= number < _NEAR else f"outside {-_NEAR} to {_NEAR - 1}"
            raise Damage(f"{what} {named}; allowed: 0 to {count - 1}")
        return number, end

    return read


_NEAR = 64
"""Numbers encoded in one byte."""
