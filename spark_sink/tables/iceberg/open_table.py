"""Share code between Iceberg tables in all modes: metadata, the markers in snapshots, and columns as Arrow data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, GreaterThanOrEqual, In, LessThanOrEqual, Reference
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.changes import LastSeen, Marker
from spark_sink.tables.meta_columns import OWN_COLUMNS
from spark_sink.tables.reach import Bounds, Reach, bounds_of, values_of
from spark_sink.tables.spark_operations import Order
from spark_sink.tables.table_properties import shape_from

# The markers for all work, as JSON, in the summary of every snapshot that the sink creates. A table property with the
# same name contains a copy, with the sequence number of the snapshot from which the copy was made.
MARKERS_PROPERTY = "cdc.markers"

# The version of a table that has no commits.
NO_SNAPSHOT = 0

# The Spark SQL types, without decimals.
SQL_TYPES: Mapping[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "binary",
    DateType: "date",
    TimestampType: "timestamp_ntz",
    TimestamptzType: "timestamp",
}

# The sink's own columns with types that no event can have.
_LISTS: Mapping[str, pa.DataType] = {"array<string>": pa.list_(pa.string())}


def types_of(metadata: TableMetadata, snapshot: Snapshot | None = None) -> dict[str, str]:
    """Return the Spark SQL type of each column, by default in the present schema. For a type that no event can have,
    return the name that Iceberg uses.
    """
    id = metadata.current_schema_id if snapshot is None or snapshot.schema_id is None else snapshot.schema_id
    schema = metadata.schema_by_id(id) or metadata.schema()
    return {field.name: _sql(field.field_type) for field in schema.fields}


def stored_type(sql: str) -> pa.DataType:
    """Return the Arrow type for a column's Spark SQL type, even if no event can have this type."""
    return _LISTS.get(sql) or arrow_type(sql)


def _sql(type: IcebergType) -> str:
    if isinstance(type, DecimalType):
        return f"decimal({type.precision},{type.scale})"
    return SQL_TYPES.get(type.__class__, str(type))


def shape_of(metadata: TableMetadata, snapshot: Snapshot | None = None) -> TableShape:
    """Return the shape of the table. By default, it is the present one."""
    return shape_from(metadata.properties, types_of(metadata, snapshot))


def ancestors(metadata: TableMetadata, of: int | None = None) -> Iterator[Snapshot]:
    """Return a snapshot and all of its ancestors that still exist. By default, start with the newest one."""
    snapshot = metadata.current_snapshot() if of is None else metadata.snapshot_by_id(of)
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else metadata.snapshot_by_id(parent)


def markers_of(metadata: TableMetadata, snapshot: int | None = None) -> dict[str, int]:
    """Return the greatest version per app, by default in the newest snapshot.

    The newest snapshot that has markers has all of them. Snapshots without markers may follow it, such as those from a
    compaction. If no snapshot has markers, use the copy. It may lack the newest ones.
    """
    told = summary_property(metadata, MARKERS_PROPERTY, snapshot)
    found: dict[str, int] = _copied_markers(metadata) if told is None else json.loads(told)
    return found


def _copied_markers(metadata: TableMetadata) -> dict[str, int]:
    """Return the copy of the markers. If the table was rolled back to a state before the copy, return no markers,
    because the rows that they cover are gone.
    """
    copy, newest = metadata.properties.get(MARKERS_PROPERTY), metadata.current_snapshot()
    if copy is None or newest is None:
        return {}
    told = json.loads(copy)
    markers: dict[str, int] = told["markers"] if told["sequence_number"] <= (newest.sequence_number or 0) else {}
    return markers


def copy_of_markers(metadata: TableMetadata) -> str | None:
    """Return the property with the copy of the snapshots' markers, or None if there is nothing to copy."""
    for snapshot in ancestors(metadata):
        told = None if snapshot.summary is None else snapshot.summary.get(MARKERS_PROPERTY)
        if told is not None:
            return json.dumps({"sequence_number": snapshot.sequence_number, "markers": json.loads(told)})
    return None


