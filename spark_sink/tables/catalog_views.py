"""Keep views in a catalog: their names, and the statement that replaces one of them."""

from __future__ import annotations

from dataclasses import dataclass

from spark_sink.schema.business_view import ReaderEngine, create_view, quoted_name
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_spec import Format
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.registration import CatalogName


@dataclass(frozen=True)
class CatalogViews:
    """The names of the views in a Spark catalog.

    Args:
        catalog: the catalog's name in Spark.
        suffix: a view is in a schema that is named like its table's schema, with this suffix.
    """

    catalog: str
    suffix: str

    def schema(self, name: str) -> str:
        """Return the schema of a table's view, in SQL."""
        return quoted_name(ReaderEngine.SPARK, f"{self.catalog}.{CatalogName.of(name).schema}{self.suffix}")

    def view(self, name: str) -> str:
        """Return the name of a table's view, with dots between its parts."""
        known = CatalogName.of(name)
        return f"{self.catalog}.{known.schema}{self.suffix}.{known.table}"

    def is_inside(self, name: str, tables: FormatTables) -> bool:
        """Return whether the view of a table is in the Iceberg catalog that also contains the table."""
        return tables.format(name) is Format.ICEBERG and tables.iceberg_catalog.path(name)[0] == self.catalog

    def statement(self, name: str, shape: TableShape, tables: FormatTables) -> str:
        """Return the statement that creates or replaces a table's view.

        Raises:
            ConfigError: a table with this mode has no view.
        """
        if tables.format(name) is Format.ICEBERG:
            table = ".".join(tables.iceberg_catalog.path(name))
        else:
            known = CatalogName.of(name)
            table = f"{self.catalog}.{known.schema}.{known.table}"
        return create_view(ReaderEngine.SPARK, self.view(name), shape, None, table)
