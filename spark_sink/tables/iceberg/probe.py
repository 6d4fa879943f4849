"""Test at startup how a catalog behaves, by creating a table and dropping it again.

Some catalogs silently create a table with another version than requested, show only the newest snapshot, or do not
allow snapshots to expire.
"""

from __future__ import annotations

import json
import time
from typing import Any

import structlog
from pyspark.sql import SparkSession

from spark_sink.config.iceberg_catalog import CatalogAccess
from spark_sink.errors import ConfigError, FatalError
from spark_sink.schema.table_naming import RESERVED
from spark_sink.spark.failures import SPARK_ERRORS, cause
from spark_sink.spark.session import sibling
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits, TraitsMemory
from spark_sink.tables.iceberg.catalogs import in_sql, quoted
from spark_sink.tables.iceberg.open_table import MARKERS_PROPERTY, markers_of
from spark_sink.tables.iceberg.served_catalog import ServedCatalog
from spark_sink.tables.iceberg.spark_catalog import java_table

log = structlog.get_logger()

# The format versions, newest first. The sink does not support row changes in any other version.
_VERSIONS = (3, 2)

_APP = "probe"

# After this time, the next start tests the catalog again, because it may have been upgraded.
_BELIEVED_SECONDS = 86_400.0

_NO_TABLE = "Check tables.iceberg_catalog, and check that its user may create namespaces and tables"
_OF_CLASSES = ("NoClassDefFoundError", "ClassNotFoundException")
_NO_CLASS = (
    "None of Spark's jars has that class: if the catalog uses Iceberg's S3FileIO for its tables, put the "
    "iceberg-aws-bundle for your Iceberg version next to iceberg-spark-runtime"
)


def catalog_traits(spark: SparkSession, warehouse: str, access: CatalogAccess, *, again: bool = False) -> CatalogTraits:
    """Return a catalog's traits, and log how they differ from the traits that the sink prefers. The catalog is tested
    only if its traits are unknown, or if `again` is set.

    Raises:
        ConfigError: the catalog loses properties that the sink relies on.
        FatalError: the catalog does not respond, or cannot create tables.
    """
    memory = TraitsMemory(warehouse, access)
    traits = None if again else memory.recall(_BELIEVED_SECONDS)
    if traits is None:
        traits = _Probe(spark, access, f"{RESERVED}.probe_{memory.id}").ask()
        memory.keep(traits)
    log.info("iceberg catalog", catalog=access.address, format_version=traits.format_version)
    if traits.format_version != _VERSIONS[0]:
        log.warning("iceberg tables use an older format version", catalog=access.address, version=traits.format_version)
    if not traits.keeps_snapshots:
        why = "it only shows the newest snapshot, so cuts, sweeps by time and reads of old versions find nothing"
        log.warning("iceberg catalog does not keep old versions", catalog=access.address, why=why)
    if not traits.can_expire:
        why = "it does not allow snapshot expiry; the catalog's operator must remove old snapshots and their files"
        log.warning("old files of iceberg tables will not be removed", catalog=access.address, why=why)
    return traits


class _Probe:
    def __init__(self, spark: SparkSession, access: CatalogAccess, name: str) -> None:
        self._session = sibling(spark, access.spark)
        self._address = access.address
        self._catalog = ServedCatalog(access)
        self._name = name
        self._quoted = quoted(self._catalog, name)

    def ask(self) -> CatalogTraits:
        try:
            for namespace in self._catalog.namespaces(self._name):
                self._session.sql(f"CREATE NAMESPACE IF NOT EXISTS {in_sql(namespace)}")
            self._drop()  # left over from a start that was killed
            self._create()
            try:
                return self._look()
            finally:
                self._drop()
        except SPARK_ERRORS as error:
            why = cause(str(error)) or type(error).__name__
            raise FatalError(
                f"the Iceberg catalog ({self._address}) does not let the sink create a table: {why}. "
                f"{(_NO_CLASS if why.endswith(_OF_CLASSES) else _NO_TABLE)}; the table was {self._quoted}"
            ) from error

    def _create(self) -> None:
        for version in _VERSIONS:
            properties = f"TBLPROPERTIES ('format-version' = '{version}')"
            try:
                self._session.sql(f"CREATE TABLE {self._quoted} (probed int) USING iceberg {properties}")
            except SPARK_ERRORS:
                # If the table exists nevertheless, the failure has a cause other than the version.
                if version == _VERSIONS[-1] or self._catalog.exists(self._name):
                    raise
            else:
                return

    def _look(self) -> CatalogTraits:
        table = java_table(self._session, self._catalog, self._name)
        for version in range(2):
            append = table.newAppend()
            append.set(MARKERS_PROPERTY, json.dumps({_APP: version}))
            append.commit()
        found = self._load().metadata
        if markers_of(found) != {_APP: 1}:
            raise ConfigError(
                f"the Iceberg catalog ({self._address}) loses commit properties. After a crash, the sink needs them "
                "to find out what it has already written, so batches would be written twice. Use another catalog"
            )
        return CatalogTraits(found.format_version, len(found.snapshots) > 1, self._expires(table))

    def _expires(self, table: Any) -> bool:
        later = int(time.time() * 1000) + 60_000
        try:
            table.expireSnapshots().expireOlderThan(later).retainLast(1).commit()
        except SPARK_ERRORS as error:
            log.info("iceberg catalog does not allow snapshot expiry", why=cause(str(error)))
            return False
        return len(self._load().metadata.snapshots) == 1

    def _load(self) -> Any:
        table = self._catalog.load(self._name)
        if table is None:
            raise FatalError(
                f"the Iceberg catalog ({self._address}) does not find {self._quoted}, which was created there"
            )
        return table

    def _drop(self) -> None:
        if not self._catalog.exists(self._name):
            return
        try:
            self._session.sql(f"DROP TABLE {self._quoted} PURGE")
        except SPARK_ERRORS:
            self._session.sql(f"DROP TABLE {self._quoted}")  # its few files remain
