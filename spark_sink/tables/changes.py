"""The values passed between the code that applies events and the table formats: changes of rows, and markers of
commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa


class Identity(NamedTuple):
    """The identity of an event. The id alone is not enough, because a topic that is created again repeats its ids."""

    id: str
    scope: str
    pos: str


class Marker(NamedTuple):
    """The marker of a commit, which prevents repeating it: versions of one `app` only increase."""

    app: str
    version: int


class TableChanges(NamedTuple):
    """Rows to write in one commit, including deleted ones.

    `rows` has the table's columns and META_COLUMNS without UPDATED_AT, which becomes `at` in all of them (microseconds,
    UTC; None: unchanged). `kept` has, for columns that some rows leave as they are stored, whether each row writes
    them; a column that is not in it is written by every row. `inserts_only`: none of the rows is stored yet.
    """

    rows: pa.Table
    kept: Mapping[str, pa.Array]
    inserts_only: bool
    at: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rows.num_rows)


class LastSeen(NamedTuple):
    """A table according to the manifest.

    Args:
        version: the version of the table.
        at: when the batch that reached it ended (microseconds, UTC); 0 if only a later time is known.
    """

    version: int
    at: int = 0


class Deletion(NamedTuple):
    """When rows were deleted (microseconds, UTC).

    Args:
        at: the time of the event's raw record; `committed` is the time of its commit at the source, if known.
        written: when the sink wrote it.
    """

    at: int
    committed: int | None
    written: int
