"""Cache results that depend on strings from messages, in a limited amount of memory.

Names and types come from messages, so there is no limit on their number and length. A limit on the number of entries
would not limit the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from msgspec import Struct, structs

P = ParamSpec("P")
K = TypeVar("K")
V = TypeVar("V")

LONGEST = 1024 * 1024
"""The size of the largest key that is cached, in bytes."""

MOST = 32 * 1024 * 1024
"""The maximum total size of all keys in a cache, in bytes."""

MOST_PACKED = 2 * 1024 * 1024
"""The same limit for keys that are bytes from a message. The cached result is about twenty times as large as such a
key.
"""

_ITEM = 500
"""The number of bytes that a result takes for each item in its key: a column, its type, its reader."""


class SizedMap(dict[K, V]):
    """A dictionary that `keep` clears when it is full.

    Args:
        most, longest: the maximum sizes of all keys together and of a single key, as computed by `size_of`.
    """

    def __init__(self, most: int = MOST, longest: int = LONGEST) -> None:
        super().__init__()
        self._most = most
        self._longest = longest
        self.size = 0

    def keep(self, key: K, value: V) -> None:
        """Add an entry, unless its key is too large. The value must be about as large as the key."""
        size = size_of(key)
        if size > self._longest:
            return
        if self.size + size > self._most:
            self.clear()
            self.size = 0
        self[key] = value
        self.size += size


class SizedCache(Generic[P, V]):
    """A function with a cache. The function's result must depend on nothing but its arguments."""

    def __init__(self, make: Callable[P, V], most: int = MOST, longest: int = LONGEST) -> None:
        self._make = make
        self.known: SizedMap[tuple[object, ...], V] = SizedMap(most, longest)

    def __call__(self, *key: P.args, **named: P.kwargs) -> V:
        try:
            return self.known[key]
        except KeyError:
            pass
        made = self._make(*key, **named)
        self.known.keep(key, made)
        return made


def size_of(key: object) -> int:
    """Return the approximate number of bytes that a key and its result occupy."""
    if isinstance(key, str | bytes):
        return len(key)
    if isinstance(key, tuple):
        return sum(map(size_of, key)) + _ITEM * len(key)
    if isinstance(key, Struct):
        return size_of(structs.astuple(key))
    return 0
