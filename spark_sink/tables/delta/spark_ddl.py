"""Changes of Delta tables through Spark, on the driver: those that deltalake does not make, or not exactly."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from spark_sink.schema.evolution import TableColumn
from spark_sink.tables.locations import location
from spark_sink.tables.spark_sql import listed
from spark_sink.tables.table_properties import source_properties


class SparkDdl:
    """Alters the Delta tables of a warehouse."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark
        self._warehouse = warehouse

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        declared = ", ".join(f"`{column.name}` {column.type}" for column in columns)
        # Before the columns: a column of which the table does not tell the source would be another column.
        properties = source_properties(columns)
        if any(column.type == "timestamp_ntz" for column in columns):
            # Spark switches the feature on by itself when it creates a table, not when it adds a column.
            properties["delta.feature.timestampNtz"] = "supported"
        if properties:
            self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ({listed(properties)})")
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} ADD COLUMNS ({declared})")

    def widen(self, name: str, columns: Sequence[TableColumn]) -> None:
        table = self._quoted(name)
        self._spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        for column in columns:
            self._spark.sql(f"ALTER TABLE {table} ALTER COLUMN `{column.name}` TYPE {column.type}")

    def _quoted(self, name: str) -> str:
        return quoted(location(self._warehouse, name))


def quoted(path: str) -> str:
    """A table by where it lies, in SQL."""
    ticked = path.replace("`", "``")
    return f"delta.`{ticked}`"