def commit_properties(
    metadata: TableMetadata | None, markers: Sequence[Marker], summary: Mapping[str, str]
) -> dict[str, str] | None:
    """Return the snapshot properties for a commit: all markers, and other metadata. If the table already has the first
    marker, it has the whole change. Return None.
    """
    stored = {} if metadata is None else markers_of(metadata)
    fresh = {app: version for app, version in markers if stored.get(app, -1) < version}
    if any(marker.app not in fresh for marker in markers[:1]):
        return None
    return {MARKERS_PROPERTY: json.dumps({**stored, **fresh}), **summary}


def summary_property(metadata: TableMetadata, name: str, snapshot: int | None = None) -> str | None:
    """Return the newest value of a snapshot property, as of a snapshot. By default, this is the newest snapshot."""
    summaries = (one.summary for one in ancestors(metadata, snapshot))
    return next((found for one in summaries if one is not None and (found := one.get(name)) is not None), None)


class IcebergOpened:
    """An open Iceberg table that belongs to the sink.

    Args:
        snapshot: the snapshot to read. By default, this is the newest one.
    """

    orders: Sequence[Order] = ()

    def __init__(self, table: Table, shape: TableShape, choice: Choice, snapshot: int | None = None) -> None:
        self._table = table
        self._snapshot = snapshot
        self.shape = shape
        self.choice = choice

    @property
    def version(self) -> int:
        return version_of(self._table.metadata)

    def applied(self, app: str) -> int | None:
        return markers_of(self._table.metadata, self._snapshot).get(app)

    def follows(self, seen: LastSeen) -> bool:
        metadata = self._table.metadata
        if seen.version == NO_SNAPSHOT or any(one.snapshot_id == seen.version for one in ancestors(metadata)):
            return True
        if metadata.snapshot_by_id(seen.version) is not None:
            return False
        # Either a later commit expired the snapshot, or the metadata is a copy from before the snapshot.
        return metadata.last_updated_ms * 1000 >= seen.at

    def _read(self, names: Sequence[str], rows: BooleanExpression = AlwaysTrue()) -> Iterator[pa.RecordBatch]:  # noqa: B008 - a constant
        """Return these columns with the table's types, for all requested rows. Other rows may be included."""
        types = {**self.shape.types, **OWN_COLUMNS[self.shape.mode]}
        fields = [(name, stored_type(types[name])) for name in names]
        scan = self._table.scan(rows, tuple(dict.fromkeys(names)), snapshot_id=self._snapshot)
        for batch in scan.to_arrow_batch_reader():
            columns = [batch.column(name).cast(type) for name, type in fields]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def version_of(metadata: TableMetadata) -> int:
    """Return the version at which readers can see the table as it is now. It is the id of its snapshot."""
    snapshot = metadata.current_snapshot()
    return NO_SNAPSHOT if snapshot is None else snapshot.snapshot_id


def near(reach: Reach, types: Mapping[str, str]) -> BooleanExpression:
    """Return the condition that selects the rows within a reach. If the reach has only a few values, the condition
    lists them, so that Iceberg can also skip buckets.
    """
    found = within(bounds_of(reach, types))
    for name, values in values_of(reach, types).items():
        found = And(found, In(Reference(name), values))  # type: ignore[call-arg, arg-type]  # as below
    return found


def buckets_of(metadata: TableMetadata) -> int:
    """Return the number of buckets into which new files are partitioned, or 1 if there are no buckets."""
    transforms = (field.transform for field in metadata.spec().fields)
    return next((one.num_buckets for one in transforms if isinstance(one, BucketTransform)), 1)


def within(bounds: Bounds) -> BooleanExpression:
    """Return a condition that requires all columns to be within their bounds."""
    found: BooleanExpression = AlwaysTrue()
    for name, (least, greatest) in bounds.items():
        column = Reference(name)
        found = And(found, GreaterThanOrEqual(column, least))  # type: ignore[call-arg, arg-type]  # it says so itself
        found = And(found, LessThanOrEqual(column, greatest))  # type: ignore[call-arg, arg-type]
    return found
