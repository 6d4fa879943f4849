"""Describe one of the sink's tables by properties. They are the same in every format, and separate from the columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from cdc_core.state_format import FORMAT, refusal_of, release
from cdc_core.table_id import TableId
from spark_sink.errors import FatalError, Reason, Refused
from spark_sink.schema.column_types import is_known
from spark_sink.schema.evolution import META_PREFIX, TableColumn, TableShape
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.table_spec import SOURCE, Mode
from spark_sink.tables.meta_columns import OPTIONAL, OWN_COLUMNS

# The source table that the table belongs to.
KEY_PROPERTY, TABLE_PROPERTY = "cdc.key", "cdc.table"

# The table's mode, which determines the meaning of its rows. A mirror lacks this property.
MODE_PROPERTY = "cdc.mode"

# The rebuild that created the table.
BUILT_PROPERTY = "cdc.built"

# The columns that the sink created, as a JSON list. If the property is missing, the table comes from an older release,
# and all of its columns count as the sink's.
COLUMNS_PROPERTY = "cdc.columns"

# The format of the table and of the files next to it, and the release that set it.
FORMAT_PROPERTY, RELEASE_PROPERTY = "cdc.format", "cdc.release"

# These properties identify a table that the sink created.
IDENTITY = frozenset({KEY_PROPERTY, TABLE_PROPERTY, MODE_PROPERTY, BUILT_PROPERTY})

# The source names of columns whose names differ from the names at the source.
SOURCE_PROPERTY = "cdc.source."

# The layout that the table was created with, or that `relayout` gave it, as JSON. If the property is missing, the table
# has no layout.
LAYOUT_PROPERTY = "cdc.layout"

# The position of the last truncate in each scope.
FLOORS_PROPERTY = "cdc.floors"


def shape_from(properties: Mapping[str, str], types: Mapping[str, str]) -> TableShape:
    """Return the shape of a table, given its properties and the Spark SQL types of its columns.

    Raises:
        Refused: the table is not one of the sink's tables, or has the format of a later release.
    """
    if refusal := refusal_of(properties.get(FORMAT_PROPERTY), properties.get(RELEASE_PROPERTY)):
        raise Refused(Reason.TABLE_REFUSED, f"the table {refusal}")
    own = {name for name in types if name.startswith(META_PREFIX) and name != SOURCE}
    mode = Mode(properties.get(MODE_PROPERTY, Mode.MIRROR))
    lacks = tuple(TableColumn(name, sql) for name, sql in OWN_COLUMNS[mode].items() if name not in own)
    foreign = own - OWN_COLUMNS[mode].keys() or {column.name for column in lacks} - OPTIONAL[mode]
    if KEY_PROPERTY not in properties or TABLE_PROPERTY not in properties or foreign:
        raise Refused(Reason.TABLE_REFUSED, "the table was not created by this sink")
    made = _made(properties, types)
    columns = tuple(TableColumn(name, types[name], properties.get(SOURCE_PROPERTY + name)) for name in made)
    others = tuple(name for name in types if name not in own and name not in made)
    source = TableId(*json.loads(properties[TABLE_PROPERTY]))
    key, built = tuple(json.loads(properties[KEY_PROPERTY])), properties.get(BUILT_PROPERTY, "")
    return TableShape(source, columns, key, mode, lacks, built, others)


def shape_properties(shape: TableShape) -> dict[str, str]:
    """Return the properties for a new table with this shape."""
    return {
        **format_properties(),
        **owner_properties(shape.table),
        KEY_PROPERTY: json.dumps(shape.key),
        **({} if shape.mode == Mode.MIRROR else {MODE_PROPERTY: shape.mode.value}),
        **({BUILT_PROPERTY: shape.built} if shape.built else {}),
        **source_properties(shape.columns),
        COLUMNS_PROPERTY: json.dumps([column.name for column in shape.columns]),
    }


def format_properties() -> dict[str, str]:
    """Return the properties with this release's format."""
    return {FORMAT_PROPERTY: str(FORMAT), RELEASE_PROPERTY: release()}


def _made(properties: Mapping[str, str], types: Mapping[str, str]) -> list[str]:
    """Return the columns that the sink created. The sink never creates a column with a type that no event can have."""
    listed = properties.get(COLUMNS_PROPERTY)
    names = types if listed is None else frozenset(json.loads(listed))
    return [name for name, sql in types.items() if name in names and is_of_source(name) and is_known(sql)]


def is_of_source(name: str) -> bool:
    return name == SOURCE or not name.startswith(META_PREFIX)


def own_last(names: Iterable[str]) -> list[str]:
    """Return column names in the order of a table: the sink's own columns come last."""
    return sorted(names, key=lambda name: not is_of_source(name))


def added_properties(
    properties: Mapping[str, str], types: Mapping[str, str], added: Sequence[TableColumn]
) -> dict[str, str]:
    """Return the properties to set before more columns are added to a table. Without its source name, a column would
    look like a different one. If a column were not listed, it would look like someone else's.
    """
    names = [column.name for column in added if is_of_source(column.name)]
    if not names:
        return {}
    made = dict.fromkeys([*_made(properties, types), *names])
    return {**source_properties(added), COLUMNS_PROPERTY: json.dumps(list(made))}


def owner_properties(table: TableId) -> dict[str, str]:
    """Return the properties that assign a table to a source table."""
    return {TABLE_PROPERTY: json.dumps(table)}


def source_properties(columns: Sequence[TableColumn]) -> dict[str, str]:
    """Return the properties with the source names of the columns that have other names in the table."""
    return {SOURCE_PROPERTY + column.name: column.source for column in columns if column.source is not None}


def recorded(layout: FileLayout) -> str:
    """Return the value of the property that records a layout."""
    return json.dumps(layout.settings(), sort_keys=True)


def layout_property(layout: FileLayout) -> dict[str, str]:
    """Return the property that records a new table's layout."""
    return {LAYOUT_PROPERTY: recorded(layout)} if layout.settings() else {}


def layout_from(properties: Mapping[str, str]) -> FileLayout:
    """Return the layout that a table's properties record."""
    return FileLayout.of(json.loads(properties.get(LAYOUT_PROPERTY, "{}")))


def missing_columns(name: str, present: Mapping[str, str], columns: Sequence[TableColumn]) -> list[TableColumn]:
    """Return the columns that a table lacks.

    Args:
        present: Spark SQL type by column.

    Raises:
        FatalError: the table has one of the columns with another type.
    """
    for column in columns:
        if present.get(column.name, column.type) != column.type:
            raise FatalError(
                f"another program added the column {column.name} to the table {name} with the type "
                f"{present[column.name]}, but this sink was about to add it with the type {column.type}. Do not let "
                "other programs write to the sink's tables, and restart the sink"
            )
    return [column for column in columns if column.name not in present]
