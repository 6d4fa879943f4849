"""Send orders from a worker to the driver, for a table that Spark writes. The orders are part of the report on the
table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from spark_sink.tables.changes import Deletion, Marker


class Merge(Struct, frozen=True, tag=True):
    """Write a staged file with `TableChanges`.

    Args:
        path: the file's path below the staging folder. The file is named after its content, so the content of a path
            never changes.
        columns: the Spark SQL type for each column to write, in file order.
        kept: the columns that some rows leave unchanged. For each of these columns, a flag column shows which rows
            write it. The flag column is named `WRITTEN`, followed by the name of the column.
        bounds: the smallest and greatest key values in the file. They let Spark skip files.
        values: all values of those key columns that have only a few.
        others: the markers of earlier orders that the table lacks. They are committed with this order, or before it.
        inserts_only: whether the table version that the worker has read (`version`) contains none of the rows.
        at: the new UPDATED_AT for all rows. It is not in the file, because the file must have the same content if
            another process stages it.
        deletes: whether to remove the rows with the flag GONE from the table instead of writing them.
        summary: more metadata for the commit, if the format supports it.
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
    deletes: bool = False
    summary: dict[str, str] = {}
    values: dict[str, tuple[str | int, ...]] = {}
    others: tuple[Marker, ...] = ()


class RaiseFloors(Struct, frozen=True, tag=True):
    """Store the positions of the last truncates."""

    floors: dict[str, str]


class Clear(Struct, frozen=True, tag=True):
    """Remove the rows at or below these floors."""

    floors: dict[str, str]
    marker: Marker


class Retire(Struct, frozen=True, tag=True):
    """Mark the rows at or below these floors as deleted, but keep their values."""

    floors: dict[str, str]
    deletion: Deletion
    marker: Marker


class RemoveDeleted(Struct, frozen=True, tag=True):
    """Remove all deleted rows from the table, because from now on they are remembered elsewhere."""

    marker: Marker


class SetProperties(Struct, frozen=True, tag=True):
    """Store table properties."""

    properties: dict[str, str]


class CloseVersions(Struct, frozen=True, tag=True):
    """End a history's current versions that began at or below these floors.

    Args:
        at: the time of the truncate that ends them (microseconds, UTC).
    """

    floors: dict[str, str]
    at: int
    marker: Marker


Order = Merge | RaiseFloors | Clear | Retire | RemoveDeleted | SetProperties | CloseVersions

# The prefix for flags in a staged file, and the flag for deleted rows.
WRITTEN, GONE = "_cdc_written_", "_cdc_gone"


def merged(name: str, kept: Collection[str]) -> str:
    """Return the SQL expression that a MERGE of rows `s` into the table `t` assigns to a column. Both formats support
    it.
    """
    if name in kept:
        return f"CASE WHEN s.`{WRITTEN}{name}` THEN s.`{name}` ELSE t.`{name}` END"
    return f"s.`{name}`"


class OrderRunner(Protocol):
    """Executes orders on the driver."""

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        """Execute the orders, grouped by table. For each table that rejects its orders, return the reason. Orders that
        were already executed are not repeated.

        When the call returns or raises, no order is still running.
        """

    def version(self, table: str) -> int:
        """Return a table's current version."""

    def discard(self) -> None:
        """Delete the staged files. No open order may still use them."""
