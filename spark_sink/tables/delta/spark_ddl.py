"""Changes of Delta tables through Spark, on the driver: those that deltalake does not make, or not exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_sink.schema.evolution import TableColumn
from spark_sink.tables.delta.open_table import types_of
from spark_sink.tables.locations import location
from spark_sink.tables.spark_sql import listed, literal
from spark_sink.tables.table_properties import IDENTITY, MODE_PROPERTY, added_properties


class SparkDdl:
    """Alters the Delta tables of a warehouse."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark
        self._warehouse = warehouse

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        declared = ", ".join(f"`{column.name}` {column.type}" for column in columns)
        table = DeltaTable(location(self._warehouse, name))
        properties = added_properties(table.metadata().configuration, types_of(table), columns)
        if any(column.type == "timestamp_ntz" for column in columns):
            # Spark switches the feature on by itself when it creates a table, not when it adds a column.
            properties["delta.feature.timestampNtz"] = "supported"
        if properties:
            self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ({listed(properties)})")
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} ADD COLUMNS ({declared})")

    def replace(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str]) -> None:
        # By its path Spark replaces no table (CREATE OR REPLACE finds other properties, and refuses). The new ones come
        # last: without them the table counts as the old one, and is replaced again.
        path = location(self._warehouse, name)
        before = DeltaTable(path).metadata().configuration
        declared = ", ".join(f"`{column}` {sql}" for column, sql in columns.items())
        empty = self._spark.createDataFrame([], declared)
        empty.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
        old = [property for property in before if property.startswith("cdc.") and property not in IDENTITY]
        if MODE_PROPERTY not in properties:
            old.append(MODE_PROPERTY)
        if old:
            names = ", ".join(map(literal, old))
            self._spark.sql(f"ALTER TABLE {self._quoted(name)} UNSET TBLPROPERTIES IF EXISTS ({names})")
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ({listed(properties)})")

    def widen(self, name: str, columns: Sequence[TableColumn]) -> None:
        table = self._quoted(name)
        self._spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        for column in columns:
            self._spark.sql(f"ALTER TABLE {table} ALTER COLUMN `{column.name}` TYPE {column.type}")

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None:
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ({listed(properties)})")

    def _quoted(self, name: str) -> str:
        return quoted(location(self._warehouse, name))


def quoted(path: str) -> str:
    """A table by where it lies, in SQL."""
    ticked = path.replace("`", "``")
    return f"delta.`{ticked}`"
