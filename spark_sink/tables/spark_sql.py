"""Write the SQL for orders that all formats share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import dropwhile, pairwise

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from spark_sink.schema.evolution import TableColumn
from spark_sink.tables.changes import Deletion
from spark_sink.tables.meta_columns import COMMIT_TS, DELETED_AT, INCOMPLETE, STATE, UPDATED_AT
from spark_sink.tables.spark_operations import GONE, WRITTEN, Merge, merged
from spark_sink.tables.staging import Staging
from spark_sink.tables.table_properties import is_of_source, own_last

_STAGED = "cdc_staged"

# A user's session may be configured to ignore missing or corrupt files, but none of the sink's own files may be
# ignored.
_WHOLE = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}


def staged_rows(session: SparkSession, staging: Staging, order: Merge) -> DataFrame:
    """Return the rows of a staged file as a data frame, with the time at which they are written."""
    flags = dict.fromkeys([*(WRITTEN + name for name in order.kept), *([GONE] if order.deletes else [])], "boolean")
    path = f"{staging.warehouse}/{staging.folder}/{order.path}"
    staged = session.read.options(**_WHOLE).schema(declared({**order.columns, **flags})).parquet(path)
    return staged if order.at is None else staged.withColumn(UPDATED_AT, expr(instant(order.at)))


def merge_statement(table: str, staged: DataFrame, order: Merge) -> str:
    """Return the statement that merges staged rows into a table. The table name must already be quoted."""
    staged.createOrReplaceTempView(_STAGED)
    same = [f"t.`{name}` = s.`{name}`" for name in order.key]
    same += [f"t.`{name}` BETWEEN {_value(low)} AND {_value(high)}" for name, (low, high) in order.bounds.items()]
    same += [f"t.`{name}` IN ({', '.join(map(_value, values))})" for name, values in order.values.items()]
    columns = [*order.columns, *([] if order.at is None else [UPDATED_AT])]
    updates = ", ".join(f"t.`{name}` = {merged(name, order.kept)}" for name in columns)
    names = ", ".join(f"`{name}`" for name in columns)
    values = ", ".join(f"s.`{name}`" for name in columns)
    # The conditions contain no positions, because the fold has already compared the positions.
    matched, live = f"WHEN MATCHED THEN UPDATE SET {updates}", ""
    if order.deletes:
        matched = f"WHEN MATCHED AND s.{GONE} THEN DELETE {matched}"
        live = f" AND NOT s.{GONE}"
    missing = f"WHEN NOT MATCHED{live} THEN INSERT ({names}) VALUES ({values})"  # noqa: S608 - quoted
    return f"MERGE INTO {table} AS t USING {_STAGED} AS s ON {' AND '.join(same)} {matched} {missing}"


def add_columns(session: SparkSession, table: str, present: Sequence[str], added: Sequence[TableColumn]) -> None:
    """Add columns before the sink's own columns. In a table from an earlier release, they may be in the middle. In this
    case, move them to the end. The table name must already be quoted.
    """
    columns = own_last([*present, *(column.name for column in added)])
    place = {columns[0]: "FIRST"} | {name: f"AFTER {_ticked(before)}" for before, name in pairwise(columns)}
    for name in filter(is_of_source, dropwhile(is_of_source, present)):
        session.sql(f"ALTER TABLE {table} ALTER COLUMN {_ticked(name)} {place[name]}")
    placed = {column.name: f"{column.type} {place[column.name]}" for column in added}
    session.sql(f"ALTER TABLE {table} ADD COLUMNS ({declared(placed)})")


def declared(columns: Mapping[str, str]) -> str:
    """Return the columns with their Spark SQL types, as SQL declares them."""
    return ", ".join(f"{_ticked(name)} {sql}" for name, sql in columns.items())


def retirement(deletion: Deletion) -> str:
    """Return the assignments that mark rows as deleted."""
    times = zip((DELETED_AT, COMMIT_TS, UPDATED_AT), deletion, strict=True)
    gone = ", ".join(f"{name} = {instant(time)}" for name, time in times)
    return f"{gone}, {STATE} = NULL, {INCOMPLETE} = false"


def instant(time: int | None) -> str:
    """Return the SQL literal for a time (microseconds, UTC)."""
    return "NULL" if time is None else f"timestamp_micros({time})"


def literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def listed(properties: Mapping[str, str]) -> str:
    """Return the SQL list of table properties."""
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())


def _ticked(name: str) -> str:
    """Return a column's name in SQL. A column that someone else added may have any name."""
    ticked = name.replace("`", "``")
    return f"`{ticked}`"


def _value(value: str | int) -> str:
    return str(value) if isinstance(value, int) else literal(value)
