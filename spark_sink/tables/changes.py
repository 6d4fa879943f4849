"""Pass row changes and commit markers to the table formats when events are applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa


class Identity(NamedTuple):
    """Identifies an event. The id alone is not enough, because the ids start over in a recreated topic."""

    id: str
    scope: str
    pos: str


class Marker(NamedTuple):
    """The marker of a commit. It keeps the commit from being repeated. For one `app`, versions only increase."""

    app: str
    version: int


class TableChanges(NamedTuple):
    """Rows to write in one commit, including deleted ones.

    `rows` has the table's columns and META_COLUMNS except UPDATED_AT. That column is set to `at` in all rows
    (microseconds, UTC; None: unchanged). If some rows leave a column unchanged, `kept` has a flag for each row that is
    true if the row writes this column. Every row writes all other columns. `inserts_only` means that none of the rows
    is stored yet.
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
        at: the time at which the batch that reached this version ended (microseconds, UTC), or 0 if only a later time
            is known.
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
