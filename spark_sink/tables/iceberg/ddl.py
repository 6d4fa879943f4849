"""Create and change Iceberg tables on the driver, through Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from spark_sink.errors import Reason, Refused
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.layout import (
    NO_LAYOUT,
    NO_LAYOUTS,
    FileLayout,
    FileLayouts,
    layout_for,
    new_layout,
)
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.spark.failures import SPARK_ERRORS
from spark_sink.spark.session import sibling
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
from spark_sink.tables.iceberg.catalogs import TableCatalog, in_sql, quoted
from spark_sink.tables.iceberg.file_layout import (
    FILE_SIZE,
    check_format_version,
    partition_in_sql,
    partition_of,
    sort_by,
    write_properties,
)
from spark_sink.tables.iceberg.open_table import shape_of, types_of
from spark_sink.tables.iceberg.spark_catalog import java_table
from spark_sink.tables.meta_columns import POS, new_columns
from spark_sink.tables.spark_sql import add_columns, declared, listed, literal
from spark_sink.tables.table_properties import (
    IDENTITY,
    MODE_PROPERTY,
    added_properties,
    layout_property,
    missing_columns,
    shape_properties,
)

# Every commit writes a metadata file, and only the newest metadata files are kept.
_FIXED = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


# Events are looked up by position. All positions start with the same characters, so the statistics must keep the whole
# text.
_OF_CHANGELOGS = {f"write.metadata.metrics.column.{POS}": "full"}


class IcebergDdl:
    """Creates and changes the Iceberg tables in a catalog."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: TableCatalog,
        traits: Callable[[], CatalogTraits],
        buckets: Mapping[str, int],
        layouts: FileLayouts = NO_LAYOUTS,
    ) -> None:
        """`traits` returns the catalog's traits. They are known when the first table is created. `buckets` has the
        number of buckets of new tables, and `layouts` has their layouts. Both are keyed by table name or pattern.
        """
        self._traits = traits
        self._spark = sibling(spark, catalog.spark)
        self._catalog = catalog
        self._buckets = buckets
        self._layouts = layouts

    def create(self, name: str, shape: TableShape) -> str:
        present = self._catalog.spelled(name)
        if present is not None:
            return present
        for namespace in self._catalog.namespaces(name):
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {in_sql(namespace)}")
        self._create("CREATE TABLE IF NOT EXISTS", name, shape)
        if not self._catalog.exists(name):
            # The statement also does nothing if the catalog has a view with this name.
            raise Refused(
                Reason.TABLE_REFUSED,
                f"the catalog did not create the table {name}, probably because it has a view with this name. Rename "
                "the table with tables.name or tables.rename, or change tables.iceberg_catalog.views, and restart the "
                "sink",
            )
        return name

    def replace(self, name: str, shape: TableShape) -> str:
        present = self._catalog.spelled(name)
        table = None if present is None else self._catalog.load(present)
        if present is None or table is None:
            return self.create(name, shape)
        if shape_of(table.metadata).built != shape.built:
            # Iceberg keeps properties that the new table does not have. Properties that describe the old rows must not
            # apply to the new table.
            check_format_version(table.metadata.format_version, layout_for(present, self._layouts) or NO_LAYOUT)
            properties = table.metadata.properties
            described = [name for name in properties if name.startswith("cdc.") and name not in IDENTITY]
            old = [*described, *({FILE_SIZE} & properties.keys())]
            if old:
                names = ", ".join(map(literal, old))
                self._spark.sql(f"ALTER TABLE {quoted(self._catalog, present)} UNSET TBLPROPERTIES IF EXISTS ({names})")
            self._create("CREATE OR REPLACE TABLE", present, shape)
        return present

    def _create(self, statement: str, name: str, shape: TableShape) -> None:
        layout = new_layout(name, shape, Format.ICEBERG, self._layouts)
        properties = creation_properties(shape, self._traits().format_version, layout)
        parts = ", ".join(map(partition_in_sql, partition_of(name, shape, layout, self._buckets)))
        parted = f"PARTITIONED BY ({parts}) " if parts else ""
        self._spark.sql(
            f"{statement} {quoted(self._catalog, name)} ({declared(new_columns(shape))}) USING iceberg {parted}"
            f"TBLPROPERTIES ({listed(properties)})"
        )
        if layout.sort:
            sort_by(self._spark, java_table(self._spark, self._catalog, name), layout.sort)

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        table = self._catalog.load(name)
        present = {} if table is None else types_of(table.metadata)
        missing = missing_columns(name, present, columns)
        properties = added_properties({} if table is None else table.metadata.properties, present, columns)
        if properties:
            self._spark.sql(f"ALTER TABLE {quoted(self._catalog, name)} SET TBLPROPERTIES ({listed(properties)})")
        if missing:
            self._extend(quoted(self._catalog, name), list(present), missing)

    def _extend(self, table: str, present: Sequence[str], missing: Sequence[TableColumn]) -> None:
        try:
            add_columns(self._spark, table, present, missing)
        except SPARK_ERRORS:
            # By default, a Hive metastore compares the types of old and new columns by place, and then accepts new
            # columns only at the end. If the catalog has another problem, this statement fails as well.
            self._spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({declared({one.name: one.type for one in missing})})")

    def widen(self, name: str, columns: Sequence[TableColumn], *, rewrites: bool = False) -> None:
        """See `TableAlterations`. No file is rewritten, because an Iceberg table may have files with both types."""
        for column in columns:
            self._spark.sql(
                f"ALTER TABLE {quoted(self._catalog, name)} ALTER COLUMN `{column.name}` TYPE {column.type}"
            )

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None:
        self._spark.sql(f"ALTER TABLE {quoted(self._catalog, name)} SET TBLPROPERTIES ({listed(properties)})")


def creation_properties(shape: TableShape, format_version: int, layout: FileLayout = NO_LAYOUT) -> dict[str, str]:
    """Return the properties that a new table gets.

    Args:
        format_version: the newest format version that the catalog supports.

    Raises:
        Refused: the layout requests a newer format version.
    """
    properties = {
        **shape_properties(shape),
        **_FIXED,
        **write_properties(layout, format_version),
        **layout_property(layout),
        **(_OF_CHANGELOGS if shape.mode == Mode.CHANGELOG else {}),
    }
    if shape.built:
        # A mirror usually has no such property, but the old table may have had one.
        properties[MODE_PROPERTY] = shape.mode.value
    return properties
