"""A catalog that somebody serves: a server with the REST protocol, a database, a metastore, or whatever else both
clients know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType
from spark_sink.errors import ConfigError, FatalError
from spark_sink.spark.foreign_errors import reason

# Hive's databases have no databases in them.
_OF_HIVE = re.compile(r"([A-Za-z0-9_]+\.)?[A-Za-z0-9_]+")

# The namespace of a table whose name has no dot: a catalog keeps none without.
_DEFAULT = "default"

# For each answer; a server that takes longer is away.
_SECONDS = 60.0

# A server that is restarted is asked again for some 15 s. Whatever changes something is asked once.
_RETRIES = Retry(
    total=6,
    backoff_factor=0.25,
    status_forcelist=(502, 503, 504),
    allowed_methods=("GET", "HEAD"),
    raise_on_status=False,
)


class ServedCatalog:
    """The tables of a catalog; it travels to the workers, and connects where it is used."""

    def __init__(self, access: CatalogAccess) -> None:
        self._access = access

    @property
    def spark(self) -> Mapping[str, str]:
        return self._access.spark

    def load(self, name: str) -> Table | None:
        with _asking(self._access):
            try:
                return self._catalog.load_table(self._identifier(name))
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def exists(self, name: str) -> bool:
        return self.load(name) is not None

    def spelled(self, name: str) -> str | None:
        if self.exists(name):
            return name
        *spaces, table = self._identifier(name)
        with _asking(self._access):
            found: list[tuple[str, ...]] = [()]
            for space in spaces:
                children = [child for parent in found for child in self._catalog.list_namespaces(parent)]
                found = [child for child in children if child[-1].lower() == space.lower()]
            listed = [one for space in found for one in self._catalog.list_tables(space)]
        parts = 1 + name.count(".")
        names = sorted(".".join(one[-parts:]) for one in listed if one[-1].lower() == table.lower())
        return next(iter(names), None)

    def path(self, name: str) -> tuple[str, ...]:
        return self._access.name, *self._identifier(name)

    def namespaces(self, name: str) -> list[tuple[str, ...]]:
        if self._access.type is CatalogType.HIVE and not _OF_HIVE.fullmatch(name):
            raise ConfigError(
                f"a Hive metastore takes no table {name}: names there are letters a to z, digits, _, and at most one "
                "dot. Give it another name with tables.name or tables.rename, or leave it out with tables.exclude"
            )
        path = self.path(name)
        return [path[:parts] for parts in range(2, len(path))]

    def reach(self) -> None:
        with _asking(self._access):
            self._catalog.list_namespaces()

    @property
    def _catalog(self) -> Catalog:
        return _connected(self._access.type, self._access.name, frozenset(self._access.reader.items()))

    @staticmethod
    def _identifier(name: str) -> tuple[str, ...]:
        parts = tuple(name.split("."))
        return parts if len(parts) > 1 else (_DEFAULT, *parts)


@contextmanager
def _asking(access: CatalogAccess) -> Iterator[None]:
    """Raise FatalError for what pyiceberg and its clients raise. None of them repeats a secret of ours in the first
    line of its message, which names addresses, users and tables."""
    try:
        yield
    except FatalError:
        raise
    except Exception as error:
        raise FatalError(
            f"the Iceberg catalog ({access.address}) does not answer as it should: {type(error).__name__}: "
            f"{reason(error)}. Check tables.iceberg_catalog; the next start goes on with what is there"
        ) from None


@lru_cache(maxsize=4)
def _connected(type: CatalogType, name: str, properties: frozenset[tuple[str, str]]) -> Catalog:
    """One connection for all tables of a process."""
    given = dict(properties)
    match type:
        case CatalogType.REST:
            return _Rest(name, **given)
        case CatalogType.JDBC:
            # Here, not above: it needs SQLAlchemy.
            from spark_sink.tables.iceberg.jdbc_catalog import JdbcCatalog

            return JdbcCatalog(name, **given)
        case CatalogType.HIVE:
            # Here, not above: it needs Thrift.
            from spark_sink.tables.iceberg.hive_catalog import MetastoreCatalog

            return MetastoreCatalog(name, **given)
        case CatalogType.OTHER:
            return load_catalog(name, **given)


class _Rest(RestCatalog):
    """pyiceberg's, which by itself waits for ever for a server that hangs."""

    def _config_headers(self, session: Session) -> None:
        # The first that is done with a session: what comes next asks for a token.
        super()._config_headers(session)
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Patient(max_retries=_RETRIES))


class _Patient(HTTPAdapter):
    """Sends requests with a bound of time."""

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        options["timeout"] = options.get("timeout") or _SECONDS
        return super().send(request, *args, **options)
