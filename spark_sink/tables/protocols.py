"""Table formats behind one protocol: a worker writes tables (`Tables`), the driver alters them (`TableDdl`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

import pyarrow as pa

from spark_sink.model.event import Key
from spark_sink.model.row import RowMark
from spark_sink.model.version_timeline import TakenKey, Truncate, Version
from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.tables.changes import Deletion, Identity, LastSeen, Marker, TableChanges
from spark_sink.tables.spark_operations import Order


class OpenTable(Protocol):
    """A table as it was when it was opened, and after each own commit."""

    @property
    def shape(self) -> TableShape: ...

    @property
    def version(self) -> int:
        """The version of the table, by which readers can see it as it is now."""

    @property
    def choice(self) -> Choice:
        """The engine that writes it."""

    @property
    def orders(self) -> Sequence[Order]:
        """The orders that the driver must carry out before the table is read again; empty where the worker writes
        itself."""

    def applied(self, app: str) -> int | None:
        """The greatest version that `app` has committed."""

    def follows(self, seen: LastSeen) -> bool:
        """Tell whether the table descends from a state that was seen. Restoring an older state removes rows.
        Later commits of whatever program, such as a compaction, are no step back."""


@runtime_checkable
class MirrorTable(OpenTable, Protocol):
    """A table of rows as they are."""

    @property
    def floors(self) -> Mapping[str, str]:
        """The position of the last truncate, by scope."""

    def marks(self, keys: Collection[Key]) -> dict[Key, RowMark]:
        """Return the marks of those rows that are stored, deleted ones among them."""

    def mark_columns(self, keys: pa.Table) -> pa.Table:
        """Return the same as columns: of the stored rows among `keys`, which has the columns of the key, and perhaps of
        others, those columns and MARK_COLUMNS."""

    def rows(self, keys: Collection[Key]) -> dict[Key, dict[str, object]]:
        """Return those rows that are stored, whole."""

    def max_positions(self) -> dict[str, str]:
        """The greatest position of every scope that the stored rows know."""

    def written(self) -> dict[Key, tuple[str, str]]:
        """Return of every row that is not deleted the scope that wrote it last, and its position there."""

    def rows_spanning_floor(self, scope: str) -> set[Key]:
        """Rows whose last reset in the scope lies up to its floor, and patches beyond it."""

    def write(self, changes: TableChanges, *markers: Marker) -> None: ...

    def raise_floors(self, floors: Mapping[str, str]) -> None: ...

    def clear(self, marker: Marker) -> bool:
        """Remove the rows that lie up to the floors; whether there were any, and with them a commit."""

    def soft_delete_below_floor(self, deletion: Deletion, marker: Marker) -> bool:
        """Mark those rows as deleted instead, and leave their values."""

    def forget(self, before: int) -> None:
        """Remove what is remembered of rows that were deleted before a time (microseconds, UTC)."""


@runtime_checkable
class ChangelogTable(OpenTable, Protocol):
    """A table of events, in no order."""

    def greatest(self) -> Mapping[str, str]:
        """The greatest position of every scope."""

    def known(self, wanted: Collection[Identity]) -> set[Identity]:
        """Return those of the events that are in the table."""

    def append(self, rows: pa.Table, greatest: Mapping[str, str], *markers: Marker) -> None:
        """Add rows, after which `greatest` holds."""


@runtime_checkable
class HistoryTable(OpenTable, Protocol):
    """A table of versions, each known by its key, scope and position."""

    @property
    def truncates(self) -> Sequence[Truncate]:
        """All of them, in order."""

    @property
    def taken_keys(self) -> Sequence[TakenKey]:
        """The keys that the last batches remembered. An entry is out of date once its key has a later version."""

    def greatest(self) -> Mapping[str, str]:
        """The greatest position of every scope."""

    def versions(self, keys: Collection[Key], since: Mapping[str, str] | None = None) -> dict[Key, list[Version]]:
        """Return all versions of these rows. With `since`, a position by scope: those that end after it there, and the
        last of each turn and before each truncate, whenever they ended."""

    def current_keys(self) -> set[Key]:
        """The keys of the rows that exist now."""

    def rows_spanning_floor(self, truncate: Truncate, *, late: bool) -> set[Key]:
        """Rows of which a version began before the truncate, and ended after it; where it ended, by another one,
        if this one comes late."""

    def write(self, rows: pa.Table, adds_only: bool, *markers: Marker) -> None:
        """Add versions, or put them in the place of those of the same key, scope and position."""

    def keep_truncates(self, truncates: Sequence[Truncate]) -> None: ...

    def keep_taken_keys(self, taken: Sequence[TakenKey]) -> None:
        """Replace `taken_keys`, before the versions are written that they name."""

    def close(self, truncate: Truncate, marker: Marker) -> bool:
        """End the current versions that began before the truncate; whether there were any, and with them a commit."""


class Tables(Protocol):
    """Opens tables in a worker; it is shipped there."""

    def open(self, name: str) -> MirrorTable | ChangelogTable | HistoryTable | None:
        """The table, or None when there is none.

        Raises:
            Refused: it has features that cannot be written to.
        """

    def check_format(self, name: str) -> None:
        """Make sure that no table of another format has the name.

        Raises:
            ConfigError: one has it.
        """

    def as_of(self, name: str, moment: datetime) -> MirrorTable | None:
        """The table as it was; None before it was there.

        Raises:
            FatalError: so old a version is not kept.
        """

    def quarantine(self, rows: pa.Table, marker: Marker) -> None:
        """Append to the quarantine table, unless that was done."""

    def park(self, rows: pa.Table, marker: Marker) -> None:
        """Append to the events of parked tables, unless that was done."""

    def parked(self, app: str) -> int | None:
        """The greatest version that `app` has parked."""


class TableAlterations(Protocol):
    """Changes tables that are there, from the driver."""

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None: ...

    def widen(self, name: str, columns: Sequence[TableColumn], *, rewrites: bool = False) -> None:
        """Give columns that are there wider types; one that has its type already is left.

        Args:
            rewrites: write all rows again in one commit, so that all files have the new types; the table gets no
                feature for it.
        """

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None: ...


class DeltaAlterations(TableAlterations, Protocol):
    """Changes Delta tables that deltalake does not write."""

    def replace(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str]) -> None:
        """Put an empty table in the place of one that exists.

        Args:
            columns: Spark SQL type by name, the sink's own among them.
        """


class TableCreation(TableAlterations, Protocol):
    """Creates and changes tables of one format."""

    def create(self, name: str, shape: TableShape) -> str:
        """Create a table, unless it is there; the name under which it is, which may be spelled otherwise."""

    def replace(self, name: str, shape: TableShape) -> str:
        """Put an empty table of this shape in the place of the one that exists, in one commit: readers see that one as
        its version of before, as long as old versions are kept. A table that has `shape.built` already is left."""


class TableDdl(TableCreation, Protocol):
    """Creates and changes tables from the driver."""

    def create_quarantine(self) -> None: ...
