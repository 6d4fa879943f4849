"""The catalog of the Iceberg tables: where a table is found by its name, by Spark and by pyiceberg alike.

Without one of its own the sink has folders of its warehouse for it, each the name of a table.
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
    """A catalog; it travels to the workers."""

    @property
    def spark(self) -> Mapping[str, str]:
        """The settings of a session that knows it, and keeps none of its tables in memory."""

    def load(self, name: str) -> Table | None:
        """Return a table as it is now; None when there is none."""

    def exists(self, name: str) -> bool:
        """Tell whether there is such a table, be it ours or not."""

    def spelled(self, name: str) -> str | None:
        """Return the table that is there under this name, in whatever case; None when there is none."""

    def reach(self) -> None:
        """Ask the catalog for something.

        Raises:
            FatalError: it does not answer, or refuses.
        """

    def path(self, name: str) -> tuple[str, ...]:
        """The name of a table as SQL has it: catalog, namespaces, table."""

    def namespaces(self, name: str) -> list[tuple[str, ...]]:
        """Return the namespaces that have to be there before the table is, as `path` names it: the outermost first.

        Raises:
            ConfigError: the catalog takes no such name.
        """


@dataclass(frozen=True)
class FolderCatalog:
    """Folders of a warehouse; Iceberg calls it a catalog of Hadoop's."""

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
        """Folders need nobody to answer."""

    def path(self, name: str) -> tuple[str, ...]:
        return FOLDERS, *name.split(".")

    def namespaces(self, _name: str) -> list[tuple[str, ...]]:
        return []


def catalog_of(warehouse: str, access: CatalogAccess | None) -> TableCatalog:
    """The catalog of a configuration."""
    if access is None:
        return FolderCatalog(warehouse)
    # Here, not above: a worker with folders needs no clients of catalogs.
    from spark_sink.tables.iceberg.served_catalog import ServedCatalog

    return ServedCatalog(access)


def quoted(catalog: TableCatalog, name: str) -> str:
    """A table in SQL, by its name in the lakehouse."""
    return in_sql(catalog.path(name))


def in_sql(path: tuple[str, ...]) -> str:
    """A name of several parts in SQL."""
    return ".".join(f"`{part}`" for part in path)


def _newest_metadata(folder: str) -> str | None:
    """The file of the newest metadata. A writer that dies after a commit leaves the hint at the one before, so that the
    next ones are looked for."""
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
