"""What the sink learns about a catalog by creating a probe table, with a real catalog and deviating ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from dev.iceberg.rest_catalog import TOKEN, RestCatalogServer
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import ConfigError, FatalError
from spark_sink.schema.table_spec import Format
from spark_sink.tables.formats import ask_catalog
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits, TraitsMemory
from spark_sink.tables.iceberg.probe import catalog_traits
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.conftest import rest_access
from tests.spark_sink.lake import MergingLake
from tests.spark_sink.tables.iceberg.altering_proxy import (
    altering,
    files_of_its_own,
    newest_snapshot_only,
    no_expiry,
    no_properties_of_snapshots,
    no_third_version,
    refused_when_made,
    second_version,
)

ICEBERG = TableRules(formats={"*": Format.ICEBERG})


def test_a_catalog_that_does_all(spark: SparkSession, rest_server: RestCatalogServer, tmp_path: Path) -> None:
    """The probe leaves nothing behind and is not repeated within a day."""
    access = rest_access(rest_server.url)
    with capture_logs() as logs:
        assert CatalogTraits(3, True, True) == catalog_traits(spark, str(tmp_path), access)
    assert [("info", "iceberg catalog")] == [(line["log_level"], line["event"]) for line in logs]
    others = load_catalog("any", type="rest", uri=rest_server.url, token=TOKEN)
    assert [] == others.list_tables("_cdc")
    with altering(rest_server.url, second_version) as url:
        other = rest_access(url)
        assert 2 == catalog_traits(spark, str(tmp_path), other).format_version
    memory = TraitsMemory(str(tmp_path), other)
    assert 2 == catalog_traits(spark, str(tmp_path), other).format_version  # nobody is there to be asked
    assert memory.recall(0.0) is None
    (stored,) = tmp_path.glob(f"_cdc/catalogs/{memory.id}.json")
    stored.write_text("{")
    assert memory.recall() is None


def _told(spark: SparkSession, lake: MergingLake, url: str, name: str) -> list[str]:
    """Return the log lines when the lake first uses the catalog. It has a table of that name from then on."""
    lake.catalog = rest_access(url)
    lake.use(ICEBERG)
    with capture_logs() as logs:
        ask_catalog(spark, lake.tables)
    lake.use(ICEBERG, {"shop/sales//orders": name})
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    return [line["event"] for line in logs]


@pytest.mark.faults  # slow; `make test` covers the probe itself
def test_tables_of_the_second_version(
    spark: SparkSession, rest_server: RestCatalogServer, merging_lake: MergingLake
) -> None:
    """The sink logs it and works. Changed rows are in separate position delete files."""
    with altering(rest_server.url, second_version) as url:
        assert "iceberg tables use an older format version" in _told(spark, merging_lake, url, "old.orders")
        merging_lake.apply(0, [change("c", {"id": id}, {"a": "x"}, pos=id) for id in (1, 2)])
        merging_lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=3), change("d", {"id": 2}, pos=4)])
        table = merging_lake.tables.iceberg_catalog.load("old.orders")
        assert table is not None
        assert 2 == table.metadata.format_version
        assert [{"id": 1, "a": "y"}] == merging_lake.rows("old.orders")


def test_a_catalog_that_lets_nothing_go(
    spark: SparkSession, rest_server: RestCatalogServer, merging_lake: MergingLake
) -> None:
    """Maintenance removes nothing, but does not fail every day."""
    with altering(rest_server.url, no_expiry) as url:
        assert "old files of iceberg tables will not be removed" in _told(spark, merging_lake, url, "kept.orders")
        for batch in range(3):
            merging_lake.apply(batch, [change("c", {"id": batch}, {"a": "x"}, pos=batch + 1)])
        assert "compact kept.orders, vacuum kept.orders" == merging_lake.command("maintain", "kept.orders").result


def test_a_catalog_that_refuses_the_third_version(
    spark: SparkSession, rest_server: RestCatalogServer, tmp_path: Path
) -> None:
    with altering(rest_server.url, no_third_version) as url:
        assert CatalogTraits(2, True, True) == catalog_traits(spark, str(tmp_path), rest_access(url))


def test_a_catalog_that_shows_the_newest_snapshot(
    spark: SparkSession, rest_server: RestCatalogServer, tmp_path: Path
) -> None:
    with altering(rest_server.url, answer=newest_snapshot_only) as url, capture_logs() as logs:
        assert not catalog_traits(spark, str(tmp_path), rest_access(url)).keeps_snapshots
    assert "iceberg catalog does not keep old versions" in [line["event"] for line in logs]


def test_a_catalog_that_makes_a_table_and_refuses_it(
    spark: SparkSession, rest_server: RestCatalogServer, tmp_path: Path
) -> None:
    """The original reason is reported, and not that the table exists when the next version is tried."""
    refused = pytest.raises(FatalError, match=r"does not let the sink create a table: .*BadRequestException")
    with altering(f"{rest_server.url}/refused", answer=refused_when_made()) as url, refused:
        catalog_traits(spark, str(tmp_path), rest_access(url))


def test_a_catalog_that_names_files_of_its_own(
    spark: SparkSession, rest_server: RestCatalogServer, tmp_path: Path
) -> None:
    """The catalog's settings override those of the sink. The error names jars that they require."""
    refused = pytest.raises(FatalError, match=r"NoClassDefFoundError\. None of Spark's .* put the iceberg-aws-bundle")
    with altering(f"{rest_server.url}/files", answer=files_of_its_own) as url, refused:
        catalog_traits(spark, str(tmp_path), rest_access(url))


def test_a_catalog_that_loses_markers(spark: SparkSession, rest_server: RestCatalogServer, tmp_path: Path) -> None:
    """The catalog is rejected, and probed again at the next start."""
    with altering(rest_server.url, no_properties_of_snapshots) as url:
        access = rest_access(url)
        with pytest.raises(ConfigError, match="loses commit properties"):
            catalog_traits(spark, str(tmp_path), access)
        assert TraitsMemory(str(tmp_path), access).recall() is None
