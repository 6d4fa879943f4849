"""Represent Iceberg tables as objects in Iceberg's own Java API."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_sink.tables.iceberg.catalogs import TableCatalog, quoted


def java_table(session: SparkSession, catalog: TableCatalog, name: str) -> Any:
    """Return a table as an object in Iceberg's own API."""
    return _active(session).loadIcebergTable(session._jsparkSession, quoted(catalog, name))


def java_catalog(session: SparkSession, name: str) -> Any:
    """Return a catalog, by its name in Spark, as an object in Iceberg's own API."""
    return _active(session).loadIcebergCatalog(session._jsparkSession, name)


def _active(session: SparkSession) -> Any:
    """Return Iceberg's helpers for a session."""
    java: Any = session._jvm
    # Iceberg finds the catalog through the thread's active session, which otherwise only statements set.
    java.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    return java.org.apache.iceberg.spark.Spark3Util
