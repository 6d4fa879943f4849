"""Views inside an Iceberg catalog. Iceberg's own API creates them. With SQL, Spark would need the Iceberg extensions,
which the sink does not use (docs/decisions/0009-iceberg.md).
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from spark_sink.schema.business_view import ReaderEngine, quoted_name, view_query
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.catalog_views import CatalogViews
from spark_sink.tables.iceberg.catalogs import TableCatalog, quoted
from spark_sink.tables.iceberg.spark_catalog import java_catalog
from spark_sink.tables.registration import RegistrationError

_WITH_VIEWS = "org.apache.iceberg.catalog.ViewCatalog"

# The engines that can read the view. Each reads the query in its own dialect.
_ENGINES = (ReaderEngine.SPARK, ReaderEngine.TRINO)


class IcebergViews:
    """The views of the Iceberg tables in a catalog. They are in the same catalog.

    Args:
        session: a session that knows the catalog.
    """

    def __init__(self, session: SparkSession, catalog: TableCatalog, views: CatalogViews) -> None:
        self._session = session
        self._catalog = catalog
        self._views = views

    def replace(self, name: str, shape: TableShape) -> None:
        """Create or replace a table's view.

        Raises:
            RegistrationError: the catalog does not support views.
        """
        _, *namespace, table = self._catalog.path(name)
        self._session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._views.schema(name)}")
        query = view_query(ReaderEngine.SPARK, shape, quoted(self._catalog, name))
        columns: Any = self._session.sql(query).schema.json()
        java: Any = self._session._jvm
        types = java.org.apache.spark.sql.types.DataType.fromJson(columns)
        catalog = self._java()
        if not self._has_views(catalog):
            raise RegistrationError("the catalog does not support views")
        builder = catalog.buildView(self._identifier(name))
        builder.withSchema(java.org.apache.iceberg.spark.SparkSchemaUtil.convert(types))
        builder.withDefaultNamespace(self._namespace(namespace))
        for engine in _ENGINES:
            # Without the catalog's name, which may be different in every reader.
            relation = quoted_name(engine, ".".join((*namespace, table)))
            builder.withQuery(engine.value, view_query(engine, shape, relation))
        builder.createOrReplace()

    def query(self, name: str) -> str:
        """Return the query of a table's view, in Spark's SQL."""
        return str(self._java().loadView(self._identifier(name)).sqlFor(ReaderEngine.SPARK.value).sql())

    def drop(self, name: str) -> None:
        """Delete a table's view, if it exists."""
        catalog, view = self._java(), self._identifier(name)
        if self._has_views(catalog) and catalog.viewExists(view):
            catalog.dropView(view)

    def _java(self) -> Any:
        return java_catalog(self._session, self._views.catalog)

    def _has_views(self, catalog: Any) -> bool:
        return bool(is_instance_of(self._session._sc._gateway, catalog, _WITH_VIEWS))

    def _identifier(self, name: str) -> Any:
        _, *namespace, view = self._views.view(name).split(".")
        java: Any = self._session._jvm
        return java.org.apache.iceberg.catalog.TableIdentifier.of(self._namespace(namespace), view)

    def _namespace(self, levels: list[str]) -> Any:
        java: Any = self._session._jvm
        gateway: Any = self._session._sc._gateway
        array = gateway.new_array(java.java.lang.String, len(levels))
        for place, level in enumerate(levels):
            array[place] = level
        return java.org.apache.iceberg.catalog.Namespace.of(array)
