"""A view of a table for readers. It has the live rows, and each source column once, under its name at the source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from typing import NamedTuple

from spark_sink.errors import ConfigError
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_spec import DELETED_AT, Mode


class ReaderEngine(StrEnum):
    """A program that reads the tables."""

    SPARK = "spark"
    DUCKDB = "duckdb"
    TRINO = "trino"


class _Dialect(NamedTuple):
    """An engine's SQL dialect. If the engine reads folders, `relation` refers to the folder of a Delta table."""

    quote: str
    text: str
    relation: Callable[[str], str] | None


def _quoted(name: str, quote: str) -> str:
    return f"{quote}{name.replace(quote, 2 * quote)}{quote}"


def _literal(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


_DIALECTS: Mapping[ReaderEngine, _Dialect] = {
    ReaderEngine.SPARK: _Dialect("`", "STRING", lambda path: f"delta.{_quoted(path, '`')}"),
    ReaderEngine.DUCKDB: _Dialect('"', "VARCHAR", lambda path: f"delta_scan({_literal(path)})"),
    # This engine reads tables that were registered with `CALL system.register_table`.
    ReaderEngine.TRINO: _Dialect('"', "VARCHAR", None),
}

# The condition for live rows. In all other modes, a key has no single live row.
_PRESENT: Mapping[Mode, str] = {Mode.MIRROR: f"{DELETED_AT} IS NULL", Mode.HISTORY: "_cdc_current"}

# The number of decimal digits that can represent every value of an integer type.
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}

# The types that double represents exactly.
_DOUBLES = frozenset({"tinyint", "smallint", "int", "float", "double"})

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38


def create_view(engine: ReaderEngine, view: str, shape: TableShape, path: str | None, table: str | None = None) -> str:
    """Return the statement that creates or replaces the view.

    Args:
        view, table: names in the engine, with dots between their parts. `table` is set if the engine reads the table by
            name.
        path: the path to the table's folder, or None if no engine can read it.

    Raises:
        ConfigError: the table cannot have such a view, or the engine does not read folders.
    """
    if not has_rows(shape):
        allowed = ", ".join(_PRESENT)
        raise ConfigError(
            f"a table with mode {shape.mode} contains events instead of rows; views are only possible for {allowed}"
        )
    dialect = _DIALECTS[engine]
    if table is not None:
        relation = quoted_name(engine, table)
    elif dialect.relation is not None and path is not None:
        relation = dialect.relation(path)
    else:
        raise ConfigError(f"{engine} reads this table by name; pass that name with --from")
    return f"CREATE OR REPLACE VIEW {quoted_name(engine, view)} AS\n{view_query(engine, shape, relation)};"


def view_query(engine: ReaderEngine, shape: TableShape, relation: str) -> str:
    """Return the query of the view. The table must have rows.

    Args:
        relation: the table in the engine's SQL.
    """
    columns = ",\n".join(f"  {column}" for column in _columns(shape.columns, _DIALECTS[engine]))
    only_live = any(column.name == DELETED_AT for column in shape.lacks)
    live = "" if only_live else f"\nWHERE {_PRESENT[shape.mode]}"
    return f"SELECT\n{columns}\nFROM {relation}{live}"


def has_rows(shape: TableShape) -> bool:
    """Return whether the table contains rows rather than events, because only rows can have a view."""
    return shape.mode in _PRESENT


def quoted_name(engine: ReaderEngine, name: str) -> str:
    """Return a name with dots between its parts in an engine's SQL."""
    return ".".join(_quoted(part, _DIALECTS[engine].quote) for part in name.split("."))


def versions(columns: Sequence[TableColumn]) -> Mapping[str, Sequence[TableColumn]]:
    """Return the columns with each source column's values, by source column name."""
    found: dict[str, list[TableColumn]] = {}
    for column in columns:
        found.setdefault(column.sent_as, []).append(column)
    return found


def _columns(columns: Sequence[TableColumn], dialect: _Dialect) -> Iterator[str]:
    """Return the view's columns, named as at the source. Engines ignore case. If two names differ only in case, the
    later one is named as in the table.
    """
    taken: set[str] = set()
    for sent_as, same in versions(columns).items():
        name = sent_as if sent_as.lower() not in taken else same[0].name
        taken.add(name.lower())
        value, named = _value(same, dialect), _quoted(name, dialect.quote)
        yield value if value == named else f"{value} AS {named}"


def _value(same: Sequence[TableColumn], dialect: _Dialect) -> str:
    names = [_quoted(column.name, dialect.quote) for column in same]
    if len(names) == 1:
        return names[0]
    type = _number({column.type for column in same}) or dialect.text
    return f"coalesce({', '.join(f'CAST({name} AS {type})' for name in names)})"


def _number(types: Set[str]) -> str | None:
    """Return the number type that represents all values of these types exactly, or None if there is none."""
    if types <= _DIGITS.keys():
        return max(types, key=lambda type: _DIGITS[type]).upper()
    if types <= _DOUBLES:
        return "DOUBLE"
    before, after = 0, 0
    for type in types:
        found = _DECIMAL.fullmatch(type)
        if found is None and type not in _DIGITS:
            return None
        digits, scale = (int(found[1]), int(found[2])) if found else (_DIGITS[type], 0)
        before, after = max(before, digits - scale), max(after, scale)
    return f"DECIMAL({before + after},{after})" if before + after <= _MOST_DIGITS else None
