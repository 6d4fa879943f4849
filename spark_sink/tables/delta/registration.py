"""Register Delta tables in a Spark catalog: a Hive metastore, or the catalog that `spark.sql.catalog.NAME` defines."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_sink.errors import ConfigError
from spark_sink.spark.failures import SPARK_ERRORS
from spark_sink.spark.foreign_errors import reason
from spark_sink.spark.session import hadoop_folder
from spark_sink.tables.locations import location
from spark_sink.tables.registration import CatalogName, RegistrationError
from spark_sink.tables.spark_sql import literal

# Spark's own catalog. Unless it uses a Hive metastore, it loses its tables when the session ends.
SESSION_CATALOG = "spark_catalog"
_BEHIND = "spark.sql.catalogImplementation"


class SparkCatalog:
    """A catalog, identified by its name in Spark.

    Args:
        is_delta: returns whether the table with a given name is a Delta table. All other tables are in another catalog.

    Raises:
        ConfigError: the catalog would lose its tables when the session ends.
    """

    def __init__(self, spark: SparkSession, warehouse: str, catalog: str, is_delta: Callable[[str], bool]) -> None:
        if catalog == SESSION_CATALOG and spark.conf.get(_BEHIND) != "hive":
            raise ConfigError(
                f"catalog.name is {catalog}, whose tables only exist until the session ends. In spark.conf, set "
                f"{_BEHIND} to hive and set spark.hadoop.hive.metastore.uris, or use a catalog from "
                "spark.sql.catalog.*"
            )
        self._spark = spark
        self._warehouse = warehouse
        self._is_delta = is_delta
        self._catalog = catalog
        self._schemas: set[str] = set()

    def register(self, name: str) -> bool:
        if not self._is_delta(name):
            return False
        known = CatalogName.of(name)
        path = location(self._warehouse, name)
        schema = f"{_ticked(self._catalog)}.{_ticked(known.schema)}"
        table = f"{schema}.{_ticked(known.table)}"
        try:
            if known.schema not in self._schemas:
                self._spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                self._schemas.add(known.schema)
            if not self._spark.catalog.tableExists(table):
                self._spark.sql(f"CREATE TABLE {table} USING DELTA LOCATION {literal(path)}")
                return True
            found = self._spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["location"]
        except SPARK_ERRORS as error:
            raise RegistrationError(_told(error)) from None
        if _plain(found) != _plain(self._absolute(path)):
            raise RegistrationError(f"{known.schema}.{known.table} already exists with another location, {found}")
        return False

    def _absolute(self, path: str) -> str:
        files, there = hadoop_folder(self._spark, path)
        return str(files.makeQualified(there).toString())


def _ticked(name: str) -> str:
    ticked = name.replace("`", "``")
    return f"`{ticked}`"


def _plain(path: str) -> str:
    """Normalize a folder's path or URL, because it may be spelled in different ways."""
    return unquote(urlsplit(path)._replace(scheme="").geturl()).replace("//", "/").rstrip("/")


def _told(error: Exception) -> str:
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    # Spark's error name says nothing about the catalog behind it, for example that it is unavailable.
    if condition and not condition.startswith("_LEGACY_ERROR"):
        return condition
    return reason(error).removeprefix(f"[{condition}] ")
