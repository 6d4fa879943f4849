"""Metrics of the files that merges write without Spark: queries find all rows, and statements delete no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_sink.config.iceberg_catalog import FOLDERS
from spark_sink.spark.session import sibling
from spark_sink.tables.changes import Marker
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
from spark_sink.tables.iceberg.catalogs import FolderCatalog
from spark_sink.tables.iceberg.spark import IcebergInSpark
from spark_sink.tables.spark_operations import Merge
from spark_sink.tables.staging import Staging

TABLE = f"`{FOLDERS}`.`s`.`t`"
PROPERTIES = {"format-version": "3", "write.merge.mode": "merge-on-read"}


@pytest.fixture
def catalog(tmp_path: Path) -> FolderCatalog:
    return FolderCatalog(str(tmp_path))


@pytest.fixture
def session(spark: SparkSession, catalog: FolderCatalog) -> SparkSession:
    return sibling(spark, catalog.spark)


def _create(session: SparkSession, columns: str, properties: Mapping[str, str]) -> None:
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in {**PROPERTIES, **properties}.items())
    session.sql(f"CREATE TABLE {TABLE} ({columns}) USING iceberg TBLPROPERTIES ({listed})")


def _merge(
    session: SparkSession, catalog: FolderCatalog, rows: pa.Table, types: Mapping[str, str], marker: int = 1
) -> None:
    staging = Staging(catalog.warehouse, "test")
    path, marked = staging.put("s.t", rows), Marker("app", marker)
    order = Merge(path, dict(types), (), ("id",), {}, inserts_only=False, version=0, marker=marked)
    IcebergInSpark(catalog, CatalogTraits, staging).table(session, "s.t").do(order)


def test_nan(session: SparkSession, catalog: FolderCatalog) -> None:
    """NaN is greater than any other number. Metrics without the number of NaN values would hide it."""
    _create(session, "id BIGINT, x DOUBLE, theirs FLOAT", {})
    session.sql(f"INSERT INTO {TABLE} VALUES (1, 1, 1), (2, 1, 1), (3, 1, float('nan')), (4, 1, 1)")
    types = {"id": "bigint", "x": "double"}
    _merge(session, catalog, pa.table({"id": [1, 2], "x": [1.0, float("nan")]}), types)
    session.sql(f"DELETE FROM {TABLE} WHERE x < 10 AND id < 3")
    assert [2, 3, 4] == sorted(row.id for row in session.table(TABLE).collect())
    _merge(session, catalog, pa.table({"id": [3, 4], "x": [1.0, 1.0]}), types, marker=2)
    session.sql(f"DELETE FROM {TABLE} WHERE theirs < 10")
    assert [3] == [row.id for row in session.table(TABLE).collect()]


def test_long_texts_after_many_rows(session: SparkSession, catalog: FolderCatalog) -> None:
    """By default, Arrow writes 1048576 rows into a row group. It omits the bounds of a group with a long text."""
    _create(session, "id BIGINT, a STRING", {})
    many = 1 << 20
    rows = pa.table({"id": range(many + 2), "a": [*["a"] * many, "z", "x" * 5000]})
    _merge(session, catalog, rows, {"id": "bigint", "a": "string"})
    assert [many] == [row.id for row in session.sql(f"SELECT id FROM {TABLE} WHERE a = 'z'").collect()]
