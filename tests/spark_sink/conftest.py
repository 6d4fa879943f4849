"""A sink for each test, with or without Spark. All tests share one Spark session, and each test has its own tables."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from pydantic import SecretStr
from pyspark.sql import SparkSession

from dev.iceberg.rest_catalog import TOKEN, RestCatalogServer
from dev.jars import spark_jars
from dev.servers.small_spark import SMALL_SPARK
from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType, IcebergCatalog
from spark_sink.config.settings import Spark
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.table_spec import Format
from spark_sink.spark import session as spark_session
from tests.spark_sink.lake import Lake, MergingLake, SparkLake
from tests.spark_sink.local_iceberg import LocalIcebergLake


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session, created like the product's, with one core because starting Python workers is what costs time."""
    settings = Spark(
        master="local[1]",
        memory="2g",
        jars=tuple(map(str, spark_jars())),
        conf=SMALL_SPARK,
    )
    running = spark_session.build("tests", settings, str(tmp_path_factory.mktemp("warehouse")))
    yield running
    running.stop()


SPARK_MARKS = (
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # PySpark does not close its result sockets
)
"""Marks for a test that uses Spark. A parameter that gets the session by name needs them itself."""

# These tests measure or concern the engine, so they use Spark even where a test could do without.
ON_SPARK = frozenset({"BREADTH", "BROKEN", "DELTA_ENGINE"})


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A separate warehouse, with batches written without Spark."""
    if ON_SPARK & os.environ.keys():
        found: Lake = request.getfixturevalue("spark_lake")
        return found
    return Lake(tmp_path / "warehouse")


@pytest.fixture
def merging_lake(spark: SparkSession, tmp_path: Path) -> MergingLake:
    """A separate warehouse. Batches are written without Spark, except for the tables that Spark writes."""
    return MergingLake(spark, tmp_path / "warehouse")


@pytest.fixture
def spark_lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkLake]:
    """A separate warehouse, with batches written on Spark."""
    yield SparkLake(spark, tmp_path / "warehouse")
    # PySpark leaves its result sockets to the garbage collector. Collect them before the next test.
    gc.collect()


@pytest.fixture
def vectors_lake(merging_lake: MergingLake) -> MergingLake:
    """A warehouse of Delta tables with deletion vectors."""
    merging_lake.layouts = {"*": FileLayout.of({"features": ["deletion_vectors"]})}
    merging_lake.use(TableRules())
    return merging_lake


_ON_SPARK = "on Spark"


@pytest.fixture(params=["without Spark", _ON_SPARK])
def each_lake(request: pytest.FixtureRequest) -> Lake:
    """One lake without Spark and one on Spark, for tests that compare the two."""
    found: Lake = request.getfixturevalue("spark_lake" if request.param == _ON_SPARK else "lake")
    return found


DELTA, ICEBERG = "without Spark", "on Spark, Iceberg"
"""Parameters of `lake_of_format`."""

LOCAL_ICEBERG = "without Spark, Iceberg"


@pytest.fixture(params=[DELTA, ICEBERG], ids=["Delta Lake", "Iceberg"])
def lake_of_format(request: pytest.FixtureRequest) -> Lake:
    """A lake of Delta tables and one of Iceberg tables."""
    if request.param != ICEBERG:
        delta: Lake = request.getfixturevalue("lake")
        return delta
    return _of_iceberg_tables(request)


@pytest.fixture(params=[DELTA, LOCAL_ICEBERG, ICEBERG])
def each_lake_of_rows(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """Like `lake_of_format`, plus a lake of Iceberg tables without Spark."""
    if request.param == LOCAL_ICEBERG:
        return LocalIcebergLake(tmp_path / "warehouse")
    found: Lake = _of_iceberg_tables(request) if request.param == ICEBERG else request.getfixturevalue("lake")
    return found


@pytest.fixture(params=[DELTA, _ON_SPARK, ICEBERG])
def each_lake_of_format(request: pytest.FixtureRequest) -> Lake:
    """Like `each_lake`, plus a lake of Iceberg tables."""
    if request.param == ICEBERG:
        return _of_iceberg_tables(request)
    found: Lake = request.getfixturevalue("spark_lake" if request.param == _ON_SPARK else "lake")
    return found


def _of_iceberg_tables(request: pytest.FixtureRequest) -> Lake:
    iceberg: MergingLake = request.getfixturevalue("merging_lake")
    give_catalog(request, iceberg)
    iceberg.formats = {"*": Format.ICEBERG}
    iceberg.use(TableRules())
    return iceberg


def give_catalog(request: pytest.FixtureRequest, lake: Lake) -> None:
    """Keep Iceberg tables in folders. With ICEBERG_CATALOG=rest, use a separate catalog on a shared server instead."""
    if os.environ.get("ICEBERG_CATALOG") == "rest":
        lake.catalog_of = partial(_rest_catalog, request.getfixturevalue("rest_server"))
        lake.catalog = lake.catalog_of(lake.warehouse)


def _rest_catalog(server: RestCatalogServer, warehouse: Path) -> CatalogAccess:
    name = hashlib.sha256(str(warehouse).encode()).hexdigest()[:12]
    return rest_access(f"{server.url}/{name}")


def rest_access(url: str, properties: Mapping[str, str] | None = None) -> CatalogAccess:
    """Return the configuration of a REST catalog."""
    given = {name: SecretStr(value) for name, value in (properties or {"token": TOKEN}).items()}
    return IcebergCatalog(type=CatalogType.REST, uri=url, properties=given).access("/unused", {}, {})


@pytest.fixture(scope="session")
def rest_server() -> Iterator[RestCatalogServer]:
    """A running REST catalog of Iceberg tables, shared by all tests. Use your own tables or name."""
    with RestCatalogServer() as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses Spark."""
    for item in items:
        if isinstance(item, pytest.Function) and ("spark" in item.fixturenames or _on_spark(item)):
            for mark in SPARK_MARKS:
                item.add_marker(mark)


def _on_spark(item: pytest.Function) -> bool:
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(param in (_ON_SPARK, ICEBERG) for param in params if isinstance(param, str))
