"""Make the changes to Delta tables that deltalake cannot make exactly, or at all. Spark makes these changes on
the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from spark_sink.schema.column_types import has_statistics
from spark_sink.schema.evolution import TableColumn
from spark_sink.schema.layout import FileLayout
from spark_sink.tables.delta.open_table import STATISTICS_PROPERTY, shape_of, types_of
from spark_sink.tables.locations import location
from spark_sink.tables.meta_columns import OWN_COLUMNS, POS
from spark_sink.tables.spark_sql import add_columns, declared, listed, literal
from spark_sink.tables.table_properties import IDENTITY, MODE_PROPERTY, added_properties


class SparkDdl:
    """Alters the Delta tables in a warehouse."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark
        self._warehouse = warehouse

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        table = DeltaTable(location(self._warehouse, name))
        present = types_of(table)
        properties = added_properties(table.metadata().configuration, present, columns)
        if any(column.type == "timestamp_ntz" for column in columns):
            # Spark enables this feature automatically when it creates a table, but not when it adds a column.
            properties["delta.feature.timestampNtz"] = "supported"
        if properties:
            self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ({listed(properties)})")
        add_columns(self._spark, self._quoted(name), list(present), columns)

    def create(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str], layout: FileLayout) -> None:
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self._quoted(name)} ({declared(columns)}) USING delta "
            f"{placed(layout)}TBLPROPERTIES ({listed(properties)})"
        )

    def replace(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str], layout: FileLayout) -> None:
        # Spark cannot replace a table that is addressed by its path, because CREATE OR REPLACE finds different
        # properties and fails. The new properties are set last. Until then, the table counts as the old table, and a
        # repeated call replaces it again.
        path = location(self._warehouse, name)
        before = DeltaTable(path).metadata().configuration
        if layout.partition:
            # Spark rejects partition columns that have statistics.
            self.set_properties(name, {STATISTICS_PROPERTY: POS})
        empty = self._spark.createDataFrame([], declared(columns))
        writer = empty.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.partitionBy(*layout.parted_by).save(path)
        old = [property for property in before if property.startswith("cdc.") and property not in IDENTITY]
        if MODE_PROPERTY not in properties:
            old.append(MODE_PROPERTY)
        if old:
            names = ", ".join(map(literal, old))
            self._spark.sql(f"ALTER TABLE {self._quoted(name)} UNSET TBLPROPERTIES IF EXISTS ({names})")
        if layout.cluster:
            self._spark.sql(f"ALTER TABLE {self._quoted(name)} {placed(layout)}")
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ({listed(properties)})")

    def widen(self, name: str, columns: Sequence[TableColumn], *, rewrites: bool = False) -> None:
        table = self._quoted(name)
        if rewrites:
            self._rewrite(name, columns)
            return
        self._spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        for column in columns:
            self._spark.sql(f"ALTER TABLE {table} ALTER COLUMN `{column.name}` TYPE {column.type}")

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None:
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ({listed(properties)})")

    def _rewrite(self, name: str, columns: Sequence[TableColumn]) -> None:
        """Write all rows again with wider types, in one commit.

        Delta's type widening would leave the files unchanged, but deltalake cannot write tables that use type widening.
        The table keeps its properties, transaction markers and features.
        """
        path = location(self._warehouse, name)
        table = DeltaTable(path)
        present = types_of(table)
        wider = {column.name: column.type for column in columns if present[column.name] != column.type}
        if not wider:
            return
        self._without_statistics(name, table, {column for column, sql in wider.items() if not has_statistics(sql)})
        rows = self._spark.table(self._quoted(name))
        cast = {column: col(f"`{column}`").cast(sql) for column, sql in wider.items()}
        writer = rows.withColumns(cast).write.format("delta").mode("overwrite")
        options = {"overwriteSchema": "true", "partitionOverwriteMode": "static"}
        writer.options(**options).partitionBy(*table.metadata().partition_columns).save(path)

    def _without_statistics(self, name: str, table: DeltaTable, columns: Set[str]) -> None:
        """Stop collecting the minimum and maximum for these columns: see `has_statistics`."""
        listed_columns = table.metadata().configuration.get(STATISTICS_PROPERTY)
        if listed_columns is None or columns.isdisjoint(listed_columns.split(",")):
            return
        kept = [column for column in listed_columns.split(",") if column not in columns]
        useful = ",".join(kept) or next(iter(OWN_COLUMNS[shape_of(table).mode]))
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ({listed({STATISTICS_PROPERTY: useful})})")

    def _quoted(self, name: str) -> str:
        return quoted(location(self._warehouse, name))


def placed(layout: FileLayout) -> str:
    """Return the clause that partitions or clusters a table."""
    named = ", ".join(f"`{column}`" for column in (*layout.parted_by, *layout.cluster))
    return f"{'CLUSTER BY' if layout.cluster else 'PARTITIONED BY'} ({named}) " if named else ""


def quoted(path: str) -> str:
    """Return the SQL for a table that is addressed by its location."""
    ticked = path.replace("`", "``")
    return f"delta.`{ticked}`"
