"""Create and extend Delta tables on the driver through deltalake, without a Spark job.

The log is identical to the one that Spark would write (`tests/spark_sink/tables/test_ddl_contract.py`). Wherever the
two logs would differ, Spark changes the table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import ArrayType, DataType, PrimitiveType

from spark_sink.errors import FatalError
from spark_sink.events import quarantine
from spark_sink.schema.column_types import delta_type, has_statistics
from spark_sink.schema.engine_choice import FUSED_FEATURES
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.layout import (
    NO_LAYOUT,
    NO_LAYOUTS,
    Feature,
    FileLayout,
    FileLayouts,
    new_layout,
)
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.spark.foreign_errors import reason
from spark_sink.tables.delta.open_table import (
    CHECKPOINT_EVERY,
    REMEMBERED,
    STATISTICS_PROPERTY,
    create,
    shape_of,
    types_of,
)
from spark_sink.tables.delta.tables import features_of
from spark_sink.tables.locations import location, spelled
from spark_sink.tables.meta_columns import (
    OWN_COLUMNS,
    POS,
    new_columns,
)
from spark_sink.tables.protocols import DeltaAlterations
from spark_sink.tables.table_properties import (
    added_properties,
    format_properties,
    layout_property,
    missing_columns,
    own_last,
    shape_properties,
)

# The number of columns for which Delta keeps statistics by default. Statistics for more columns would enlarge the log
# without a benefit.
MAX_STATISTICS = 32

# Names that need no quotes in the property that lists the columns with statistics. The two programs that read the
# property use different quotes.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


# The protocol version from which on a table has an explicit list of features.
_NAMED_FEATURES = 7

# The maximum number of other commits, such as compactions, between reading a table and changing it.
_ATTEMPTS = 5


class DeltaDdl:
    """Creates and extends the Delta tables in a warehouse.

    Args:
        by_spark: makes the changes that deltalake cannot make exactly, or at all.
        layouts: the layout for new tables, keyed by table name or pattern.
    """

    def __init__(self, warehouse: str, by_spark: DeltaAlterations, layouts: FileLayouts = NO_LAYOUTS) -> None:
        self._warehouse = warehouse
        self._by_spark = by_spark
        self._layouts = layouts

    def create(self, name: str, shape: TableShape) -> str:
        with _changing(name):
            present = spelled(self._warehouse, name, DeltaTable.is_deltatable)
            if present is not None:
                return present
            layout = new_layout(name, shape, Format.DELTA, self._layouts)
            columns, properties = new_columns(shape), table_properties(shape, layout)
            if not layout.needs_spark:
                self._create(name, columns, properties, layout.parted_by)
                return name
        self._by_spark.create(name, columns, properties, layout)
        return name

    def replace(self, name: str, shape: TableShape) -> str:
        with _changing(name):
            present = spelled(self._warehouse, name, DeltaTable.is_deltatable)
            if present is None:
                return self.create(name, shape)
            table = DeltaTable(location(self._warehouse, present))
            if shape_of(table).built == shape.built:
                return present
            layout = new_layout(present, shape, Format.DELTA, self._layouts)
            columns, properties = new_columns(shape), table_properties(shape, layout)
            if not features_of(table) - FUSED_FEATURES and not layout.needs_spark:
                schema = Schema([_field(column, sql) for column, sql in columns.items()])
                DeltaTable.create(
                    table.table_uri,
                    schema,
                    mode="overwrite",
                    partition_by=layout.parted_by,
                    configuration=properties,
                    raise_if_key_not_exists=False,
                )
                return present
        self._by_spark.replace(present, columns, properties, layout)
        return present

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        with _changing(name):
            added = self._add_columns(name, columns)
        if not added:
            self._by_spark.add_columns(name, columns)

    def widen(self, name: str, columns: Sequence[TableColumn], *, rewrites: bool = False) -> None:
        self._by_spark.widen(name, columns, rewrites=rewrites)

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None:
        with _changing(name):
            table = DeltaTable(location(self._warehouse, name))
            if _is_exact(table, properties):
                table.alter.set_table_properties(dict(properties), raise_if_not_exists=False)
                return
        self._by_spark.set_properties(name, properties)

    def create_quarantine(self) -> None:
        with _changing(quarantine.NAME):
            self._create(quarantine.NAME, quarantine.COLUMNS, quarantine_properties())

    def _create(
        self, name: str, columns: Mapping[str, str], properties: Mapping[str, str], parted_by: Sequence[str] = ()
    ) -> None:
        schema = Schema([_field(column, sql) for column, sql in columns.items()])
        create(location(self._warehouse, name), schema, properties, parted_by)

    def _add_columns(self, name: str, columns: Sequence[TableColumn], attempts: int = _ATTEMPTS) -> bool:
        """Add the columns that the table lacks. Return False if Spark has to add them."""
        table = DeltaTable(location(self._warehouse, name))
        properties = added_properties(table.metadata().configuration, types_of(table), columns)
        if not _is_exact(table, properties):
            return False
        missing = missing_columns(name, types_of(table), columns)
        try:
            if properties.items() - table.metadata().configuration.items():
                table.alter.set_table_properties(properties, raise_if_not_exists=False)
            if missing:
                _extend(table, missing)
        except CommitFailedError:
            if attempts == 1:
                raise
            return self._add_columns(name, columns, attempts - 1)
        return True


def _extend(table: DeltaTable, columns: Sequence[TableColumn]) -> None:
    """Add columns before the sink's own columns, by a write that replaces the schema and no rows. An append-only table
    rejects this write, so its new columns are added at the end.
    """
    added = {column.name: _field(column.name, column.type) for column in columns}
    if table.metadata().configuration.get("delta.appendOnly") == "true":
        table.alter.add_columns([*added.values()])
        return
    fields = {field.name: field for field in table.schema().fields} | added
    schema = pa.schema(Schema([fields[name] for name in own_last(fields)]).to_arrow())
    write_deltalake(table, schema.empty_table(), mode="overwrite", schema_mode="overwrite", predicate="false")


def _is_exact(table: DeltaTable, properties: Collection[str]) -> bool:
    """Return whether deltalake would change a table exactly as Spark would, because deltalake supports all of the
    table's features and adds none.
    """
    if features_of(table) - FUSED_FEATURES:
        return False
    # When deltalake 1.6 sets a property on a table with named features, it adds the variant feature.
    return not properties or table.protocol().min_writer_version < _NAMED_FEATURES


@contextmanager
def _changing(name: str) -> Iterator[None]:
    """Convert errors from deltalake and its storage to FatalError."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise FatalError(f"the table {name} cannot be created or changed: {reason(error)}") from error


