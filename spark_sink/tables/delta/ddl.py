"""Delta tables from the driver, through Spark: create, add columns. Spark writes what every reader understands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from spark_sink.events import quarantine
from spark_sink.schema.column_types import has_statistics
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_spec import Mode
from spark_sink.spark_session import hadoop_folder
from spark_sink.tables.delta.open_table import (
    KEY_PROPERTY,
    MODE_PROPERTY,
    REMEMBERED,
    SOURCE_PROPERTY,
    TABLE_PROPERTY,
    location,
)
from spark_sink.tables.meta_columns import (
    OWN_COLUMNS,
    POS,
)

# Delta keeps statistics of so many columns by default; more make the log large and help nobody.
MAX_STATISTICS = 32

# Names that need no quotes in the property that lists the columns with statistics: its two readers quote differently.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class DeltaDdl:
    """Creates and widens the Delta tables of a warehouse."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark
        self._warehouse = warehouse

    def create(self, name: str, shape: TableShape) -> str:
        present = self._spelled(name)
        if present is not None and present != name:
            return present
        self._create(name, {**shape.types, **OWN_COLUMNS[shape.mode]}, table_properties(shape))
        return name

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        declared = ", ".join(f"`{column.name}` {column.type}" for column in columns)
        # Before the columns: a column of which the table does not tell the source would be another column.
        properties = source_properties(columns)
        if any(column.type == "timestamp_ntz" for column in columns):
            # Spark switches the feature on by itself when it creates a table, not when it adds a column.
            properties["delta.feature.timestampNtz"] = "supported"
        if properties:
            self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ({_listed(properties)})")
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} ADD COLUMNS ({declared})")

    def widen(self, name: str, columns: Sequence[TableColumn]) -> None:
        table = self._quoted(name)
        self._spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        for column in columns:
            self._spark.sql(f"ALTER TABLE {table} ALTER COLUMN `{column.name}` TYPE {column.type}")

    def create_quarantine(self) -> None:
        self._create(quarantine.NAME, quarantine.COLUMNS, quarantine_properties())

    def _create(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str]) -> None:
        declared = ", ".join(f"`{column}` {sql}" for column, sql in columns.items())
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self._quoted(name)} ({declared}) USING delta "
            f"TBLPROPERTIES ({_listed(properties)})"
        )

    def _quoted(self, name: str) -> str:
        return quoted(location(self._warehouse, name))

    def _spelled(self, name: str) -> str | None:
        """The table that is there under this name, in whatever case; None when there is none."""
        files, root = hadoop_folder(self._spark, self._warehouse)
        found = [(root, "")]
        for folder in name.split("."):
            inside = [
                (status.getPath(), f"{spelled}.{status.getPath().getName()}" if spelled else status.getPath().getName())
                for path, spelled in found
                if files.exists(path)
                for status in files.listStatus(path)
            ]
            found = [(path, spelled) for path, spelled in inside if path.getName().lower() == folder.lower()]
        tables = [spelled for path, spelled in found if files.exists(path.suffix("/_delta_log"))]
        return name if name in tables else next(iter(tables), None)


# Deletion vectors could not be read back where rows are looked up.
_FIXED = {"delta.enableDeletionVectors": "false", **REMEMBERED}


def table_properties(shape: TableShape) -> dict[str, str]:
    """Return the properties of a new table: what it is, and which of its columns get statistics."""
    # The key first: filters on it are what statistics help.
    by_use = sorted(shape.columns, key=lambda column: column.name not in shape.key)
    useful = [c.name for c in by_use if has_statistics(c.type) and _PLAIN_NAME.fullmatch(c.name)]
    if shape.mode == Mode.CHANGELOG:
        useful.insert(0, POS)  # by which events are looked up
    return {
        TABLE_PROPERTY: json.dumps(shape.table),
        KEY_PROPERTY: json.dumps(shape.key),
        **({} if shape.mode == Mode.MIRROR else {MODE_PROPERTY: shape.mode.value}),
        **source_properties(shape.columns),
        "delta.dataSkippingStatsColumns": ",".join(useful[:MAX_STATISTICS]) or next(iter(OWN_COLUMNS[shape.mode])),
        **_FIXED,
    }


def quarantine_properties() -> dict[str, str]:
    """Return the properties of the quarantine table."""
    statistics = ",".join(n for n, sql in quarantine.COLUMNS.items() if has_statistics(sql) and n != "detail")
    return {"delta.dataSkippingStatsColumns": statistics, **_FIXED}


def source_properties(columns: Sequence[TableColumn]) -> dict[str, str]:
    """Return the properties that tell what the source calls columns which are named otherwise."""
    return {SOURCE_PROPERTY + column.name: column.source for column in columns if column.source is not None}


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())


def quoted(path: str) -> str:
    """A table by where it lies, in SQL."""
    ticked = path.replace("`", "``")
    return f"delta.`{ticked}`"


def literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
