"""Give an existing Delta table another layout, through Spark."""

from __future__ import annotations

from collections.abc import Mapping

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_sink.errors import Reason, Refused
from spark_sink.schema.layout import Feature, FileLayout, Partition, Transform, check_layout
from spark_sink.schema.table_spec import Format
from spark_sink.tables.delta.ddl import feature_properties, statistics_columns
from spark_sink.tables.delta.open_table import STATISTICS_PROPERTY, shape_of
from spark_sink.tables.delta.spark_ddl import placed, quoted
from spark_sink.tables.locations import location
from spark_sink.tables.spark_sql import listed
from spark_sink.tables.table_properties import LAYOUT_PROPERTY, layout_from, recorded

# A table keeps these features in its protocol, even if they are disabled, so readers would still have to support them.
_STAYS = frozenset({Feature.COLUMN_MAPPING, Feature.DELETION_VECTORS})


class DeltaRelayout:
    """Gives the Delta tables in a warehouse other layouts."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark
        self._warehouse = warehouse

    def __call__(self, name: str, layout: FileLayout) -> None:
        """Change a table's layout. If the files change at all, the rows are rewritten in one commit.

        The first commit records that a change has begun, so an interrupted change is repeated, even if the
        configuration has changed since.

        Raises:
            Refused: the table cannot have this layout.
        """
        path = location(self._warehouse, name)
        table = DeltaTable(path)
        stored, shape = layout_from(table.metadata().configuration), shape_of(table)
        check_layout(layout, shape, Format.DELTA)
        _check_features(stored, layout)
        parted_by = table.metadata().partition_columns
        # Spark rejects statistics for a partition column, whether it is one before or after the change.
        before = tuple(Partition(Transform.IDENTITY, column) for column in parted_by)
        both = FileLayout(layout.partition + before, cluster=layout.cluster)
        enabled = {**_disabled(stored, layout), **feature_properties(layout)}
        enabled[LAYOUT_PROPERTY] = recorded(stored.while_changing_to(layout))
        self._set(path, {STATISTICS_PROPERTY: statistics_columns(shape, both), **enabled})
        if parted_by != layout.parted_by:
            rows = self._spark.read.format("delta").load(path).write.format("delta").mode("overwrite")
            # Spark would otherwise write one file for each task and partition.
            options = {"overwriteSchema": "true", "partitionOverwriteMode": "static", "optimizeWrite": "true"}
            rows.options(**options).partitionBy(*layout.parted_by).save(path)
        self._set(path, {STATISTICS_PROPERTY: statistics_columns(shape, layout)})
        # An interrupted change has already recorded the columns, but the table may not have them yet.
        if layout.cluster and (stored.changing or layout.cluster != stored.cluster):
            self._spark.sql(f"ALTER TABLE {quoted(path)} {placed(layout)}")
            self._spark.sql(f"OPTIMIZE {quoted(path)} FULL")
        self._set(path, {LAYOUT_PROPERTY: recorded(layout)})

    def _set(self, path: str, properties: Mapping[str, str]) -> None:
        self._spark.sql(f"ALTER TABLE {quoted(path)} SET TBLPROPERTIES ({listed(properties)})")


def _check_features(stored: FileLayout, layout: FileLayout) -> None:
    lost: list[str] = [name for name in stored.features if name in _STAYS and name not in layout.features]
    lost += ["cluster"] * bool(stored.cluster and not layout.cluster)
    if lost:
        raise Refused(
            Reason.TABLE_REFUSED,
            f"a Delta table keeps {', '.join(lost)} in its protocol, so readers would still have to support it. Give "
            "the table another name in tables.rename, and rebuild it under that name",
        )


def _disabled(stored: FileLayout, layout: FileLayout) -> dict[str, str]:
    """Return the properties that disable the features that the table no longer uses."""
    gone = tuple(name for name in stored.features if name not in layout.features)
    return dict.fromkeys(feature_properties(FileLayout(features=gone)), "false")
