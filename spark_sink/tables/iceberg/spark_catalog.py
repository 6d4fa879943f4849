"""The catalog by which Spark knows the Iceberg tables of a warehouse: of folders, each the name of a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

CATALOG = "cdc_iceberg"


def settings(warehouse: str) -> Mapping[str, str]:
    """Return the settings of a session that knows them, and keeps none in memory: a table is what its folder says."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        # Metadata name all files by where they lie, so that it must not depend on who reads them.
        f"{catalog}.warehouse": warehouse if urlsplit(warehouse).scheme else str(Path(warehouse).absolute()),
        f"{catalog}.cache-enabled": "false",
    }


def java_table(session: SparkSession, name: str) -> Any:
    """Return a table as an object of Iceberg's own API."""
    java: Any = session._jvm
    # Iceberg finds the catalog by the session of the thread, and only statements set that.
    java.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    return java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, quoted(name))


def quoted(name: str) -> str:
    """A table in SQL, by its name in the lakehouse."""
    return ".".join(f"`{part}`" for part in (CATALOG, *name.split(".")))
