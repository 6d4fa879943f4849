"""Define the rules for columns in each format: types of new columns, type changes in place, and reserved names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from spark_sink.schema.column_types import iceberg_widens, sql_type, widens
from spark_sink.schema.table_spec import Format


class ColumnRules(NamedTuple):
    """A format's rules for columns.

    Args:
        type_of: returns the Spark SQL type that a column gets for its canonical type.
        widens: returns whether Spark can change a column from one type to another in place.
        reserved: the lower-case names that the format uses for its own columns.
    """

    type_of: Callable[[str], str]
    widens: Callable[[str, str], bool]
    reserved: frozenset[str]


def _without_small_integers(canonical: str) -> str:
    sql = sql_type(canonical)
    return "int" if sql in ("tinyint", "smallint") else sql


# org.apache.iceberg.MetadataColumns. For some of these names, a MERGE fails. For all others, the column is read
# incorrectly.
_OF_ICEBERG = frozenset(
    {
        *("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"),
        *("_change_type", "_change_ordinal", "_commit_snapshot_id"),
    }
)

COLUMN_RULES: Mapping[Format, ColumnRules] = {
    Format.DELTA: ColumnRules(sql_type, widens, frozenset()),
    Format.ICEBERG: ColumnRules(_without_small_integers, iceberg_widens, _OF_ICEBERG),
}
