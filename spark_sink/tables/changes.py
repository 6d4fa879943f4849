"""The values that table formats receive when events are applied: row changes and commit markers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa


class Identity(NamedTuple):
    """Identifies an event. The id alone is not enough, because a recreated topic repeats its ids."""

    id: str
    scope: str
    pos: str


class Marker(NamedTuple):
    """A commit's marker, which prevents the commit from being repeated. The versions for one `app` only increase."""

    app: str
    version: int


class TableChanges(NamedTuple):
    """Rows to write in one commit, including deleted rows.

    `rows` has the table's columns and META_COLUMNS except UPDATED_AT, which is set to `at` in all rows (microseconds,
    UTC; None: unchanged). For each column that some rows leave unchanged, `kept` has a per-row flag that is true if the
    row writes the column. Every row writes all other columns. `inserts_only` means that none of the rows is stored yet.
    """

    rows: pa.Table
    kept: Mapping[str, pa.Array]
    inserts_only: bool
    at: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rows.num_rows)


class LastSeen(NamedTuple):
    """A table's state in the manifest.

    Args:
        version: the table version.
        at: the time at which the batch that reached this version ended (microseconds, UTC); 0 if only a later time is
            known.
    """

    version: int
    at: int = 0


class Deletion(NamedTuple):
    """The times at which rows were deleted (microseconds, UTC).

    Args:
        at: the time in the event's raw record.
        committed: the time at which the source committed the event, if known.
        written: the time at which the sink wrote the delete.
    """

    at: int
    committed: int | None
    written: int
