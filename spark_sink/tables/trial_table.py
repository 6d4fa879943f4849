"""Access the table that a certification writes, as another Spark program would, and remove it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_sink.errors import FatalError
from spark_sink.schema.business_view import ReaderEngine, quoted_name
from spark_sink.schema.table_naming import RESERVED
from spark_sink.schema.table_spec import Format
from spark_sink.spark.failures import SPARK_ERRORS, cause
from spark_sink.spark.session import hadoop_folder, sibling
from spark_sink.tables.catalog_views import CatalogViews
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.iceberg.catalogs import in_sql, quoted
from spark_sink.tables.iceberg.spark import is_commit_conflict
from spark_sink.tables.iceberg.spark_catalog import java_table
from spark_sink.tables.iceberg.views import IcebergViews
from spark_sink.tables.locations import location
from spark_sink.tables.registration import CatalogName


class TrialTable:
    """One table in a separate namespace.

    Args:
        name: the table's name in the lakehouse.
        registered: the Spark catalog in which the sink registers the table, or None if it registers none.
        views: the place of the table's view, or None if the sink keeps none.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: FormatTables,
        name: str,
        registered: str | None = None,
        views: CatalogViews | None = None,
    ) -> None:
        self._is_iceberg = tables.format(name) is Format.ICEBERG
        self._spark = sibling(spark, tables.iceberg_catalog.spark) if self._is_iceberg else spark
        self._tables = tables
        self._name = name
        self._registered = registered
        self._views = views
        self._view = "" if views is None else quoted_name(ReaderEngine.SPARK, views.view(name))
        self._inside: IcebergViews | None = None
        if views is not None and views.is_inside(name, tables):
            self._inside = IcebergViews(self._spark, tables.iceberg_catalog, views)

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return these columns of all rows, as Spark reads them from the table."""
        with spark_errors():
            return _sorted(self._read(), columns)

    def rows_by_name(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return these columns of all rows, as Spark reads them through the catalog that registers the table."""
        with spark_errors():
            return _sorted(self._spark.table(self._in_catalog), columns)

    def rows_of_view(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return these columns of all rows, as Spark reads them through the table's view. In an Iceberg catalog, this
        runs the query of the view, because only a session with the Iceberg extensions can read the view itself.
        """
        with spark_errors():
            if self._inside is None:
                return _sorted(self._spark.table(self._view), columns)
            self._spark.catalog.setCurrentCatalog(self._tables.iceberg_catalog.path(self._name)[0])
            return _sorted(self._spark.sql(self._inside.query(self._name)), columns)

    def accepts_outdated(self, other_commit: Callable[[], None]) -> bool:
        """Prepare a commit to an Iceberg table, and make another one before it. Return whether the catalog accepts the
        prepared commit, which would undo the other one.
        """
        with spark_errors():
            java: Any = self._spark._jvm
            table = java_table(self._spark, self._tables.iceberg_catalog, self._name)
            operations = table.operations()
            base = operations.refresh()
            snapshot = table.newAppend().apply()
            prepared = java.org.apache.iceberg.TableMetadata.buildFrom(base).setBranchSnapshot(snapshot, "main").build()
        other_commit()
        try:
            operations.commit(base, prepared)
        except SPARK_ERRORS as error:
            if not is_commit_conflict(str(error)):
                raise FatalError(f"the catalog failed: {cause(str(error)) or type(error).__name__}") from error
            with suppress(*SPARK_ERRORS):
                table.io().deleteFile(snapshot.manifestListLocation())
            return False
        return True

    def drop(self) -> None:
        """Delete the table, its view, its registration, its namespaces and its files, as far as they exist.

        Raises:
            FatalError: something could not be deleted.
        """
        steps = [*self._steps_of_names(), *(self._steps_of_iceberg() if self._is_iceberg else ())]
        failed = [why for why in (self._drop_inside(), *(self._try(*one) for one in steps)) if why is not None]
        self._delete_files()
        if failed:
            raise FatalError(f"not everything could be deleted: {'; '.join(failed)}")

    def _try(self, statement: str, otherwise: str | None = None) -> str | None:
        """Run a statement and, if it fails, another statement. Return why both failed, or None if one of them
        succeeded.
        """
        try:
            self._spark.sql(statement)
        except SPARK_ERRORS as error:
            if otherwise is not None:
                return self._try(otherwise)
            return f"{statement}: {cause(str(error)) or type(error).__name__}"
        return None

    def _drop_inside(self) -> str | None:
        """Delete the view in the Iceberg catalog. Return why this failed, or None if it succeeded."""
        try:
            if self._inside is not None:
                self._inside.drop(self._name)
        except SPARK_ERRORS as error:
            return f"view {self._view}: {cause(str(error)) or type(error).__name__}"
        return None

    def _steps_of_names(self) -> Iterator[tuple[str, str | None]]:
        if self._views is not None:
            if self._inside is None:
                yield f"DROP VIEW IF EXISTS {self._view}", None
            yield f"DROP SCHEMA IF EXISTS {self._views.schema(self._name)}", None
        if self._registered is not None and not self._is_iceberg:
            yield f"DROP TABLE IF EXISTS {self._in_catalog}", None
            schema = f"{self._registered}.{CatalogName.of(self._name).schema}"
            yield f"DROP SCHEMA IF EXISTS {quoted_name(ReaderEngine.SPARK, schema)}", None

    def _steps_of_iceberg(self) -> Iterator[tuple[str, str | None]]:
        catalog = self._tables.iceberg_catalog
        table = f"DROP TABLE IF EXISTS {quoted(catalog, self._name)}"
        # A catalog that does not delete files still drops the table.
        yield f"{table} PURGE", table
        for namespace in reversed(catalog.namespaces(self._name)):
            yield f"DROP NAMESPACE IF EXISTS {in_sql(namespace)}", None

    def _delete_files(self) -> None:
        """Delete what belongs to this table in the warehouse: its namespace's folder, its deleted rows and its staged
        files. A Hive metastore adds `.db` to the name of a namespace's folder, and may leave the folder behind. A view
        in an Iceberg catalog also has files.
        """
        own = self._name.partition(".")[0]
        spaces = [own] if self._inside is None or self._views is None else [own, f"{own}{self._views.suffix}"]
        folders = [*spaces, *(f"{space}.db" for space in spaces)]
        for path in (*folders, f"{RESERVED}/deleted/{own}", self._tables.staging.folder):
            files, folder = hadoop_folder(self._spark, f"{self._tables.warehouse}/{path}")
            files.delete(folder, True)

    def _read(self) -> DataFrame:
        if self._is_iceberg:
            return self._spark.table(quoted(self._tables.iceberg_catalog, self._name))
        return self._spark.read.format("delta").load(location(self._tables.warehouse, self._name))

    @property
    def _in_catalog(self) -> str:
        known = CatalogName.of(self._name)
        return quoted_name(ReaderEngine.SPARK, f"{self._registered}.{known.schema}.{known.table}")


@contextmanager
def spark_errors() -> Iterator[None]:
    """Convert Spark's errors to FatalError, without their text, because it can contain addresses and values."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise FatalError(f"Spark failed: {cause(str(error)) or type(error).__name__}") from error


def spark_versions(spark: SparkSession, *, iceberg: bool) -> dict[str, str]:
    """Return the versions of Spark, Java and the table formats in Spark's JVM."""
    java: Any = spark._jvm
    found = {"spark": spark.version, "java": str(java.java.lang.System.getProperty("java.version"))}
    found["delta"] = str(getattr(java.io.delta, "package").VERSION())  # noqa: B009 - a keyword in Java
    if iceberg:
        found["iceberg"] = str(java.org.apache.iceberg.IcebergBuild.version())
    return found


def _sorted(rows: DataFrame, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows.select(*columns).collect()), key=lambda row: str(row[0]))
