"""Choose the destination for a route's events: a lakehouse table, the parked events, or nothing.

Several source tables may map to the same lakehouse name. If the lakehouse table exists, the name belongs to the source
table for which it was created. Otherwise, it belongs to the first of these that exists: the source tables that
tables.shared declares, the source table that already has parked events, and the source table whose first event has the
lowest partition and offset in the batch. This rule gives the same owner after a restart. Events from each of the other
source tables are parked under that table's own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from cdc_core.table_id import TableId
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import Reason, Refused
from spark_sink.events.event_columns import operations
from spark_sink.events.grouping import EXCLUDED, Intake
from spark_sink.events.parking import Parking
from spark_sink.events.shared_tables import SEVERAL, pooled, target_of
from spark_sink.model.event import APART, GAP
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.table_naming import TablePattern
from spark_sink.tables.protocols import Tables


class Destination(NamedTuple):
    """The destination for the events of one source table.

    Args:
        table: None if the events have no table, or if their table is excluded.
        name: the lakehouse table's name, or the name under which the events are parked.
        owner: the source table that owns the name; differs from `table` if another source table has the name.
    """

    table: TableId | None
    name: str
    incoming: Intake
    owner: TableId | None


@dataclass(frozen=True)
class Destinations:
    """Sorts one route's events by destination.

    Args:
        parking: None while parked events are being replayed.
        spelled: names of tables that exist in a different spelling.
    """

    tables: Tables
    pattern: TablePattern
    rules: TableRules
    parking: Parking | None
    spelled: Mapping[str, str]

    def of(
        self, by_table: Mapping[TableId | None, Intake], catalog: SchemaCatalog
    ) -> tuple[list[Destination], SchemaCatalog]:
        """Return one route's events sorted by destination, and the catalog that resolves their tables."""
        nowhere = by_table.get(None, Intake())
        waiting: list[Destination] = []
        applicable: dict[TableId | None, Intake] = {}
        for table, incoming in by_table.items():
            if table is None:
                continue
            if self.rules.excludes(table):
                nowhere.ignored.update(incoming.ignored)
                nowhere.ignored[EXCLUDED] += len(incoming.events) + len(incoming.rejected)
            elif (name := self._waits_as(table)) is not None:
                waiting.append(Destination(table, name, incoming, table))
            else:
                applicable[table] = incoming
        found, catalog = pooled(applicable, catalog, self.pattern, self.rules)
        names = {table: self._name(table) for table in found if table is not None}
        owners = self._owners(names, found)
        here = [Destination(table, name, found[table], owners[table]) for table, name in names.items()]
        none = [Destination(None, "-", nowhere, None)] if nowhere != Intake() else []
        return [*waiting, *here, *none], catalog

    def _name(self, table: TableId) -> str:
        target = target_of(table, self.pattern)
        return self.spelled.get(target, target)

    def _waits_as(self, table: TableId) -> str | None:
        """Return the name under which the events are parked, if it differs from their table's name."""
        name = self.parking.name_of(table) if self.parking is not None else None
        return name if name is not None and name.lower() != self._name(table).lower() else None

    def _owners(
        self, names: Mapping[TableId, str], by_table: Mapping[TableId | None, Intake]
    ) -> dict[TableId, TableId]:
        """Return the owner of each table's name. A lakehouse table is opened only if several source tables have its
        name.
        """
        by_name: dict[str, list[TableId]] = {}
        for table, name in names.items():
            by_name.setdefault(name.lower(), []).append(table)
        found: dict[TableId, TableId] = {}
        for name, several in by_name.items():
            stored = self._stored(names[table] for table in several) if len(several) > 1 else None
            waiting = self.parking.sources(name) if self.parking is not None else ()
            found |= dict.fromkeys(several, stored or _first(several, waiting, by_table))
        return found

    def _stored(self, names: Iterable[str]) -> TableId | None:
        for name in sorted(set(names)):
            with suppress(Exception):  # writing the table raises the error again, and parks it
                table = self.tables.open(name)
                if table is not None:
                    return table.shape.table
        return None


def _first(
    several: Sequence[TableId], waiting: Sequence[TableId], by_table: Mapping[TableId | None, Intake]
) -> TableId:
    """Return the owner of a name that several source tables share, for a lakehouse table that does not exist yet."""
    declared = (table for table in several if table.source == SEVERAL)
    # Truncates and statements do not create a table.
    makers = (table for table in several if operations(by_table[table].events) - {*APART, GAP})
    return next(chain(declared, waiting, makers, several))


def clash(owner: TableId, table: TableId, name: str) -> Refused:
    """Return the error for a source table whose name belongs to another source table."""
    if owner.source == SEVERAL:
        whose, out = "which contains the source tables that tables.shared declares", "declare it there, too, or give it"
    else:
        whose, out = f"the table of {owner} (names that differ only in case are considered equal)", "give it"
    return Refused(
        Reason.TABLE_CLASH,
        f"the source table {table} would be written to {name}, {whose}: {out} a name of its own in tables.rename, or "
        "exclude it in tables.exclude, and restart the sink",
    )
