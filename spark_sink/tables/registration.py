"""Making tables known to a catalog, by whose names readers ask for them."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class RegistrationError(Exception):
    """A catalog does not take a table; the message says why."""


class CatalogName(NamedTuple):
    """The name of a table in a catalog: one schema, one table."""

    schema: str
    table: str

    @classmethod
    def of(cls, name: str) -> CatalogName:
        """The last folder of a table's name is the table, the others are the schema; `default` where there is none."""
        *folders, table = name.split(".")
        return cls("_".join(folders) or "default", table)


class Catalog(Protocol):
    """A catalog of tables that lie where they lie."""

    def register(self, name: str) -> bool:
        """Make a table known, by its name in the lakehouse; False if it was known.

        Raises:
            RegistrationError: it is not known now.
        """
