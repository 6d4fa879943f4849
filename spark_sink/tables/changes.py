"""The values that the code that applies events passes to the table formats: changes of rows, and commit markers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa


class Identity(NamedTuple):
    """The identity of an event. The id alone is not enough, because a recreated topic repeats its ids."""

    id: str
    scope: str
    pos: str


class Marker(NamedTuple):
    """The marker of a commit, so that the commit is not repeated. The versions of one `app` only increase."""

    app: str
    version: int


class TableChanges(NamedTuple):
    """Rows to write in one commit, including deleted ones.

    `rows` has the table's columns and META_COLUMNS except UPDATED_AT, which becomes `at` in all rows (microseconds,
    UTC; None: unchanged). `kept` has an entry for each column that some rows leave unchanged, with a flag per row that
    tells whether the row writes it. Every row writes all other columns. `inserts_only`: none of the rows is stored yet.
    """

    rows: pa.Table
    kept: Mapping[str, pa.Array]
    inserts_only: bool
    at: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rows.num_rows)


class LastSeen(NamedTuple):
    """The state of a table in the manifest.

    Args:
        version: the version of the table.
        at: when the batch that reached it ended (microseconds, UTC); 0 if only a later time is known.
    """

    version: int
    at: int = 0


class Deletion(NamedTuple):
    """When rows were deleted (microseconds, UTC).

    Args:
        at: the time of the event's raw record.
        committed: the time of its commit at the source, if known.
        written: when the sink wrote the delete.
    """

    at: int
    committed: int | None
    written: int
