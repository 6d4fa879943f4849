"""Erase rows of Iceberg tables, and everything that only earlier snapshots need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyiceberg.table import Table
from pyspark.sql import SparkSession

from spark_sink.errors import FatalError
from spark_sink.events.erased_keys import RowKey
from spark_sink.schema.evolution import TableShape
from spark_sink.spark.session import session_settings, sibling
from spark_sink.tables.erasure import delete_rows
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
from spark_sink.tables.iceberg.catalogs import TableCatalog, quoted
from spark_sink.tables.iceberg.maintenance import IcebergMaintenance
from spark_sink.tables.iceberg.open_table import MARKERS_PROPERTY, markers_of
from spark_sink.tables.iceberg.spark import SUMMARY
from spark_sink.tables.iceberg.spark_catalog import java_table

# With these properties, a commit deletes the metadata files of all commits before the last one.
_FORGET = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}

_MANIFEST_SIZE = "commit.manifest.target-size-bytes"

# The values that these properties had before, as JSON.
_BEFORE = "cdc.before_erasing"


class IcebergErasure:
    """Erases rows of the Iceberg tables in a catalog, through Spark."""

    def __init__(self, spark: SparkSession, catalog: TableCatalog, traits: CatalogTraits) -> None:
        self._spark = sibling(spark, catalog.spark)
        self._catalog = catalog
        self._traits = traits

    def erase(self, name: str, shape: TableShape, key: RowKey, properties: Mapping[str, str]) -> int:
        table, loaded = quoted(self._catalog, name), self._load(name)
        if not self._traits.can_expire:
            raise FatalError("its catalog does not allow snapshot expiry, so the row would stay in earlier snapshots")
        if properties:
            self._set(name, properties)
        markers = json.dumps(markers_of(loaded.metadata))
        with session_settings(self._spark, {SUMMARY + MARKERS_PROPERTY: markers}):
            count = delete_rows(self._spark, table, self._spark.table(table), shape, key)
        # Merge-on-read leaves the rows in their files.
        rewrite = self._actions.rewriteDataFiles(self._table(name)).snapshotProperty(MARKERS_PROPERTY, markers)
        rewrite.option("delete-file-threshold", "1").option("remove-dangling-deletes", "true").execute()
        return count

    def purge(self, name: str) -> int:
        changed = {**_FORGET, **self._manifest_size(name)}
        present = self._load(name).properties
        before = {property: present.get(property) for property in (*_FORGET, _MANIFEST_SIZE)}
        # An earlier attempt may have been interrupted.
        before = json.loads(present.get(_BEFORE, "null")) or before
        self._set(name, {**changed, _BEFORE: json.dumps(before)})
        try:
            markers = json.dumps(markers_of(self._load(name).metadata))
            # A manifest also lists the files that its commit removed, with bounds of their values.
            self._actions.rewriteManifests(self._table(name)).snapshotProperty(MARKERS_PROPERTY, markers).execute()
            return IcebergMaintenance(self._catalog, self._traits, self._spark).purge(name)
        finally:
            self._set(name, {**before, _BEFORE: None})

    def _manifest_size(self, name: str) -> dict[str, str]:
        """Return the property that makes Iceberg rewrite even a single manifest, by splitting it into two."""
        table = self._load(name)
        snapshot = table.current_snapshot()
        sizes: dict[str, list[int]] = {}
        for manifest in snapshot.manifests(table.io) if snapshot is not None else ():
            sizes.setdefault(manifest.content.name, []).append(manifest.manifest_length)
        single = [size for (size, *others) in sizes.values() if not others]
        return {_MANIFEST_SIZE: str(max(single) // 2 + 1)} if single else {}

    def _load(self, name: str) -> Table:
        table = self._catalog.load(name)
        if table is None:
            raise FatalError(f"table {name!r} does not exist")
        return table

    @property
    def _actions(self) -> Any:
        java: Any = self._spark._jvm
        return java.org.apache.iceberg.spark.actions.SparkActions.get(self._spark._jsparkSession)

    def _table(self, name: str) -> Any:
        return java_table(self._spark, self._catalog, name)

    def _set(self, name: str, properties: Mapping[str, str | None]) -> None:
        change = self._table(name).updateProperties()
        for property, value in properties.items():
            change = change.remove(property) if value is None else change.set(property, value)
        change.commit()
