"""Use a catalog on a server: a REST catalog, a database, a metastore, or any other one that both clients support."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.rest import Endpoints, RestCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType
from spark_sink.errors import FatalError, Reason, Refused
from spark_sink.spark.foreign_errors import reason

# Hive databases cannot be nested.
_OF_HIVE = re.compile(r"([A-Za-z0-9_]+\.)?[A-Za-z0-9_]+")

# The namespace for tables whose names have no dot, because catalogs have no tables outside a namespace.
_DEFAULT = "default"

# The timeout for each response. A slower server counts as unavailable.
_SECONDS = 60.0

# Requests to a restarting server are retried for about 15 s. Requests that change something are sent only once.
_RETRIES = Retry(
    total=6,
    backoff_factor=0.25,
    status_forcelist=(502, 503, 504),
    allowed_methods=("GET", "HEAD"),
    raise_on_status=False,
)


class ServedCatalog:
    """The tables in a catalog. This object is sent to the workers. Each process that uses it connects to the
    catalog.
    """

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
            raise Refused(
                Reason.TABLE_REFUSED,
                f"a Hive metastore does not accept the table name {name}: names can contain the letters a to z, "
                "digits, _, and at most one dot. Rename the table with tables.name or tables.rename, or exclude it "
                "with "
                "tables.exclude, and restart the sink",
            )
        path = self.path(name)
        return [path[:parts] for parts in range(2, len(path))]

    def reach(self) -> None:
        with _asking(self._access):
            self._catalog.list_namespaces()

    def server(self) -> str | None:
        """Return the product and the version of the server, or None if it does not report them."""
        with suppress(Exception):  # the version is only information, and a server may not answer such a request
            return _server(self._catalog, self._access.type)
        return None

    @property
    def _catalog(self) -> Catalog:
        return _connected(self._access.type, self._access.name, frozenset(self._access.reader.items()))

    @staticmethod
    def _identifier(name: str) -> tuple[str, ...]:
        parts = tuple(name.split("."))
        return parts if len(parts) > 1 else (_DEFAULT, *parts)


@contextmanager
def _asking(access: CatalogAccess) -> Iterator[None]:
    """Convert errors from pyiceberg and its clients to FatalError. The first line of such an error contains addresses,
    users and tables, but no secrets.
    """
    try:
        yield
    except FatalError:
        raise
    except Exception as error:
        raise FatalError(
            f"a request to the Iceberg catalog ({access.address}) failed: {type(error).__name__}: {reason(error)}. "
            "Check tables.iceberg_catalog, then restart the sink to continue"
        ) from None


def _server(catalog: Any, type: CatalogType) -> str | None:
    match type:
        case CatalogType.REST:
            answer = catalog._session.get(catalog.url(Endpoints.get_config, prefixed=False))
            return str(answer.headers["Server"])
        case CatalogType.JDBC:
            with catalog.engine.connect() as connection:
                version = connection.exec_driver_sql("SHOW server_version").scalar()
            return f"PostgreSQL {version}"
        case CatalogType.HIVE:
            with catalog._client as client:
                return f"Hive metastore {client.getVersion()}"
        case CatalogType.OTHER:
            return None


@lru_cache(maxsize=4)
def _connected(type: CatalogType, name: str, properties: frozenset[tuple[str, str]]) -> Catalog:
    """Return the connection that all tables in a process share."""
    given = dict(properties)
    match type:
        case CatalogType.REST:
            return _Rest(name, **given)
        case CatalogType.JDBC:
            # Imported here because it needs SQLAlchemy.
            from spark_sink.tables.iceberg.jdbc_catalog import JdbcCatalog

            return JdbcCatalog(name, **given)
        case CatalogType.HIVE:
            # Imported here because it needs Thrift.
            from spark_sink.tables.iceberg.hive_catalog import MetastoreCatalog

            return MetastoreCatalog(name, **given)
        case CatalogType.OTHER:
            return load_catalog(name, **given)


class _Rest(RestCatalog):
    """A client with timeouts. The client in pyiceberg waits forever for a server that hangs."""

    def _config_headers(self, session: Session) -> None:
        # The headers are set first when a session is prepared, and the next step already requests a token.
        super()._config_headers(session)
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Patient(max_retries=_RETRIES))


class _Patient(HTTPAdapter):
    """Sends requests with a timeout."""

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        options["timeout"] = options.get("timeout") or _SECONDS
        return super().send(request, *args, **options)