def _field(name: str, sql: str) -> Field:
    return Field(name, _type(sql))


def _type(sql: str) -> DataType:
    if sql == "array<string>":
        return ArrayType(PrimitiveType("string"), contains_null=True)
    return PrimitiveType(delta_type(sql))


# A worker could not look up rows in a table with deletion vectors, unless Spark writes the table.
_FIXED = {"delta.enableDeletionVectors": "false", "delta.checkpointInterval": str(CHECKPOINT_EVERY), **REMEMBERED}


def table_properties(shape: TableShape, layout: FileLayout = NO_LAYOUT) -> dict[str, str]:
    """Return the properties for a new table: the table's description, and the list of columns with statistics."""
    return {
        **shape_properties(shape),
        STATISTICS_PROPERTY: statistics_columns(shape, layout),
        **_FIXED,
        **feature_properties(layout),
        **layout_property(layout),
    }


def statistics_columns(shape: TableShape, layout: FileLayout) -> str:
    """Return the columns that get statistics, as a property. A partition column has the same value in all rows of a
    file, and Spark rejects it in this list.
    """
    # Filters on the key and on clustered columns benefit from statistics, so these columns come first.
    first = {*shape.key, *layout.cluster}
    by_use = sorted(shape.columns, key=lambda column: column.name not in first)
    fit = [c.name for c in by_use if has_statistics(c.type) and _PLAIN_NAME.fullmatch(c.name)]
    useful = [name for name in fit if name not in layout.parted_by]
    if shape.mode == Mode.CHANGELOG:
        useful.insert(0, POS)  # events are looked up by this column
    return ",".join(useful[:MAX_STATISTICS]) or next(iter(OWN_COLUMNS[shape.mode]))


# The property that enables each feature.
_ENABLES: Mapping[Feature, tuple[str, str]] = {
    Feature.CHANGE_DATA_FEED: ("delta.enableChangeDataFeed", "true"),
    Feature.COLUMN_MAPPING: ("delta.columnMapping.mode", "name"),
    Feature.DELETION_VECTORS: ("delta.enableDeletionVectors", "true"),
}


def feature_properties(layout: FileLayout) -> dict[str, str]:
    """Return the properties that enable a layout's features."""
    return dict(_ENABLES[feature] for feature in layout.features)


def quarantine_properties() -> dict[str, str]:
    """Return the properties for the quarantine table."""
    statistics = ",".join(n for n, sql in quarantine.COLUMNS.items() if has_statistics(sql) and n != "detail")
    return {STATISTICS_PROPERTY: statistics, **_FIXED, **format_properties()}
