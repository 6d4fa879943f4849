"""A certification does to a table of its own what the sink does, reports each step, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from dev.iceberg.hive_metastore import HiveMetastore
from dev.iceberg.postgres import PASSWORD, USER, Postgres
from dev.iceberg.rest_catalog import TOKEN, RestCatalogServer
from dev.jars import spark_jars
from dev.servers.broker import Broker
from dev.servers.small_spark import SMALL_SPARK
from spark_sink.commands import cli
from spark_sink.commands.certification import certified
from spark_sink.config.settings import Settings
from spark_sink.operations.certification import PREFIX, Certificate, CertifiedTable
from spark_sink.operations.checks import Answer
from spark_sink.tables.iceberg import served_catalog
from spark_sink.tables.iceberg.served_catalog import ServedCatalog
from tests.spark_sink.sink_process import PATIENCE_SECONDS
from tests.spark_sink.tables.iceberg.altering_proxy import (
    altering,
    newest_snapshot_only,
    no_expiry,
    no_properties_of_snapshots,
    outdated_commits_accepted,
)
from tests.spark_sink.tables.iceberg.conftest import database as database

ROOT = Path(__file__).parents[3]

STEPS = ["create", "append", "merge", "marker", "add column", "same batch twice"]
READS = ["read back", "earlier version"]
FILES = ["compact", "expire"]
EVERY = [*STEPS, "outdated commit", *READS, *FILES, "drop"]
WITH_VIEW = ["probe", *EVERY, "view"]
ICEBERG = {"formats": {"*": "iceberg"}}


class Certified:
    """A certification in a session that the tests share, and what it printed and wrote."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir()
        self.printed: list[Answer] = []

    def settings(self, tables: Mapping[str, Any], **others: Any) -> Settings:
        return Settings.model_validate(
            {
                "pipeline": "p",
                "kafka": {"bootstrap_servers": "nobody:1"},
                "tables": {"warehouse": str(self.warehouse), **tables},
                "checkpoint": str(self._folder / "checkpoint"),
                **others,
            }
        )

    def __call__(self, tables: Mapping[str, Any], **others: Any) -> Certificate:
        to = self._folder / "certificate.json"
        failed = certified(self.settings(tables, **others), self._spark, to, self.printed.append)
        certificate = msgspec.json.decode(to.read_bytes(), type=Certificate, strict=False)
        assert certificate.passed == (failed == 0)
        return certificate

    def left(self) -> list[str]:
        """Return the files and the namespaces in the warehouse, except the traits of the catalog, which `run` also
        stores.
        """
        files = (path.relative_to(self.warehouse) for path in self.warehouse.rglob("*") if path.is_file())
        left = sorted(str(path) for path in files if path.parts[:2] != ("_cdc", "catalogs"))
        return [*left, *_folders(self.warehouse)]


@pytest.fixture
def certify(spark: SparkSession, tmp_path: Path) -> Certified:
    return Certified(spark, tmp_path)


def _folders(warehouse: Path) -> list[str]:
    return [path.name for path in warehouse.iterdir() if path.name.startswith(PREFIX)]


def _rest(url: str, **others: Any) -> dict[str, Any]:
    return {**ICEBERG, "iceberg_catalog": {"type": "rest", "uri": url, "properties": {"token": TOKEN}, **others}}


def _results(table: CertifiedTable) -> dict[str, str]:
    return {step.step: step.result for step in table.steps}


def _namespaces(server: RestCatalogServer) -> list[str]:
    others = load_catalog("any", type="rest", uri=server.url, token=TOKEN)
    return [name for (name, *_) in others.list_namespaces() if name.startswith(PREFIX)]


@pytest.fixture
def no_namespace(rest_server: RestCatalogServer) -> Iterator[None]:
    yield
    assert [] == _namespaces(rest_server)


def test_delta(certify: Certified) -> None:
    """Both engines that write Delta tables pass every step. An outdated commit is tried where it is possible."""
    certificate = certify({})
    fused, merged = certificate.tables
    assert ("delta", "fused", dict.fromkeys(EVERY, "passed")) == (fused.format, fused.engine, _results(fused))
    rest = dict.fromkeys([*STEPS, *READS, *FILES, "drop"], "passed")
    assert ("delta", "spark", rest) == (merged.format, merged.engine, _results(merged))
    assert ("file", None) == (certificate.storage, certificate.catalog)
    assert [] == certify.left()
    assert fused.table != merged.table
    assert all(step.needed_for and step.detail and step.seconds >= 0 for step in fused.steps)
    assert ["ok"] * len(certify.printed) == [answer.state for answer in certify.printed]
    assert "delta (fused): create" == certify.printed[0].subject


