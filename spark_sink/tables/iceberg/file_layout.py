"""Store layouts the way Iceberg does: as properties, partitions and sort order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import BucketTransform
from pyspark.sql import SparkSession

from spark_sink.errors import Reason, Refused
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.layout import FileLayout, Partition, SortKey, Transform, WriteMode
from spark_sink.schema.table_spec import SOURCE, Mode, match_rule
from spark_sink.tables.reach import BOUNDED

FILE_SIZE = "write.target-file-size-bytes"


def write_properties(layout: FileLayout, format_version: int) -> dict[str, str]:
    """Return the properties that determine how writers write files.

    Args:
        format_version: the newest format version that the catalog supports.

    Raises:
        Refused: the layout requests a newer format version.
    """
    wanted, mode = layout.format_version or format_version, layout.write_mode or WriteMode.MERGE_ON_READ
    if wanted > format_version:
        raise Refused(
            Reason.TABLE_REFUSED,
            f"tables.layout requests format_version {wanted}, but the catalog only supports {format_version}",
        )
    size = {} if layout.file_megabytes is None else {FILE_SIZE: str(layout.file_megabytes << 20)}
    return {
        **{f"write.{statement}.mode": mode.value for statement in ("delete", "update", "merge")},
        "format-version": str(wanted),
        **size,
    }


def partition_of(name: str, shape: TableShape, layout: FileLayout, buckets: Mapping[str, int]) -> tuple[Partition, ...]:
    """Return the partitioning of a table. It is that of its layout or, failing that, the buckets that `tables.buckets`
    sets.
    """
    count, column = match_rule(name, buckets), bucket_column(shape)
    if layout.partition or count is None or column is None:
        return layout.partition
    return (Partition(Transform.BUCKET, column, count),)


def partition_in(metadata: TableMetadata) -> dict[str, Partition | None]:
    """Return a table's partitioning, keyed by the name of the partition field. If layouts do not support the transform
    of a field, its value is None.
    """
    found: dict[str, Partition | None] = {}
    for field in metadata.spec().fields:
        column = metadata.schema().find_column_name(field.source_id) or ""
        if isinstance(field.transform, BucketTransform):
            found[field.name] = Partition(Transform.BUCKET, column, field.transform.num_buckets)
        else:
            known = [one for one in Transform if one.value == str(field.transform)]
            found[field.name] = Partition(known[0], column) if known else None
    return found


def check_format_version(stored: int, layout: FileLayout) -> None:
    """Raise an error if a table would have to return to an older format version, because Iceberg does not support this.

    Raises:
        Refused: the layout has an older format version than the table.
    """
    wanted = layout.format_version
    if wanted is not None and stored > wanted:
        raise Refused(
            Reason.TABLE_REFUSED,
            f"the table has format version {stored}, and Iceberg cannot change it back to {wanted}. To change "
            f"it, give the table another name in tables.rename and rebuild it under that name",
        )


def sort_by(session: SparkSession, table: Any, orders: Iterable[SortKey]) -> None:
    """Set the order in which writers sort the rows in each file. NULL comes last."""
    iceberg: Any = session._jvm.org.apache.iceberg  # type: ignore[union-attr]
    change, last = table.replaceSortOrder(), iceberg.NullOrder.NULLS_LAST
    for order in orders:
        column = iceberg.expressions.Expressions.ref(order.column)
        change = change.desc(column, last) if order.descending else change.asc(column, last)
    change.commit()


def partition_in_sql(part: Partition) -> str:
    """Return a partition as SQL declares it."""
    column = f"`{part.column}`"
    match part.transform:
        case Transform.IDENTITY:
            return column
        case Transform.BUCKET:
            return f"bucket({part.buckets}, {column})"
        case _:
            return f"{part.transform}s({column})"


def bucket_column(shape: TableShape) -> str | None:
    """Return the column whose values are hashed into buckets. It is the first key column with numbers or strings.
    Return None for a changelog, and for a table without such a column. The source column is skipped, because many rows
    have the same value in it.
    """
    if shape.mode == Mode.CHANGELOG:
        return None
    # Iceberg names the bucket after the column, and no other column may have that name.
    fit = (n for n in shape.key if n != SOURCE and shape.types[n] in BOUNDED and f"{n}_bucket" not in shape.types)
    return next(fit, None)
