"""Define the sink's own columns in a table, by mode: names and Spark SQL types."""

from __future__ import annotations

from collections.abc import Mapping

from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_spec import DELETED_AT as DELETED_AT
from spark_sink.schema.table_spec import Mode

# The sink's own columns in every table.
SCOPE, POS, STATE, INCOMPLETE = "_cdc_scope", "_cdc_pos", "_cdc_state", "_cdc_incomplete"
COMMIT_TS, UPDATED_AT = "_cdc_commit_ts", "_cdc_updated_at"

# In a mirror: columns that the columnar fold reads from stored rows, and columns that are only for readers.
MARK_COLUMNS: Mapping[str, str] = {
    SCOPE: "string",
    POS: "string",
    STATE: "string",
    INCOMPLETE: "boolean",
    DELETED_AT: "timestamp",
}
META_COLUMNS: Mapping[str, str] = {**MARK_COLUMNS, COMMIT_TS: "timestamp", UPDATED_AT: "timestamp"}

# In a changelog: columns that describe the event. SET lists the columns that the event contains. Any other column is
# NULL because it was not sent.
ID, OP, KEY_OLD, SET, TS = "_cdc_id", "_cdc_op", "_cdc_key_old", "_cdc_set", "_cdc_ts"
LOG_COLUMNS: Mapping[str, str] = {
    ID: "string",
    OP: "string",
    SCOPE: "string",
    POS: "string",
    KEY_OLD: "string",
    SET: "array<string>",
    TS: "timestamp",
    COMMIT_TS: "timestamp",
}

# In a history: columns that describe the event that began a version, as in a changelog (SET is NULL if the event set
# the whole row), and columns that describe the end of the version.
TURN, START_TS, CURRENT = "_cdc_turn", "_cdc_start_ts", "_cdc_current"
END_OP, END_SCOPE, END_POS, END_TS = "_cdc_end_op", "_cdc_end_scope", "_cdc_end_pos", "_cdc_end_ts"
HISTORY_COLUMNS: Mapping[str, str] = {
    SCOPE: "string",
    POS: "string",
    TURN: "int",
    OP: "string",
    SET: "array<string>",
    START_TS: "timestamp",
    END_OP: "string",
    END_SCOPE: "string",
    END_POS: "string",
    END_TS: "timestamp",
    CURRENT: "boolean",
    INCOMPLETE: "boolean",
}

OWN_COLUMNS: Mapping[Mode, Mapping[str, str]] = {
    Mode.MIRROR: META_COLUMNS,
    Mode.CHANGELOG: LOG_COLUMNS,
    Mode.HISTORY: HISTORY_COLUMNS,
}

# Columns that a table can lack. A mirror has DELETED_AT only if it keeps deleted rows, or once kept them. A table from
# an earlier release can lack the others, which are added with the table's next event.
OPTIONAL: Mapping[Mode, frozenset[str]] = {
    Mode.MIRROR: frozenset({COMMIT_TS, UPDATED_AT, DELETED_AT}),
    Mode.CHANGELOG: frozenset(),
    Mode.HISTORY: frozenset(),
}


def new_columns(shape: TableShape) -> dict[str, str]:
    """Return the columns of a new table with their Spark SQL types. The sink's own columns come last."""
    lacks = {column.name for column in shape.lacks}
    return {**shape.types, **{name: sql for name, sql in OWN_COLUMNS[shape.mode].items() if name not in lacks}}
