"""Protocols for table formats. Workers write tables (`Tables`). The driver alters them (`TableDdl`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from spark_sink.model.event import Key
from spark_sink.model.row import RowMark
from spark_sink.model.version_timeline import TakenKey, Truncate, Version
from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.table_spec import Mode
from spark_sink.tables.changes import Deletion, Identity, LastSeen, Marker, TableChanges
from spark_sink.tables.spark_operations import Order

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class OpenTable(Protocol):
    """A table in the state in which it was opened, or after this object's last commit."""

    @property
    def shape(self) -> TableShape: ...

    @property
    def version(self) -> int:
        """Return the version at which readers can see the table as it is now."""

    @property
    def choice(self) -> Choice:
        """The engine that writes the table."""

    @property
    def orders(self) -> Sequence[Order]:
        """The orders that the driver must execute before the table is read again. If the worker writes the table, the
        result is empty.
        """

    def applied(self, app: str) -> int | None:
        """Return the greatest version that `app` has committed."""

    def follows(self, seen: LastSeen) -> bool:
        """Return whether the table descends from a recorded state. It does not if someone has restored an older state,
        because this removes rows. Later commits by other programs, such as a compaction, do not matter.
        """


@runtime_checkable
class MirrorTable(OpenTable, Protocol):
    """A table of current rows."""

    @property
    def floors(self) -> Mapping[str, str]:
        """The position of the last truncate in each scope."""

    def marks(self, keys: Collection[Key]) -> dict[Key, RowMark]:
        """Return the markers of the stored rows, including deleted ones."""

    def mark_columns(self, keys: pa.Table) -> pa.Table:
        """Return the markers of the stored rows among `keys`, as columns. `keys` has the key columns. There may be
        others. The result has the columns of `keys` and MARK_COLUMNS.
        """

    def rows(self, keys: Collection[Key]) -> dict[Key, dict[str, object]]:
        """Return the complete rows for those keys that are stored."""

    def max_positions(self) -> dict[str, str]:
        """Return, for every scope, the greatest position in the stored rows."""

    def written(self) -> dict[Key, tuple[str, str]]:
        """Return the scope that last wrote each row that is not deleted, and the position of the row in this scope."""

    def live_keys(self) -> Counter[Key]:
        """Return the keys of the rows that are not deleted, each with the number of its rows. If another program has
        changed the table, this number may be greater than one.
        """

    def rows_spanning_floor(self, scope: str) -> set[Key]:
        """Return the rows whose last reset is at or below the floor of its scope, and that have later patches."""

    def write(self, changes: TableChanges, *markers: Marker) -> None: ...

    def raise_floors(self, floors: Mapping[str, str]) -> None: ...

    def clear(self, marker: Marker) -> bool:
        """Remove the rows at or below the floors. Return whether any rows were removed, which needs a commit."""

    def soft_delete_below_floor(self, deletion: Deletion, marker: Marker) -> bool:
        """Mark the rows at or below the floors as deleted, but keep their values."""

    def keep_deleted_rows(self, *, apart: bool) -> None:
        """Set whether deleted rows are kept in the table or in separate files. If they are stored in the other way now,
        move them in one commit. `marks`, `rows` and `max_positions` find them in either case.
        """

    def forget(self, before: int) -> None:
        """With the next write, drop the rows that earlier writes deleted before a time (microseconds, UTC), if they are
        in separate files.
        """


@runtime_checkable
class ChangelogTable(OpenTable, Protocol):
    """A table of events, in no particular order."""

    def greatest(self) -> Mapping[str, str]:
        """The greatest position in every scope."""

    def known(self, wanted: Collection[Identity]) -> set[Identity]:
        """Return the events that are already in the table."""

    def append(self, rows: pa.Table, greatest: Mapping[str, str], *markers: Marker) -> None:
        """Add rows. Afterwards, `greatest` returns these positions."""


