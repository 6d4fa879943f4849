"""Table formats behind one protocol. A worker writes tables (`Tables`, `Table`), the driver changes them (`Ddl`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from spark_sink.evolve import Column, Shape
from spark_sink.fold import Key, Mark

# The sink's own columns in every table.
SCOPE, POS, SEEN, INCOMPLETE = "_cdc_scope", "_cdc_pos", "_cdc_seen", "_cdc_incomplete"
META_COLUMNS: Mapping[str, str] = {SCOPE: "string", POS: "string", SEEN: "string", INCOMPLETE: "boolean"}


class Marker(NamedTuple):
    """What a commit carries so that it is never made twice: versions of one `app` only rise."""

    app: str
    version: int


class Changes(NamedTuple):
    """Rows to write and rows to remove, in one commit.

    `rows` has the table's columns and META_COLUMNS. `kept` holds, for columns that some rows leave as they are stored,
    whether each row writes them; a column that is not in it is written by every row. `deleted` has the key columns. No
    key is in both tables. `inserts_only`: nothing is deleted and none of the rows is stored.
    """

    rows: pa.Table
    kept: Mapping[str, pa.Array]
    deleted: pa.Table
    inserts_only: bool

    def __bool__(self) -> bool:
        return bool(self.rows.num_rows or self.deleted.num_rows)


class Table(Protocol):
    """A table as it was when it was opened, and after each own commit."""

    @property
    def shape(self) -> Shape: ...

    def applied(self, app: str) -> int | None:
        """The greatest version that `app` has committed."""

    def marks(self, keys: Collection[Key]) -> dict[Key, Mark]:
        """What is remembered of those rows that are stored."""

    def rows(self, keys: Collection[Key]) -> dict[Key, dict[str, object]]:
        """Those rows that are stored, whole."""

    def write(self, changes: Changes, marker: Marker) -> None: ...

    def truncate(self, scope: str, pos: str, marker: Marker) -> None:
        """Remove all rows but those that the scope changed after the position."""


class Tables(Protocol):
    """Opens tables in a worker; it is shipped there."""

    def open(self, name: str) -> Table | None:
        """The table, or None when there is none.

        Raises:
            Refused: it has features that cannot be written to.
        """

    def quarantine(self, rows: pa.Table, marker: Marker) -> None:
        """Append to the quarantine table, unless that was done."""


class Ddl(Protocol):
    """Changes tables from the driver."""

    def create(self, name: str, shape: Shape) -> None:
        """Create a table, unless it is there.

        Raises:
            ConfigError: a table is there whose name differs only by case.
        """

    def add_columns(self, name: str, columns: Sequence[Column]) -> None: ...

    def create_quarantine(self) -> None: ...