def test_iceberg_in_folders(certify: Certified) -> None:
    certificate = certify({"formats": {"*": "iceberg"}}, maintenance={"enabled": False})
    (table,) = certificate.tables
    assert dict.fromkeys([*STEPS, "outdated commit", *READS, "drop"], "passed") == _results(table)
    assert certificate.catalog is not None
    assert "folders" == certificate.catalog.type
    assert [] == certify.left()


@pytest.mark.usefixtures("no_namespace")
def test_rest(certify: Certified, rest_server: RestCatalogServer) -> None:
    """The report names versions and traits, but no secret. The order of its fields is fixed."""
    certificate = certify(_rest(rest_server.url, views="_live"))
    (table,) = certificate.tables
    assert dict.fromkeys(WITH_VIEW, "passed") == _results(table), [step.detail for step in table.steps]
    known = certificate.catalog
    assert known is not None
    assert ("rest", rest_server.url, 3, True, True) == (
        *(known.type, known.address, known.format_version),
        *(known.keeps_snapshots, known.can_expire),
    )
    assert {"spark-sink", "spark", "iceberg", "delta", "java", "pyiceberg"} <= certificate.versions.keys()
    assert all(number[0].isdigit() for number in certificate.versions.values())
    text = (certify.warehouse.parent / "certificate.json").read_text()
    assert TOKEN not in text
    fields = ["certificate", "made_at", "passed", "versions", "storage", "catalog", "tables"]
    assert fields == list(msgspec.json.decode(text))
    assert [] == certify.left()


@pytest.mark.usefixtures("no_namespace")
def test_a_catalog_that_does_less(certify: Certified, rest_server: RestCatalogServer) -> None:
    """What the sink can do without is not a failure."""
    with altering(rest_server.url, no_expiry, newest_snapshot_only) as url:
        certificate = certify(_rest(url))
    (table,) = certificate.tables
    missing = {"earlier version": "not supported", "expire": "not supported"}
    assert {**dict.fromkeys(["probe", *EVERY], "passed"), **missing} == _results(table)
    assert certificate.passed
    assert {"note"} == {one.state for one in certify.printed if one.subject.endswith(tuple(missing))}


@pytest.mark.usefixtures("no_namespace")
def test_a_catalog_that_loses_markers(certify: Certified, rest_server: RestCatalogServer) -> None:
    """Later steps are not tried, and the report says what they depend on."""
    with altering(rest_server.url, no_properties_of_snapshots) as url:
        certificate = certify(_rest(url))
    (table,) = certificate.tables
    assert {**dict.fromkeys(["probe", *EVERY], "failed"), "drop": "passed"} == _results(table)
    probe, create, *_ = table.steps
    assert "loses commit properties" in probe.detail
    assert "not checked because it depends on a failed check: iceberg (spark): probe" == create.detail
    assert certificate.catalog is not None
    assert certificate.catalog.format_version is None


@pytest.mark.usefixtures("no_namespace")
def test_a_failure_in_the_middle(certify: Certified, rest_server: RestCatalogServer) -> None:
    """A catalog that rejects changes of columns fails this step alone, and the table is dropped."""

    def no_new_schema(request: Any) -> None:
        request["updates"] = [one for one in request.get("updates", []) if one["action"] != "add-schema"]

    with altering(rest_server.url, no_new_schema) as url:
        (table,) = certify(_rest(url)).tables
    assert {**dict.fromkeys(["probe", *EVERY], "passed"), "add column": "failed"} == _results(table)


@pytest.mark.usefixtures("no_namespace")
def test_a_catalog_that_loses_commits(certify: Certified, rest_server: RestCatalogServer) -> None:
    """A catalog that accepts an outdated commit, and then has only one of the two, fails the step."""
    with altering(rest_server.url, outdated_commits_accepted()) as url:
        (table,) = certify(_rest(url)).tables
    results = _results(table)
    assert ("failed", "passed") == (results["outdated commit"], results["drop"])
    assert "accepted a commit that another commit had overtaken" in str(table.steps)


@pytest.mark.usefixtures("no_namespace")
def test_an_interruption(certify: Certified, spark: SparkSession, rest_server: RestCatalogServer) -> None:
    """The table is dropped."""

    def interrupt(answer: Answer) -> None:
        if answer.subject.endswith("merge"):
            assert 1 == len(_namespaces(rest_server))
            raise KeyboardInterrupt

    settings = certify.settings(_rest(rest_server.url))
    with pytest.raises(KeyboardInterrupt):
        certified(settings, spark, certify.warehouse.parent / "none.json", interrupt)
    assert [] == certify.left()


@pytest.mark.usefixtures("no_namespace")
def test_a_catalog_without_views(certify: Certified, rest_server: RestCatalogServer) -> None:
    """Only the step for the view fails."""
    refused = {"token": TOKEN, "view-endpoints-supported": "false"}
    (table,) = certify(_rest(rest_server.url, views="_live", properties=refused)).tables
    assert {**dict.fromkeys(WITH_VIEW, "passed"), "view": "failed"} == _results(table)


