"""What a table must become before a batch can be written to it: (its shape, the wanted shape) -> a step, or a refusal.

Pure: neither Spark nor a table is needed to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from spark_sink.columns import sql_type
from spark_sink.errors import Refused
from spark_sink.names import TableId
from translator.envelope import TableSchema

# Names that start so are the sink's own columns.
META_PREFIX = "_cdc_"

# Delta Lake holds these in a column name only with column mapping, which the Arrow reader of the tables does not know.
_FORBIDDEN = re.compile(r"[ ,;{}()\n\t=`]")


class Column(Struct, frozen=True):
    """A column of a table of the lakehouse; `type` is a Spark SQL type."""

    name: str
    type: str


class Shape(Struct, frozen=True):
    """The columns of a table without the sink's own, and which of them are the key."""

    table: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def types(self) -> dict[str, str]:
        """Type by column name, in the order of the columns."""
        return {column.name: column.type for column in self.columns}


class Create(Struct, frozen=True, tag=True):
    """The table is not there."""

    shape: Shape


class AddColumns(Struct, frozen=True, tag=True):
    """The table lacks columns; rows that exist get NULL."""

    columns: tuple[Column, ...]


Step = Create | AddColumns


def evolve(
    current: Shape | None,
    table: TableId,
    schemas: Sequence[TableSchema],
    named: Iterable[str] = (),
    key: Sequence[str] = (),
) -> tuple[Shape, Step | None]:
    """The shape that holds every schema, and the step that leads there from `current` (None: there is no table).

    Columns are only added: one that the source dropped stays.

    Args:
        schemas: what the events of the batch were written with, in order.
        named: columns that events without a schema name; one that nothing else knows becomes a string.
        key: the key columns that the events themselves name, for a table whose schemas have none.

    Raises:
        Refused: more than new columns is asked for.
    """
    target = current
    for schema in schemas:
        columns = tuple(Column(column.name, sql_type(column.type)) for column in schema.columns)
        target = _extended(target, Shape(table, columns, schema.key_columns or tuple(key)))
    known = target.types if target else {}
    strings = tuple(Column(name, "string") for name in dict.fromkeys((*key, *named)) if name not in known)
    target = _extended(target, Shape(table, strings, target.key if target else tuple(key)))
    if not target.key:
        raise Refused("no key column is known, so rows cannot be told apart")
    missing = [name for name in target.key if name not in target.types]
    if missing:
        raise Refused(f"the key column {missing[0]} is not among the columns")
    if current is None:
        return target, Create(target)
    added = target.columns[len(current.columns) :]
    return target, AddColumns(added) if added else None


def _extended(target: Shape | None, wanted: Shape) -> Shape:
    if target is None:
        target = Shape(wanted.table, (), wanted.key)
    if wanted.key != target.key:
        raise Refused(f"the key changed from ({', '.join(target.key)}) to ({', '.join(wanted.key)})")
    types = target.types
    spelled = {name.lower(): name for name in types}
    added = []
    for column in wanted.columns:
        present = spelled.setdefault(column.name.lower(), column.name)
        if present != column.name:
            raise Refused(f"the columns {present} and {column.name} differ only by case")
        if column.name not in types:
            _check_name(column.name)
            types[column.name] = column.type
            added.append(column)
        elif types[column.name] != column.type:
            raise Refused(f"the column {column.name} is {types[column.name]}, its schema asks for {column.type}")
    return Shape(target.table, (*target.columns, *added), target.key)


def _check_name(name: str) -> None:
    if name.lower().startswith(META_PREFIX):
        raise Refused(f"the column {name} has a name of the sink's own columns ({META_PREFIX}...)")
    if not name or _FORBIDDEN.search(name):
        raise Refused(f"the column {name!r} has a character that Delta Lake does not take in a name")
