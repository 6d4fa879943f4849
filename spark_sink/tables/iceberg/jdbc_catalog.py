"""Read the tables of an Iceberg catalog that is stored in a database. Spark accesses the database through JDBC."""

from __future__ import annotations

from pyiceberg.catalog.sql import IcebergNamespaceProperties, IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier
from sqlalchemy import inspect


class JdbcCatalog(SqlCatalog):
    """A client that accepts an empty database. For pyiceberg's own client, this is an error. Spark creates the
    catalog's tables.
    """

    def load_table(self, identifier: str | Identifier) -> Table:
        if not self._is_made():
            raise NoSuchTableError(f"{identifier}: the database contains no catalog table")
        return super().load_table(identifier)

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        return list(super().list_namespaces(namespace)) if self._is_made() else []

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        return list(super().list_tables(namespace)) if self._is_made() else []

    def _is_made(self) -> bool:
        if not self._made:
            known = inspect(self.engine)
            self._made = all(known.has_table(one.__tablename__) for one in (IcebergTables, IcebergNamespaceProperties))
        return self._made

    _made = False
