"""The orders of a worker to the driver for a table that Spark writes. They travel in the report of the table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from spark_sink.tables.changes import Deletion, Marker


class Merge(Struct, frozen=True, tag=True):
    """Write a staged file of `TableChanges`.

    Args:
        path: of the file, below the staging folder; named by its content, so that it never holds anything else.
        columns: Spark SQL type by column to write, in the order of the file.
        kept: columns that some rows leave as they are: a flag, named `WRITTEN` and the name, tells which write it.
        bounds: for key columns, the least and the greatest value in the file: what Spark may skip files by.
        values: for key columns of few values, all of them.
        others: markers of works that were ordered before, and that the table lacks: with this commit, or before it.
        inserts_only: no row is stored in `version` of the table, which is the one that the worker has read.
        at: what UPDATED_AT becomes in all rows; not in the file, which is the same when another process stages it.
        summary: what the commit tells beside its marker, where the format has a place for it.
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
    """Remove the rows that lie up to these floors."""

    floors: dict[str, str]
    marker: Marker


class Retire(Struct, frozen=True, tag=True):
    """Mark the rows that lie up to these floors as deleted, and leave their values."""

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
    """End the current versions of a history that lie up to these floors.

    Args:
        at: the time of the truncate that ends them (microseconds, UTC).
    """

    floors: dict[str, str]
    at: int
    marker: Marker


Order = Merge | RaiseFloors | Clear | Retire | Forget | SetProperties | CloseVersions

# Begins the names of the flags in a staged file.
WRITTEN = "_cdc_written_"


def merged(name: str, kept: Collection[str]) -> str:
    """Return the SQL that a column is set to by a MERGE of rows `s` into the table `t`; both engines understand it."""
    if name in kept:
        return f"CASE WHEN s.`{WRITTEN}{name}` THEN s.`{name}` ELSE t.`{name}` END"
    return f"s.`{name}`"


class OrderRunner(Protocol):
    """Carries out orders on the driver."""

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        """Do what was ordered, by table; why some do not take it. What was done before is not done again.

        When it returns, or raises, nothing of it is running any more.
        """

    def version(self, table: str) -> int:
        """Return the version of a table, as it is now."""

    def discard(self) -> None:
        """Remove the staged files; no order that names one is open."""
