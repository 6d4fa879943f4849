"""The orders of a worker to the driver for a table that Spark writes. The report of the table contains them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from spark_sink.tables.changes import Deletion, Marker


class Merge(Struct, frozen=True, tag=True):
    """Write a staged file of `TableChanges`.

    Args:
        path: the file, below the staging folder. It is named by its content, so the content of a path never changes.
        columns: Spark SQL type by column to write, in the order of the file.
        kept: columns that some rows leave unchanged. A flag, named `WRITTEN` and the name, tells which rows write them.
        bounds: for key columns, the least and the greatest value in the file, which allow Spark to skip files.
        values: for key columns with few values, all of them.
        others: markers of work that was ordered before and that the table lacks: with this commit, or before it.
        inserts_only: none of the rows is stored in `version` of the table, which is the one that the worker has read.
        at: the new UPDATED_AT of all rows. It is not in the file, which must be equal if another process stages it.
        summary: additional metadata of the commit, if the format supports it.
    """

    path: str
    columns: dict[str, str]
    kept: tuple[str, ...]
    key: tuple[str, ...]
    bounds: dict[str, tuple[str | int, str | int]]
    inserts_only: bool
    version: int
    marker: Marker | None
    at: int | None = None
    summary: dict[str, str] = {}
    values: dict[str, tuple[str | int, ...]] = {}
    others: tuple[Marker, ...] = ()


class RaiseFloors(Struct, frozen=True, tag=True):
    """Store the positions of the last truncates."""

    floors: dict[str, str]


class Clear(Struct, frozen=True, tag=True):
    """Remove the rows that are not beyond these floors."""

    floors: dict[str, str]
    marker: Marker


class Retire(Struct, frozen=True, tag=True):
    """Mark the rows that are not beyond these floors as deleted, and keep their values."""

    floors: dict[str, str]
    deletion: Deletion
    marker: Marker


class Forget(Struct, frozen=True, tag=True):
    """Remove what is remembered of rows that were deleted before a time (microseconds, UTC)."""

    before: int


class SetProperties(Struct, frozen=True, tag=True):
    """Store properties of a table."""

    properties: dict[str, str]


class CloseVersions(Struct, frozen=True, tag=True):
    """End the current versions of a history that are not beyond these floors.

    Args:
        at: the time of the truncate that ends them (microseconds, UTC).
    """

    floors: dict[str, str]
    at: int
    marker: Marker


Order = Merge | RaiseFloors | Clear | Retire | Forget | SetProperties | CloseVersions

# The prefix of the flags in a staged file.
WRITTEN = "_cdc_written_"


def merged(name: str, kept: Collection[str]) -> str:
    """Return the SQL to which a MERGE of rows `s` into the table `t` sets a column; both engines understand it."""
    if name in kept:
        return f"CASE WHEN s.`{WRITTEN}{name}` THEN s.`{name}` ELSE t.`{name}` END"
    return f"s.`{name}`"


class OrderRunner(Protocol):
    """Executes orders on the driver."""

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        """Execute the orders, by table; return why some tables reject them. Work that was done before is not repeated.

        When it returns or raises, none of it is running any more.
        """

    def version(self, table: str) -> int:
        """Return the current version of a table."""

    def discard(self) -> None:
        """Delete the staged files; no open order refers to one."""
