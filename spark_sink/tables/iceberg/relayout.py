"""Give an existing Iceberg table another layout, through Iceberg's API in Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyiceberg.table.metadata import TableMetadata
from pyspark.sql import SparkSession

from spark_sink.errors import Reason, Refused
from spark_sink.schema.layout import FileLayout, Partition, Transform, check_layout
from spark_sink.schema.table_spec import Format
from spark_sink.spark.session import sibling
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
from spark_sink.tables.iceberg.catalogs import TableCatalog
from spark_sink.tables.iceberg.file_layout import (
    FILE_SIZE,
    check_format_version,
    partition_in,
    partition_of,
    sort_by,
    write_properties,
)
from spark_sink.tables.iceberg.open_table import MARKERS_PROPERTY, markers_of, shape_of
from spark_sink.tables.iceberg.spark_catalog import java_table
from spark_sink.tables.table_properties import LAYOUT_PROPERTY, layout_from, recorded


class IcebergRelayout:
    """Gives the Iceberg tables in a catalog other layouts."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: TableCatalog,
        traits: CatalogTraits,
        buckets: Mapping[str, int],
    ) -> None:
        self._spark = sibling(spark, catalog.spark)
        self._catalog = catalog
        self._traits = traits
        self._buckets = buckets

    def __call__(self, name: str, layout: FileLayout) -> None:
        """Change a table's layout, and rewrite its rows in one commit.

        Properties, partitions and sort order change in one commit, before the rows do. This commit also records that a
        change has begun. An interrupted change is therefore repeated, even if the configuration has changed since.

        Raises:
            Refused: the table cannot have this layout.
        """
        loaded = self._catalog.load(name)
        if loaded is None:
            raise Refused(Reason.TABLE_GONE, f"the table {name} no longer exists")
        metadata = loaded.metadata
        shape = shape_of(metadata)
        check_layout(layout, shape, Format.ICEBERG)
        properties = write_properties(layout, self._traits.format_version)
        check_format_version(metadata.format_version, layout)
        if layout.format_version is None:
            del properties["format-version"]  # keep the table's version
        properties[LAYOUT_PROPERTY] = recorded(layout_from(metadata.properties).while_changing_to(layout))
        table = java_table(self._spark, self._catalog, name)
        transaction = table.newTransaction()
        change = transaction.updateProperties()
        for property, value in properties.items():
            change = change.set(property, value)
        (change if FILE_SIZE in properties else change.remove(FILE_SIZE)).commit()
        self._repartition(transaction, metadata, partition_of(name, shape, layout, self._buckets))
        sort_by(self._spark, transaction, layout.sort)
        transaction.commitTransaction()
        table.refresh()
        self._rewrite(table, metadata, layout)
        table.updateProperties().set(LAYOUT_PROPERTY, recorded(layout)).commit()

    def _repartition(self, table: Any, metadata: TableMetadata, wanted: tuple[Partition, ...]) -> None:
        present = partition_in(metadata)
        change = table.updateSpec()
        for field, part in present.items():
            if part not in wanted:
                change = change.removeField(field)
        for part in wanted:
            if part not in present.values():
                change = change.addField(self._term(part))
        change.commit()

    def _term(self, part: Partition) -> Any:
        expressions: Any = self._iceberg.expressions.Expressions
        match part.transform:
            case Transform.IDENTITY:
                return expressions.ref(part.column)
            case Transform.BUCKET:
                return expressions.bucket(part.column, part.buckets)
            case Transform.DAY:
                return expressions.day(part.column)
            case Transform.MONTH:
                return expressions.month(part.column)

    def _rewrite(self, table: Any, metadata: TableMetadata, layout: FileLayout) -> None:
        if metadata.current_snapshot() is None:
            return
        actions = self._iceberg.spark.actions.SparkActions.get(self._spark._jsparkSession)
        rewrite = actions.rewriteDataFiles(table)
        rewrite.snapshotProperty(MARKERS_PROPERTY, json.dumps(markers_of(metadata)))
        # One group of files at a time leaves the other cores to the batches of other tables.
        for option in ("rewrite-all", "remove-dangling-deletes"):
            rewrite.option(option, "true")
        rewrite.option("max-concurrent-file-group-rewrites", "1")
        (rewrite.sort() if layout.sort else rewrite).execute()

    @property
    def _iceberg(self) -> Any:
        java: Any = self._spark._jvm
        return java.org.apache.iceberg
