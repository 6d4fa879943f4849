"""Catalogs of Iceberg tables that somebody serves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pydantic import SecretStr

from dev.iceberg import postgres
from dev.iceberg.postgres import Postgres
from dev.iceberg.rest_catalog import TOKEN, RestCatalogServer
from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType, IcebergCatalog


@pytest.fixture(scope="session")
def rest_server() -> Iterator[RestCatalogServer]:
    """A running catalog, one for all: give it tables of your own."""
    with RestCatalogServer() as running:
        yield running


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A running PostgreSQL, one for all: give it catalogs of your own."""
    if postgres.programs() is None:
        pytest.skip(f"{postgres.MISSING}; catalogs in a database are NOT SHOWN")
    with Postgres() as running:
        yield running


def rest_access(url: str, properties: Mapping[str, str] | None = None) -> CatalogAccess:
    """The way to such a server, as a configuration says it."""
    given = {name: SecretStr(value) for name, value in (properties or {"token": TOKEN}).items()}
    return IcebergCatalog(type=CatalogType.REST, uri=url, properties=given).access("/unused", {}, {})


def jdbc_access(database: Postgres, warehouse: str, name: str, password: str = postgres.PASSWORD) -> CatalogAccess:
    """The way to a catalog in a database."""
    properties = {"jdbc.user": SecretStr(postgres.USER), "jdbc.password": SecretStr(password)}
    catalog = IcebergCatalog(type=CatalogType.JDBC, uri=database.jdbc, name=name, properties=properties)
    return catalog.access(warehouse, {}, {})
