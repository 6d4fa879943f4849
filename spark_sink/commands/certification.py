"""Connect the parts of `spark-sink check --certify`: start Spark, certify each kind of table, and write the report."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from pyspark.sql import SparkSession

from cdc_core.state_format import release
from spark_sink.config.settings import Settings
from spark_sink.operations.certification import (
    FORMAT,
    PREFIX,
    Candidate,
    Certificate,
    CertifiedCatalog,
    CertifiedTable,
    certify,
)
from spark_sink.operations.checks import Answer
from spark_sink.operations.registration import configured_views
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.table_spec import Format
from spark_sink.spark import session as spark_session
from spark_sink.tables.formats import FormatMaintenance, FormatTables, ask_catalog, spark_ddl, spark_writer
from spark_sink.tables.spark_views import readers_catalog
from spark_sink.tables.trial_table import TrialTable, spark_versions

# The Python packages whose versions are in the report.
_PACKAGES = ("pyspark", "deltalake", "pyiceberg", "pyarrow")


def write_certificate(settings: Settings, to: Path, report: Callable[[Answer], None]) -> int:
    """Certify each kind of table that the configuration writes, and write the report. Return the number of failed
    steps.

    Raises:
        FatalError: Spark did not start.
    """
    warehouse = settings.tables.warehouse
    spark = spark_session.build(
        "spark-sink certification", settings.spark, warehouse, settings.store, iceberg=settings.has_iceberg
    )
    try:
        files, folder = spark_session.hadoop_folder(spark, warehouse)
        files.mkdirs(folder)
        return certified(settings, spark, to, report)
    finally:
        spark.stop()


def certified(settings: Settings, spark: SparkSession, to: Path, report: Callable[[Answer], None]) -> int:
    """Certify with this session; see `write_certificate`."""
    tables = [certify(candidate, report) for candidate in _candidates(settings, spark)]
    failed = sum(step.result == "failed" for table in tables for step in table.steps)
    iceberg = any(table.format is Format.ICEBERG for table in tables)
    certificate = Certificate(
        certificate=FORMAT,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        passed=not failed,
        versions=_versions(spark, iceberg=iceberg),
        storage=urlsplit(settings.tables.warehouse).scheme or "file",
        catalog=_catalog(settings, tables) if iceberg else None,
        tables=tables,
    )
    to.write_bytes(msgspec.json.format(msgspec.json.encode(certificate), indent=2) + b"\n")
    return failed


def _candidates(settings: Settings, spark: SparkSession) -> Iterator[Candidate]:
    formats = settings.tables.formats
    if Format.ICEBERG in formats.values():
        yield _candidate(settings, spark, Format.ICEBERG, Engine.SPARK)
    if formats.get("*") is not Format.ICEBERG:
        yield _candidate(settings, spark, Format.DELTA, Engine.FUSED)
        yield _candidate(settings, spark, Format.DELTA, Engine.SPARK)


def _candidate(settings: Settings, spark: SparkSession, format: Format, engine: Engine) -> Candidate:
    id = uuid.uuid4().hex[:12]
    name, warehouse, access = f"{PREFIX}{id}.trial", settings.tables.warehouse, settings.iceberg_catalog
    tables = FormatTables(warehouse, f"certification/{id}", EngineRules({"*": engine}), {"*": format}, catalog=access)
    registered, views = settings.registered, configured_views(settings)
    is_served = format is Format.ICEBERG and access is not None
    return Candidate(
        format,
        engine,
        name,
        tables,
        spark_ddl(spark, tables),
        spark_writer(spark, tables),
        FormatMaintenance(tables, spark),
        TrialTable(spark, tables, name, registered, views.get(format)),
        probe=partial(ask_catalog, spark, tables, again=True) if is_served else None,
        catalog=partial(readers_catalog, spark, tables, registered, views),
        is_registered=registered is not None and format is Format.DELTA,
        has_view=format in views,
        maintains=settings.maintenance.enabled,
    )


def _catalog(settings: Settings, certified: list[CertifiedTable]) -> CertifiedCatalog:
    access = settings.iceberg_catalog
    if access is None:
        return CertifiedCatalog("folders", "tables.warehouse", None, None, None, None)
    # Imported here because folders need no catalog clients.
    from spark_sink.tables.iceberg.served_catalog import ServedCatalog

    server = ServedCatalog(access).server()
    probed = any(step.step == "probe" and step.result == "passed" for table in certified for step in table.steps)
    if not probed:
        return CertifiedCatalog(access.type, access.address, server, None, None, None)
    traits = FormatTables(settings.tables.warehouse, catalog=access).catalog_traits
    found = traits.format_version, traits.keeps_snapshots, traits.can_expire
    return CertifiedCatalog(access.type, access.address, server, *found)


def _versions(spark: SparkSession, *, iceberg: bool) -> dict[str, str]:
    ours = {"spark-sink": release(), "python": platform.python_version()}
    return {**ours, **{name: version(name) for name in _PACKAGES}, **spark_versions(spark, iceberg=iceberg)}
