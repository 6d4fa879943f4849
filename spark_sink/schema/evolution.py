"""Plan the schema change that a table needs before a batch is written, or refuse it.

The plan depends on nothing but the shape of the table and the announced schemas. If a column's type cannot store new
values, the column gets another version, `<name>__v2`. The exception is a table that Spark writes, if Spark can widen
the type in place. A key column cannot have a second version. If the type of a key column cannot be widened in place,
the table is rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from cdc_core.envelope import Column, TableSchema
from cdc_core.table_id import TableId
from spark_sink.errors import Reason, Refused
from spark_sink.schema.column_rules import COLUMN_RULES
from spark_sink.schema.column_types import TIMES, holds, is_finer_than_microseconds, is_narrower
from spark_sink.schema.table_spec import DELETED_AT, PLAIN, SOURCE, Mode, TableSpec

# The prefix for the sink's own columns.
META_PREFIX = "_cdc_"

# Delta Lake allows these characters in a column name only with column mapping, which the tables' Arrow reader does not
# support. Arrow accepts no NUL, and the other control characters only cause problems in SQL and logs.
_FORBIDDEN = re.compile(r"[ ,;{}()=`\x00-\x1f\x7f]")


_VERSION = re.compile(r"__v[0-9]+$")


class Policy(StrEnum):
    """The policy for a schema change (docs/sink-design.md §5.2; the names come from Flink CDC)."""

    FAIL = "fail"  # the table does not accept any more events
    EVOLVE = "evolve"  # change the column in place if the table's engine can; otherwise like lenient
    LENIENT = "lenient"  # remove nothing; a value that does not fit goes to another column
    IGNORE = "ignore"  # leave the table unchanged


class ShapeChange(StrEnum):
    """The kind of a schema change. To the sink, a rename looks like a drop and an add. A new table under an old name
    may look like a change of any kind.
    """

    ADD = "add"  # a column that the table does not have
    WIDEN = "widen"  # a type that can represent all values of the old type
    RETYPE = "retype"  # any other type with values that the old type cannot represent
    DROP = "drop"  # a column that the newest schema no longer has
    KEY = "key"  # other key columns; existing rows do not have the new key, so only fail and ignore are allowed


# The two solutions for a table without a key.
KEY_ADVICE = (
    "declare its key columns in tables.keys, or store its events instead of its rows (set changelog in tables.modes)"
)

Policies = Mapping[ShapeChange, Policy]

DEFAULTS: dict[ShapeChange, Policy] = dict.fromkeys(ShapeChange, Policy.LENIENT) | {
    ShapeChange.WIDEN: Policy.EVOLVE,
    ShapeChange.KEY: Policy.FAIL,
}


class TableColumn(Struct, frozen=True):
    """A column in a lakehouse table. `type` is a Spark SQL type. `source` is the column's name in events, if it
    differs.
    """

    name: str
    type: str
    source: str | None = None

    @property
    def sent_as(self) -> str:
        return self.name if self.source is None else self.source

    @property
    def is_version(self) -> bool:
        """Return whether the column has a suffix because another column already has its name, ignoring case."""
        return self.source is not None and _VERSION.search(self.name) is not None


# How the mark of a table that `rebuild --into` created begins (`TableShape.built`).
COPY = "copy-"


class TableShape(Struct, frozen=True, dict=True):
    """The columns of a table, without the sink's own, and the columns that form its key. A changelog has no key.

    `lacks` lists the sink's own columns that the table does not have. `built` is the rebuild that created the table, or
    "". `foreign` lists the columns that someone else added. Events never write them.
    """

    table: TableId
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    mode: Mode = Mode.MIRROR
    lacks: tuple[TableColumn, ...] = ()
    built: str = ""
    foreign: tuple[str, ...] = ()

    @property
    def is_copy(self) -> bool:
        """Return whether `rebuild --into` wrote the table. If so, the table contains no later events."""
        return self.built.startswith(COPY)

    @cached_property
    def types(self) -> dict[str, str]:
        """The types by column name, in column order."""
        return {column.name: column.type for column in self.columns}

    @cached_property
    def key_sent_as(self) -> tuple[str, ...]:
        """The key columns' names in events, in key order."""
        names = {column.name: column.sent_as for column in self.columns}
        return tuple(names.get(name, name) for name in self.key)


class Create(Struct, frozen=True, tag=True):
    """Create the table, or replace it with the new table of a rebuild (`shape.built`)."""

    shape: TableShape


class AddColumns(Struct, frozen=True, tag=True):
    """Add columns to the table. Existing rows get NULL."""

    columns: tuple[TableColumn, ...]


class Widen(Struct, frozen=True, tag=True):
    """Widen column types. Any other changes are requested afterwards.

    Args:
        rewrites: whether to write every row again, because the table's engine does not support files with different
            types.
    """

    columns: tuple[TableColumn, ...]
    rewrites: bool = False


Step = Create | AddColumns | Widen

