"""A lake of Iceberg tables, and a database for catalogs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from dev.iceberg import postgres
from dev.iceberg.postgres import Postgres
from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType, IcebergCatalog
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.table_spec import Format
from tests.spark_sink.changes import schema_of
from tests.spark_sink.lake import MergingLake

ICEBERG = TableRules(formats={"*": Format.ICEBERG})


@pytest.fixture
def lake(merging_lake: MergingLake) -> MergingLake:
    """A lake whose tables are Iceberg tables written by Spark. The schema of orders is known."""
    merging_lake.use(ICEBERG)
    merging_lake.announce(schema_of({"id": "int64", "a": "string"}))
    return merging_lake


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A running PostgreSQL shared by all tests. Use your own catalogs."""
    if postgres.programs() is None:
        pytest.skip(f"{postgres.MISSING}; catalogs in a database are NOT SHOWN")
    with Postgres() as running:
        yield running


def jdbc_access(database: Postgres, warehouse: str, name: str, password: str = postgres.PASSWORD) -> CatalogAccess:
    """Return the configuration of a catalog in a database."""
    properties = {"jdbc.user": SecretStr(postgres.USER), "jdbc.password": SecretStr(password)}
    catalog = IcebergCatalog(type=CatalogType.JDBC, uri=database.jdbc, name=name, properties=properties)
    return catalog.access(warehouse, {}, {})
