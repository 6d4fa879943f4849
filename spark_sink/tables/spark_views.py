"""Keep a view of each table in a Spark catalog, for readers who want the source's columns and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from spark_sink.schema.business_view import has_rows
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_spec import Format
from spark_sink.spark.foreign_errors import reason
from spark_sink.spark.session import sibling
from spark_sink.tables.catalog_views import CatalogViews
from spark_sink.tables.delta.registration import SparkCatalog
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.iceberg.views import IcebergViews
from spark_sink.tables.registration import Catalog, RegistrationError


def readers_catalog(
    spark: SparkSession, tables: FormatTables, registered: str | None, views: Mapping[Format, CatalogViews]
) -> Catalog | None:
    """Return the catalog that registers tables and keeps views, or None if it would do neither.

    Args:
        registered: the Spark catalog that registers the Delta tables, or None if they are not registered.

    Raises:
        ConfigError: the Spark catalog would lose its tables when the session ends.
    """
    catalog: Catalog | None = None
    if registered is not None:
        catalog = SparkCatalog(spark, tables.warehouse, registered, lambda name: tables.format(name) is Format.DELTA)
    return ViewingCatalog(spark, tables, catalog, views) if views else catalog


class ViewingCatalog:
    """A catalog in which tables also have views.

    Args:
        catalog: registers the tables. None if they are not registered.
        views: where the views of each format are. If a format is missing here, its tables have no views.
    """

    def __init__(
        self, spark: SparkSession, tables: FormatTables, catalog: Catalog | None, views: Mapping[Format, CatalogViews]
    ) -> None:
        self._spark = spark if tables.catalog is None else sibling(spark, tables.iceberg_catalog.spark)
        self._tables = tables
        self._catalog = catalog
        self._views = views
        # The schema of a view joins the folders of its table, so two tables can have a view with the same name.
        self._owners: dict[str, str] = {}  # the table of each view

    def register(self, name: str) -> bool:
        is_new = self._catalog is not None and self._catalog.register(name)
        views = self._views.get(self._tables.format(name))
        if views is None:
            return is_new
        try:
            shape = self._tables.shape(name)
            if shape is not None and has_rows(shape):
                self._own(views.view(name), name)
                self._replace(views, name, shape)
        except RegistrationError:
            raise
        except Exception as error:  # the table is complete without its view
            raise RegistrationError(f"its view was not replaced: {reason(error)}") from None
        return is_new

    def _own(self, view: str, name: str) -> None:
        """Remember that a view belongs to a table.

        Raises:
            RegistrationError: the view belongs to another table.
        """
        owner = self._owners.setdefault(view.lower(), name)
        if owner != name:
            raise RegistrationError(f"its view was not replaced: {view} is already the view of {owner}")

    def _replace(self, views: CatalogViews, name: str, shape: TableShape) -> None:
        if views.is_inside(name, self._tables):
            IcebergViews(self._spark, self._tables.iceberg_catalog, views).replace(name, shape)
            return
        self._spark.sql(f"CREATE SCHEMA IF NOT EXISTS {views.schema(name)}")
        self._spark.sql(views.statement(name, shape, self._tables))
