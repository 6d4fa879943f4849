"""Find an Iceberg table by its name, in the same catalog from Spark and from pyiceberg.

Without a configured catalog, the folders in the warehouse serve as one, and the folder of a table is its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.io import load_file_io
from pyiceberg.table import StaticTable, Table

from spark_sink.config.iceberg_catalog import FOLDERS, CatalogAccess, whole_place
from spark_sink.tables.locations import location, spelled


class TableCatalog(Protocol):
    """A catalog. The object is sent to the workers."""

    @property
    def spark(self) -> Mapping[str, str]:
        """Return the settings of a session that knows this catalog and caches none of its tables."""

    def load(self, name: str) -> Table | None:
        """Return the current table, or None if it does not exist."""

    def exists(self, name: str) -> bool:
        """Return whether the table exists, no matter who created it."""

    def spelled(self, name: str) -> str | None:
        """Return the table's actual name, ignoring case, or None if there is no such table."""

    def reach(self) -> None:
        """Send a request to the catalog.

        Raises:
            FatalError: the catalog does not respond, or rejects the request.
        """

    def path(self, name: str) -> tuple[str, ...]:
        """Return the name of a table in SQL: catalog, namespaces, table."""

    def namespaces(self, name: str) -> list[tuple[str, ...]]:
        """Return the namespaces that must exist before the table can be created, as `path` writes them, outermost
        first.

        Raises:
            Refused: the catalog does not accept such a name.
        """


@dataclass(frozen=True)
class FolderCatalog:
    """The folders in a warehouse, which Iceberg calls a Hadoop catalog."""

    warehouse: str

    @property
    def spark(self) -> Mapping[str, str]:
        catalog = f"spark.sql.catalog.{FOLDERS}"
        return {
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "hadoop",
            f"{catalog}.warehouse": whole_place(self.warehouse),
            f"{catalog}.cache-enabled": "false",
        }

    def load(self, name: str) -> Table | None:
        found = _newest_metadata(location(self.warehouse, name))
        return None if found is None else StaticTable.from_metadata(found)

    def exists(self, name: str) -> bool:
        return _newest_metadata(location(self.warehouse, name)) is not None

    def spelled(self, name: str) -> str | None:
        return spelled(self.warehouse, name, lambda folder: _newest_metadata(folder) is not None)

    def reach(self) -> None:
        """Do nothing, because folders need no server."""

    def path(self, name: str) -> tuple[str, ...]:
        return FOLDERS, *name.split(".")

    def namespaces(self, _name: str) -> list[tuple[str, ...]]:
        return []


def catalog_of(warehouse: str, access: CatalogAccess | None) -> TableCatalog:
    """Return the configured catalog."""
    if access is None:
        return FolderCatalog(warehouse)
    # Imported here because a worker that uses folders needs no catalog clients.
    from spark_sink.tables.iceberg.served_catalog import ServedCatalog

    return ServedCatalog(access)


def quoted(catalog: TableCatalog, name: str) -> str:
    """Return a table's SQL name, from its name in the lakehouse."""
    return in_sql(catalog.path(name))


def in_sql(path: tuple[str, ...]) -> str:
    """Return a multi-part name in SQL."""
    return ".".join(f"`{part}`" for part in path)


def _newest_metadata(folder: str) -> str | None:
    """Return the newest metadata file. If a writer dies after a commit, the hint still points to the previous file.
    Look for newer files.
    """
    files = load_file_io(location=folder)
    try:
        with files.new_input(f"{folder}/metadata/version-hint.text").open() as hint:
            version = int(hint.read())
    except FileNotFoundError:
        version = 0
    while files.new_input(_metadata(folder, version + 1)).exists():
        version += 1
    return _metadata(folder, version) if version else None


def _metadata(folder: str, version: int) -> str:
    return f"{folder}/metadata/v{version}.metadata.json"