# For each column name in the events of one schema, the table column; None if the values are not stored.
Places = Mapping[str, str | None]


class Plan(NamedTuple):
    """The shape that fits every schema, the step that leads to it, and the columns for the values of each schema.

    `versions` lists, for each column with several versions, the other versions of the same source column. Writing one
    version empties the others. `narrower` has, for each column, the earlier versions whose values this column can also
    store. A value goes to the first version that can store it. Anyone who reads the old column therefore sees all
    values that fit.
    """

    shape: TableShape
    step: Step | None
    places: Mapping[str | None, Places]
    versions: Mapping[str, tuple[str, ...]]
    narrower: Mapping[str, tuple[str, ...]]


def evolve(
    current: TableShape | None,
    table: TableId,
    schemas: Sequence[TableSchema],
    latest: TableSchema | None = None,
    named: Iterable[str] = (),
    key: Sequence[str] = (),
    policies: Policies = DEFAULTS,
    form: TableSpec = PLAIN,
    *,
    in_place: bool = False,
    fine: Collection[str] | None = (),
) -> Plan:
    """Plan the change from `current` to a table that can hold the events of a batch.

    Args:
        current: the table's shape, or None if the table does not exist.
        schemas: the schemas for the events in the batch, in order.
        latest: the table's newest schema. It applies to events without a schema, and its types come first.
        named: columns in events without a schema. If nothing else is known about a column, its type is a string.
        key: the key columns in the events, for a table whose schemas have no key.
        form: the table's mode and format, and the key columns that take precedence.
        in_place: whether the table's engine can change the types of stored rows. Otherwise, only key columns get wider
            types, and all rows are written again. A key cannot have a second column.
        fine: time columns that must be text, because they have a value finer than a microsecond. If None, no column
            must be text, because such values are truncated.

    Raises:
        Refused: the policies or the key do not allow the change.
    """
    layout = _Layout(current, table, policies, form, in_place=in_place, fine=fine)
    wanted = {schema.id: schema for schema in schemas}
    if current is None and latest is not None:
        # The newest types come first, because they can often store the values of older events as well.
        wanted = {latest.id: latest} | wanted
    for schema in wanted.values():
        layout.take_key(schema.key_columns or tuple(key))
    places: dict[str | None, Places] = {id: layout.places(schema) for id, schema in wanted.items()}
    plain = {} if latest is None else dict(places.get(latest.id) or layout.places(latest))
    layout.take_key(tuple(key))
    for name in dict.fromkeys((*key, *named)):
        if name not in plain:
            plain[name] = layout.place(name, None)
    places[None] = plain
    if latest is not None:
        layout.check_dropped(latest)
    return layout.plan(places)


