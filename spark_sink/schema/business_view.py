"""A view of a table for readers, with each source column once, and with live rows only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """An engine's SQL dialect. `relation` refers to a Delta table's folder, if the engine reads folders."""

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

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})


def create_view(engine: ReaderEngine, view: str, shape: TableShape, path: str | None, table: str | None = None) -> str:
    """Return the statement that creates or replaces the view.

    Args:
        view, table: names in the engine, with dots between their parts. `table` is set if the engine reads the table by
            name.
        path: the path to the table's folder; None if no engine can read it.

    Raises:
        ConfigError: such a view of the table is not possible, or the engine does not read folders.
    """
    if shape.mode not in _PRESENT:
        allowed = ", ".join(_PRESENT)
        raise ConfigError(
            f"a table with mode {shape.mode} contains events instead of rows; views are only possible for {allowed}"
        )
    dialect = _DIALECTS[engine]
    if table is not None:
        relation = _name(table, dialect)
    elif dialect.relation is not None and path is not None:
        relation = dialect.relation(path)
    else:
        raise ConfigError(f"{engine} reads this table by name; pass that name with --from")
    columns = ",\n".join(f"  {_column(same, dialect)}" for same in versions(shape.columns))
    only_live = any(column.name == DELETED_AT for column in shape.lacks)
    live = "" if only_live else f"\nWHERE {_PRESENT[shape.mode]}"
    return f"CREATE OR REPLACE VIEW {_name(view, dialect)} AS\nSELECT\n{columns}\nFROM {relation}{live};"


def _name(name: str, dialect: _Dialect) -> str:
    return ".".join(_quoted(part, dialect.quote) for part in name.split("."))


def versions(columns: Sequence[TableColumn]) -> list[list[TableColumn]]:
    """Return a table's columns, grouped so that all versions of a source column are together."""
    found: dict[str, list[TableColumn]] = {}
    for column in columns:
        found.setdefault(column.source or column.name, []).append(column)
    return list(found.values())


def _column(same: Sequence[TableColumn], dialect: _Dialect) -> str:
    names = [_quoted(column.name, dialect.quote) for column in same]
    if len(names) == 1:
        return names[0]
    # Any other combination of types is converted to text, which is exact.
    whole = all(column.type in _INTEGERS for column in same)
    values = names if whole else [f"CAST({name} AS {dialect.text})" for name in names]
    return f"coalesce({', '.join(values)}) AS {names[0]}"