def test_a_table_that_cannot_be_dropped(certify: Certified, rest_server: RestCatalogServer) -> None:
    """The report says what remains."""

    def another_table(answer: Answer) -> None:
        certify.printed.append(answer)
        if answer.subject.endswith("merge"):
            (space,) = _namespaces(rest_server)
            others.create_table(f"{space}.other", others.load_table(f"{space}.trial").schema())

    others = load_catalog("any", type="rest", uri=rest_server.url, token=TOKEN)
    settings = certify.settings(_rest(rest_server.url))
    to = certify.warehouse.parent / "certificate.json"
    assert 1 == certified(settings, certify._spark, to, another_table)
    (space,) = _namespaces(rest_server)
    dropped = certify.printed[-1]
    assert "WRONG" == dropped.state
    assert f"DROP NAMESPACE IF EXISTS `cdc_iceberg`.`{space}`: " in dropped.text
    others.drop_table(f"{space}.other")
    others.drop_namespace(space)


def test_postgres(certify: Certified, database: Postgres) -> None:
    login = {"jdbc.user": USER, "jdbc.password": PASSWORD}
    catalog = {"type": "jdbc", "uri": database.jdbc, "name": "certified", "properties": login, "views": "_live"}
    certificate = certify({**ICEBERG, "iceberg_catalog": catalog})
    (table,) = certificate.tables
    assert dict.fromkeys(WITH_VIEW, "passed") == _results(table), [step.detail for step in table.steps]
    assert certificate.catalog is not None
    assert certificate.catalog.server is not None
    assert certificate.catalog.server.startswith("PostgreSQL 1")
    assert PASSWORD not in (certify.warehouse.parent / "certificate.json").read_text()
    assert [] == certify.left()


@pytest.mark.faults  # slow
def test_hive(certify: Certified) -> None:
    with HiveMetastore() as metastore:
        certificate = certify({**ICEBERG, "iceberg_catalog": {"type": "hive", "uri": metastore.url, "views": "_live"}})
    (table,) = certificate.tables
    assert dict.fromkeys(WITH_VIEW, "passed") == _results(table), [step.detail for step in table.steps]
    assert certificate.catalog is not None
    assert certificate.catalog.server is not None
    assert certificate.catalog.server.startswith("Hive metastore ")
    assert [] == certify.left()


def test_a_server_that_does_not_answer(certify: Certified, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version is unknown."""
    monkeypatch.setattr(served_catalog, "_RETRIES", 0)
    access = certify.settings(_rest("http://127.0.0.1:1")).iceberg_catalog
    assert access is not None
    assert ServedCatalog(access).server() is None


def test_without_connect(tmp_path: Path) -> None:
    """A certificate includes the checks of the connections."""
    asked = CliRunner().invoke(cli, ["check", "-c", str(tmp_path / "sink.yaml"), "--certify", "certificate.json"])
    assert (2, True) == (asked.exit_code, "--certify requires --connect" in asked.output)


@pytest.mark.integration
@pytest.mark.faults  # slow
def test_the_command(tmp_path: Path, broker: Broker) -> None:
    """The process certifies tables of both formats, registered and with views. The exit code is that of the checks,
    which miss the topics.
    """
    with HiveMetastore() as metastore:
        hive = {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": metastore.url,
        }
        settings = {
            "pipeline": "p",
            "kafka": {"bootstrap_servers": broker.bootstrap},
            "input": {"topic": "certified.missing"},
            "tables": {
                "warehouse": str(tmp_path / "warehouse"),
                "formats": {"*.berg": "iceberg"},
                "iceberg_catalog": {"type": "hive", "uri": metastore.url},
            },
            "catalog": {"views": "_live"},
            "checkpoint": str(tmp_path / "checkpoint"),
            "spark": {"master": "local[1]", "jars": [*map(str, spark_jars())], "conf": {**SMALL_SPARK, **hive}},
        }
        config = tmp_path / "sink.yaml"
        config.write_text(yaml.safe_dump(settings))
        command = ["check", "-c", str(config), "--connect", "--certify", "certificate.json"]
        ended = subprocess.run(
            [sys.executable, "-m", "spark_sink", *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert 1 == ended.returncode, ended.stderr[-3000:]
    certificate = msgspec.json.decode((tmp_path / "certificate.json").read_bytes(), type=Certificate)
    views = dict.fromkeys(["view", *EVERY], "passed")
    berg, fused, merged = certificate.tables
    assert {**views, "probe": "passed"} == _results(berg), ended.stdout
    assert {**views, "register": "passed"} == _results(fused), ended.stdout
    assert _results(fused).keys() - {"outdated commit"} == _results(merged).keys()
    assert certificate.passed
    assert "ok     iceberg (spark): view: 6 rows, read from the view\n" in ended.stdout
    assert "checks failed" in ended.stderr
    assert [] == _folders(tmp_path / "warehouse")
