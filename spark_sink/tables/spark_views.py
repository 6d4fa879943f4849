"""Keep a view of each table in a Spark catalog, for readers who want the source's columns and nothing else."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_sink.schema.business_view import has_rows
from spark_sink.spark.foreign_errors import reason
from spark_sink.spark.session import sibling
from spark_sink.tables.catalog_views import CatalogViews
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.registration import Catalog, RegistrationError


class ViewingCatalog:
    """A catalog in which each table that it registers also has a view, and each Iceberg table has one.

    Args:
        catalog: registers the tables.
    """

    def __init__(self, spark: SparkSession, tables: FormatTables, catalog: Catalog, views: CatalogViews) -> None:
        self._spark = spark if tables.catalog is None else sibling(spark, tables.iceberg_catalog.spark)
        self._tables = tables
        self._catalog = catalog
        self._views = views

    def register(self, name: str) -> bool:
        is_new = self._catalog.register(name)
        try:
            shape = self._tables.shape(name)
            if shape is not None and has_rows(shape):
                self._spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self._views.schema(name)}")
                self._spark.sql(self._views.statement(name, shape, self._tables))
        except Exception as error:  # the table is complete without its view
            raise RegistrationError(f"its view was not replaced: {reason(error)}") from None
        return is_new