@runtime_checkable
class HistoryTable(OpenTable, Protocol):
    """A table of row versions. Each is identified by its key, scope and position."""

    @property
    def truncates(self) -> Sequence[Truncate]:
        """All truncates, in order."""

    @property
    def taken_keys(self) -> Sequence[TakenKey]:
        """The taken keys that the most recent batches have stored. Once the key has a later version, the entry is
        outdated.
        """

    def greatest(self) -> Mapping[str, str]:
        """The greatest position in every scope."""

    def versions(self, keys: Collection[Key], since: Mapping[str, str] | None = None) -> dict[Key, list[Version]]:
        """Return all versions of these rows.

        With `since`, which has a position for each scope, return only the versions that end after that position. Also
        include the last version of each turn and the last version before each truncate, whenever these versions ended.
        """

    def current_keys(self) -> set[Key]:
        """Return the keys of the rows that exist now."""

    def written(self) -> dict[Key, tuple[str, str]]:
        """Return the scope that last wrote each row that exists now, and the position of the row in this scope."""

    def rows_spanning_floor(self, truncate: Truncate, *, late: bool) -> set[Key]:
        """Return the rows with a version that began before the truncate and ended after it. If the truncate arrives
        late, include rows whose version was ended by another truncate.
        """

    def write(self, rows: pa.Table, adds_only: bool, *markers: Marker) -> None:
        """Add versions. Versions with the same key, scope and position are replaced."""

    def keep_truncates(self, truncates: Sequence[Truncate]) -> None: ...

    def keep_taken_keys(self, taken: Sequence[TakenKey]) -> None:
        """Replace `taken_keys`. Call this before writing the versions it refers to."""

    def close(self, truncate: Truncate, marker: Marker) -> bool:
        """End the current versions that began before the truncate. Return whether any versions were ended, which needs
        a commit.
        """


def is_mirror(table: MirrorTable | ChangelogTable | HistoryTable) -> TypeIs[MirrorTable]:
    """Return whether a table is a mirror. `isinstance` is slow, because it looks up every member of a protocol."""
    return table.shape.mode == Mode.MIRROR


def is_changelog(table: MirrorTable | ChangelogTable | HistoryTable) -> TypeIs[ChangelogTable]:
    return table.shape.mode == Mode.CHANGELOG


class Tables(Protocol):
    """Opens tables in a worker. The object is sent to the workers."""

    def open(self, name: str) -> MirrorTable | ChangelogTable | HistoryTable | None:
        """Return the table, or None if it does not exist.

        Raises:
            Refused: the table has features that cannot be written.
        """

    def contains_others(self, name: str) -> bool:
        """Return whether the folder for a new table exists, which then contains other tables."""

    def spelled(self, name: str) -> str | None:
        """Return the name of the existing table with this name, in any format and ignoring case, or None."""

    def check_format(self, name: str) -> None:
        """Make sure that no table in another format has this name.

        Raises:
            ConfigError: a table in another format has this name.
        """

    def check_storage(self, name: str) -> None:
        """Make sure that the storage and this table's catalog respond.

        Raises:
            Exception: one of them does not respond. An error of this table may then affect all tables.
        """

    def as_of(self, name: str, moment: datetime) -> MirrorTable | None:
        """Return the table as it was at a moment, or None if it did not exist then.

        Raises:
            FatalError: versions from that time no longer exist.
        """

    def quarantine(self, rows: pa.Table, marker: Marker) -> None:
        """Append to the quarantine table, unless this has already been done."""

    def park(self, rows: pa.Table, marker: Marker) -> None:
        """Append to the parked events, unless this has already been done."""

    def parked(self, app: str) -> int | None:
        """Return the greatest marker version with which `app` has parked events."""


class TableAlterations(Protocol):
    """Changes existing tables, from the driver."""

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None: ...

    def widen(self, name: str, columns: Sequence[TableColumn], *, rewrites: bool = False) -> None:
        """Widen the types of existing columns. Columns that already have the requested type are skipped.

        Args:
            rewrites: whether to write all rows again in one commit. All files then have the new types, and the table
                needs no feature for type widening.
        """

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None: ...


class DeltaAlterations(TableAlterations, Protocol):
    """Changes Delta tables that deltalake does not write."""

    def create(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str], layout: FileLayout) -> None:
        """Create a table, unless it exists.

        Args:
            columns: Spark SQL type by name, including the sink's own columns.
        """

    def replace(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str], layout: FileLayout) -> None:
        """Replace an existing table with an empty one. The arguments are those of `create`."""


class TableCreation(TableAlterations, Protocol):
    """Creates and changes tables in one format."""

    def create(self, name: str, shape: TableShape) -> str:
        """Create a table, unless it exists. Return the table's name, which may be spelled differently."""

    def replace(self, name: str, shape: TableShape) -> str:
        """Replace the existing table with an empty one of this shape, in one commit. As long as old versions are kept,
        readers can see the old table as the previous version. If a table has the same `shape.built`, it is left
        unchanged.
        """


class TableDdl(TableCreation, Protocol):
    """Creates and changes tables from the driver."""

    def create_quarantine(self) -> None: ...
