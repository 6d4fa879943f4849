"""The values that pass between whoever applies events and the table formats: changes of rows, and marks of commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa


class Identity(NamedTuple):
    """The identity of an event. The id alone is none: a topic made again gives its ids again."""

    id: str
    scope: str
    pos: str


class Marker(NamedTuple):
    """The mark of a commit, by which it is never made twice: versions of one `app` only rise."""

    app: str
    version: int


class TableChanges(NamedTuple):
    """Rows to write in one commit, deleted ones among them.

    `rows` has the table's columns and META_COLUMNS without UPDATED_AT, which becomes `at` in all of them (microseconds,
    UTC; None: it stays as it is). `kept` holds, for columns
    that some rows leave as they are stored, whether each row writes them; one that is not in it is written by each.
    `inserts_only`: none is stored.
    """

    rows: pa.Table
    kept: Mapping[str, pa.Array]
    inserts_only: bool
    at: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rows.num_rows)


class LastSeen(NamedTuple):
    """A table as the manifest knows it.

    Args:
        version: that the table had.
        at: when the batch ended that reached it (microseconds, UTC); 0 where only a later time is known.
    """

    version: int
    at: int = 0


class Deletion(NamedTuple):
    """When rows were deleted (microseconds, UTC).

    Args:
        at: the time of the event's raw record; `committed`: of its commit at the source, if known.
        written: by the sink.
    """

    at: int
    committed: int | None
    written: int
