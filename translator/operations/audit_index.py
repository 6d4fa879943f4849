"""Index the records in the output topics, sorted by the raw offsets that they come from.

The index is in a temporary file, not in memory. An event that was written more than once may have copies anywhere. No
event can therefore be judged before the last record has been read.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct, field

_LETTER = -1
"""Used instead of an event number in a dead letter's entry."""

_MANY = 10_000


class Entry(NamedTuple):
    """A record in an output topic. `raw` is the raw partition's number, and `partition` is the partition that contains
    the record.
    """

    raw: int
    offset: int
    n: int
    content: bytes
    partition: int


def event(raw: int, offset: int, n: int, content: bytes, partition: int) -> Entry:
    """An event, with its digest."""
    return Entry(raw, offset, n, content, partition)


def letter(raw: int, offset: int, code: bytes, partition: int) -> Entry:
    """A dead letter."""
    return Entry(raw, offset, _LETTER, code, partition)


class IndexEntry(Struct):
    """All entries for a raw offset: the digests of each event, by event number, and the codes of dead letters."""

    offset: int
    events: dict[int, list[bytes]] = field(default_factory=dict)
    letters: list[str] = field(default_factory=list)
    partitions: set[int] = field(default_factory=set)
    """The events' canonical partitions."""


class AuditIndex:
    """Accepts entries in any order and returns them by raw offset. Memory use stays at a few megabytes."""

    def __init__(self) -> None:
        # Without a name, SQLite uses a file in the temporary directory and deletes it on close.
        self._database = sqlite3.connect("")
        self._database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE;")
        self._database.execute("CREATE TABLE entry (raw INT, at INT, n INT, content BLOB, partition INT)")
        self._waiting: list[Entry] = []

    def add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._waiting.append(entry)
            if len(self._waiting) >= _MANY:
                self._write()

    def _write(self) -> None:
        self._database.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?)", self._waiting)
        self._waiting.clear()

    def sort(self) -> None:
        """Build the index. Call this once, after all entries have been added."""
        self._write()
        self._database.execute("CREATE INDEX by_offset ON entry (raw, at, n)")

    def of(self, raw: int, first: int, end: int) -> Iterator[IndexEntry]:
        """Yield the entries for a range in a raw partition, in ascending order of offsets."""
        query = "SELECT at, n, content, partition FROM entry WHERE raw = ? AND at >= ? AND at < ? ORDER BY at, n"
        for offset, entries in groupby(self._database.execute(query, (raw, first, end)), itemgetter(0)):
            found = IndexEntry(offset)
            for _, n, content, partition in entries:
                if n == _LETTER:
                    found.letters.append(content.decode())
                else:
                    found.events.setdefault(n, []).append(content)
                    found.partitions.add(partition)
            yield found

    def close(self) -> None:
        self._database.close()


def digest(key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, str | bytes | None]]) -> bytes:
    """Return a digest of a record's bytes."""
    total = hashlib.blake2b(digest_size=16)
    parts: list[str | bytes | None] = [key, value, *(part for header in headers for part in header)]
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(b"-" if data is None else b"%d:%b" % (len(data), data))
    return total.digest()
