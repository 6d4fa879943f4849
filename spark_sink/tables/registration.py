"""Register tables in a catalog, so that readers find them by name."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class RegistrationError(Exception):
    """A catalog rejected a table. The message gives the reason."""


class CatalogName(NamedTuple):
    """A table's name in a catalog: one schema, one table."""

    schema: str
    table: str

    @classmethod
    def of(cls, name: str) -> CatalogName:
        """Split the name of a table. The last folder is the table, and the folders before it are the schema. If there
        are no other folders, the schema is `default`.
        """
        *folders, table = name.split(".")
        return cls("_".join(folders) or "default", table)


class Catalog(Protocol):
    """A catalog that registers tables by their location."""

    def register(self, name: str) -> bool:
        """Register a table by its lakehouse name. Return False if it was already registered.

        Raises:
            RegistrationError: the table could not be registered.
        """