class _Layout:
    """A shape that grows with each schema."""

    def __init__(
        self,
        current: TableShape | None,
        table: TableId,
        policies: Policies,
        form: TableSpec,
        *,
        in_place: bool,
        fine: Collection[str] | None,
    ) -> None:
        self._current = current
        self._form = form
        self._rules = COLUMN_RULES[form.format]
        self._in_place = in_place
        self._fine = fine
        self._table = table
        self._policies = policies
        self._columns = list(current.columns) if current else [TableColumn(SOURCE, "string")] if form.shared else []
        self._key = current.key_sent_as if current else ()
        self._foreign = {name.lower() for name in current.foreign} if current else set()
        self._taken = {column.name.lower() for column in self._columns} | self._foreign
        self._versions: dict[str, list[TableColumn]] = {}
        for column in self._columns:
            self._versions.setdefault(column.sent_as, []).append(column)

    def take_key(self, names: tuple[str, ...]) -> None:
        names = self._form.key or tuple(name for name in names if name != SOURCE)
        if self._form.shared and names:
            names = (SOURCE, *names)
        if self._form.mode == Mode.CHANGELOG:
            return
        if not self._key:
            self._key = names
        elif names and set(names) != set(self._key) and self._policies[ShapeChange.KEY] != Policy.IGNORE:
            raise Refused(
                Reason.SCHEMA_REFUSED, f"the key changed from ({', '.join(self._key)}) to ({', '.join(names)})"
            )

    def places(self, schema: TableSchema) -> Places:
        own: Places = {SOURCE: SOURCE} if self._form.shared else {}
        return {
            **own,
            **{column.name: self.place(column.name, self._type_of(column)) for column in schema.columns},
        }

    def _type_of(self, column: Column) -> str:
        """Return the type that a column in a schema needs. It is text for times that no time column can store."""
        if column.type in TIMES and self._fine is not None:
            is_new = column.name not in self._versions
            if column.name in self._fine or (is_new and is_finer_than_microseconds(column.native)):
                return "string"
        return self._rules.type_of(column.type)

    def place(self, name: str, wanted: str | None) -> str | None:
        """Return the column for a source column's values. If `wanted` is None, any type is accepted."""
        versions = self._versions.get(name, [])
        for column in reversed(versions):
            if wanted is None or holds(column.type, wanted):
                return column.name
        wanted = wanted or "string"
        change = _kind(versions[-1].type if versions else None, wanted)
        policy = Policy.EVOLVE if self._current is None and not versions else self._policies[change]
        if versions and policy == Policy.EVOLVE and self._can_widen(versions[-1], wanted):
            return self._widen(versions[-1], wanted)
        if versions and name in self._key:
            policy = Policy.FAIL
        if policy == Policy.FAIL:
            before = f"is {versions[-1].type}" if versions else "is not in the table"
            raise Refused(Reason.SCHEMA_REFUSED, f"the column {name} {before}, but its schema requires {wanted}")
        if policy == Policy.IGNORE:
            return versions[-1].name if versions else None
        return self._add(name, wanted)

    def _add(self, name: str, wanted: str) -> str:
        plain = chosen = _legal(name, self._rules.reserved)
        if plain.lower() in self._foreign:
            raise Refused(
                Reason.SCHEMA_REFUSED,
                f"the source added a column {name}, but the table already has a column {plain} that was not added "
                "by this sink and would be overwritten. Rename or drop that column and resume the table, or "
                "recreate the table without it with `spark-sink rebuild`",
            )
        version = 2
        while chosen.lower() in self._taken:
            chosen = f"{plain}__v{version}"
            version += 1
        column = TableColumn(chosen, wanted, None if chosen == name else name)
        self._columns.append(column)
        self._taken.add(chosen.lower())
        self._versions.setdefault(name, []).append(column)
        return chosen

    def _can_widen(self, column: TableColumn, wanted: str) -> bool:
        if self._in_place:
            return self._rules.widens(column.type, wanted)
        return column.sent_as in self._key and _kind(column.type, wanted) is ShapeChange.WIDEN

    def _widen(self, column: TableColumn, wanted: str) -> str:
        wider = TableColumn(column.name, wanted, column.source)
        self._columns[self._columns.index(column)] = wider
        versions = self._versions[column.sent_as]
        versions[versions.index(column)] = wider
        return column.name

    def check_dropped(self, latest: TableSchema) -> None:
        dropped = [name for name in self._versions if name not in latest.column_names and name != SOURCE]
        if dropped and self._current is not None and self._policies[ShapeChange.DROP] == Policy.FAIL:
            raise Refused(Reason.SCHEMA_REFUSED, f"the newest schema has no column {dropped[0]}")

    def plan(self, places: Mapping[str | None, Places]) -> Plan:
        if not self._key and self._form.mode != Mode.CHANGELOG:
            raise no_key()
        missing = [name for name in self._key if name not in self._versions]
        if missing:
            raise Refused(Reason.TABLE_REFUSED, f"the key column {missing[0]} is missing from the columns")
        key = self._current.key if self._current else tuple(self._versions[name][0].name for name in self._key)
        lacks = self._unneeded if self._current is None else ()
        shape = TableShape(self._table, tuple(self._columns), key, self._form.mode, lacks)
        several = {
            column.name: tuple(other.name for other in versions if other is not column)
            for versions in self._versions.values()
            for column in versions
            if len(versions) > 1
        }
        narrower = {
            column.name: earlier
            for versions in self._versions.values()
            for number, column in enumerate(versions)
            if (earlier := tuple(other.name for other in versions[:number] if is_narrower(other.type, column.type)))
        }

        def plan(step: Step | None) -> Plan:
            return Plan(shape, step, places, several, narrower)

        if self._current is None:
            return plan(Create(shape))
        stored = frozenset(self._current.columns)
        wider = tuple(column for column in self._columns[: len(stored)] if column not in stored)
        if wider:
            return plan(Widen(wider, rewrites=not self._in_place))
        lacking = [column for column in self._current.lacks if column not in self._unneeded]
        added = (*self._columns[len(stored) :], *lacking)
        return plan(AddColumns(added) if added else None)

    @property
    def _unneeded(self) -> tuple[TableColumn, ...]:
        """Return the sink's own columns that the table does not need."""
        needs_all = self._form.soft or self._form.mode != Mode.MIRROR
        return () if needs_all else (TableColumn(DELETED_AT, "timestamp"),)


def no_key() -> Refused:
    return Refused(Reason.TABLE_REFUSED, f"the key is unknown, so rows cannot be distinguished; {KEY_ADVICE}")


def _kind(present: str | None, wanted: str) -> ShapeChange:
    if present is None:
        return ShapeChange.ADD
    return ShapeChange.WIDEN if wanted != "string" and holds(wanted, present) else ShapeChange.RETYPE


def _legal(name: str, reserved: Collection[str]) -> str:
    """Return the name. It is changed if a format does not accept it, or if a format or the sink reserves it."""
    legal = _FORBIDDEN.sub(lambda match: f"~{ord(match[0]):x}~", name)
    if legal.lower().startswith(META_PREFIX) or legal.lower() in reserved:
        return f"~{ord(legal[0]):x}~{legal[1:]}"
    return legal or "~~"
