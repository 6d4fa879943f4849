"""Compute digests of rows that a database can also compute in SQL (`source_database`).

The digest of a row is a part of the MD5 hash of its key and values, all as text. The digest of several rows consists of
their number and the sum of their digests. It does not depend on the order of the rows, and changes if one of them is
duplicated. Rows are grouped into ranges by the first digits of their key's MD5 hash, because a database and a table
sort strings differently.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from spark_sink.schema.evolution import TableColumn

KeyTexts = tuple[str | None, ...]
"""The text of each key column. None is NULL."""

NULL = "-"
"""The text for NULL, in place of a value."""

UNFIT = object()
"""A value that the table's column cannot store."""

MISFIT = "?"
"""The text for UNFIT. No value has the same text."""

SEPARATOR = "|"

DIGITS = 15
"""Hexadecimal digits in a row's digest."""


class Digest(NamedTuple):
    """The digest of a number of rows."""

    rows: int
    total: int


class ComparedColumns(NamedTuple):
    """The columns to compare. The key identifies its rows."""

    key: tuple[TableColumn, ...]
    values: tuple[TableColumn, ...]


Digests = dict[KeyTexts, Digest]


def row_digests(
    columns: ComparedColumns, names: Mapping[TableColumn, str], rows: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[KeyTexts, int]]:
    """Yield the key and the digest of each row.

    Args:
        names: the column's names in `rows`.
        rows: the values by column, in the columns' types. UNFIT stands for other values.
    """
    keys = list(zip(*(_texts(rows[names[one]], key_text(one)) for one in columns.key), strict=True))
    values = [_texts(rows[names[one]], _VALUE.get(_kind(one.type), str)) for one in columns.values]
    for key, texts in zip(keys, zip(*values, strict=True) if values else [()] * len(keys), strict=True):
        yield key, _digest(SEPARATOR.join((key_hash(key), *(NULL if text is None else text for text in texts))))


def summed(rows: Iterable[tuple[KeyTexts, int]]) -> Digests:
    """Add up the digests of rows with the same key."""
    found: Digests = {}
    for key, digest in rows:
        count, total = found.get(key, (0, 0))
        found[key] = Digest(count + 1, total + digest)
    return found


def by_range(digests: Mapping[KeyTexts, Digest], digits: int) -> dict[str, Digest]:
    """Return the digest of each range of keys. A range consists of the keys whose hashes begin with the same digits."""
    found: dict[str, Digest] = {}
    for key, (count, total) in digests.items():
        begin = key_hash(key)[:digits]
        counted, so_far = found.get(begin, (0, 0))
        found[begin] = Digest(counted + count, so_far + total)
    return found


def key_hash(key: KeyTexts) -> str:
    # With their lengths, ("a", "bc") and ("ab", "c") are different keys. NULL has no length, unlike the text "-".
    return _md5("".join(NULL if text is None else f"{len(text)}:{text}" for text in key).encode())


def key_text(column: TableColumn) -> Callable[[Any], str]:
    """Return the function for a key column's text. The text is not hashed, because operators see it."""
    return _KEY.get(_kind(column.type), str)


def _kind(sql: str) -> str:
    return sql.partition("(")[0]


def _texts(values: Sequence[Any], text: Callable[[Any], str]) -> list[str | None]:
    return [None if value is None else MISFIT if value is UNFIT else text(value) for value in values]


def _digest(text: str) -> int:
    return int(_md5(text.encode())[:DIGITS], 16)


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _moment(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat(timespec="microseconds")


def _bits(form: str) -> Callable[[float], str]:
    return lambda value: struct.pack(form, value).hex()


# The text of a value by its column's type. The texts of other types are those of `str`.
_KEY: Mapping[str, Callable[[Any], str]] = {
    "boolean": lambda value: str(int(value)),
    "decimal": lambda value: f"{value:f}",
    "binary": lambda value: value.hex(),
    "timestamp": _moment,
    "timestamp_ntz": _moment,
}
# Long values are hashed, because a database limits the length of a text that it puts together.
_VALUE: Mapping[str, Callable[[Any], str]] = {
    **_KEY,
    "string": lambda value: _md5(value.encode()),
    "binary": _md5,
    "float": _bits(">f"),
    "double": _bits(">d"),
}
