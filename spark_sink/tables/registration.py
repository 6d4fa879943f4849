"""Registration of tables in a catalog, by whose names readers find them."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class RegistrationError(Exception):
    """A catalog rejects a table; the message gives the reason."""


class CatalogName(NamedTuple):
    """The name of a table in a catalog: one schema, one table."""

    schema: str
    table: str

    @classmethod
    def of(cls, name: str) -> CatalogName:
        """Return the last folder of a table's name as the table and the others as the schema; `default` if there are no
        others.
        """
        *folders, table = name.split(".")
        return cls("_".join(folders) or "default", table)


class Catalog(Protocol):
    """A catalog in which tables are registered at their location."""

    def register(self, name: str) -> bool:
        """Register a table, by its name in the lakehouse; return False if it was registered already.

        Raises:
            RegistrationError: it is not registered now.
        """
