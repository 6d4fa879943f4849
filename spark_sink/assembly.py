"""Assemble the sink. No other module imports all of the sink's components."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import structlog

from cdc_core.kafka_settings import librdkafka_options
from cdc_core.otlp import reports
from spark_sink import probes, signals
from spark_sink.apply.driver import Applier
from spark_sink.apply.existing_tables import check_tables, other_layouts
from spark_sink.apply.spark_runner import SparkRunner
from spark_sink.config.settings import Settings
from spark_sink.config.unmatched_patterns import unmatched_patterns
from spark_sink.control_tables.batches import BatchTable, ControlTables
from spark_sink.control_tables.requests import Requests, RequestTable
from spark_sink.events.source import TopicRange
from spark_sink.events.starting_offsets import starting_offsets
from spark_sink.events.topic_identity import check_topic, topic_id
from spark_sink.job import Job
from spark_sink.lag import PATIENCE_SECONDS, Lag
from spark_sink.lineage import lineage_of
from spark_sink.metrics import Metrics
from spark_sink.operations.actions import Actions
from spark_sink.operations.erase import Erase
from spark_sink.operations.maintenance import Maintenance
from spark_sink.operations.registration import Registration, configured_views
from spark_sink.operations.verified_metrics import VerifiedMetrics
from spark_sink.probes import Health
from spark_sink.schema.catalog import SchemaReader
from spark_sink.spark import session as spark_session
from spark_sink.spark.checkpoint import check_progress, checkpoint_id, has_progress, offset_entry, progress
from spark_sink.tables.formats import (
    FormatErasure,
    FormatMaintenance,
    FormatRelayout,
    FormatTables,
    ask_catalog,
    spark_ddl,
    spark_writer,
)
from spark_sink.tables.shadows import Shadows
from spark_sink.tables.spark_views import readers_catalog

log = structlog.get_logger()


def run(settings: Settings, *, available_now: bool = False) -> None:
    """Write the canonical topic to tables until SIGTERM or SIGINT arrives. With `available_now`, stop at the end of the
    topic.

    Raises:
        FatalError: a batch could not be applied. The batch is not acknowledged, and the next start repeats it.
    """
    rules, topic = replace(settings.tables.rules, contracts=settings.tables.contracts), settings.input.topic
    # Check the brokers before Spark starts, because Spark is slow to start, and its error for an unreachable broker is
    # less specific. This client only reads, so it needs no checkpoint.
    batches = BatchTable(settings.tables.warehouse, settings.pipeline, "", topic)
    written = batches.tables()
    catalog = settings.iceberg_catalog
    # A pending rebuild makes these tables match the configuration.
    written -= RequestTable(settings.tables.warehouse, settings.pipeline).open_targets("rebuild")
    existing = FormatTables(settings.tables.warehouse, formats=rules.formats, catalog=catalog, layouts=rules.layouts)
    shapes = check_tables(written, existing, rules)
    for name, found in other_layouts(written, existing).items():
        then = f"spark-sink relayout {shlex.quote(name)}"
        log.warning("table does not have its configured layout", table=name, differences=found, then=then)
    schemas = SchemaReader(librdkafka_options(settings.kafka), settings.input.schemas)
    schemas.reach()
    schemas.refresh()
    if unmatched := unmatched_patterns(settings.tables, schemas.catalog.tables()):
        log.warning("patterns match no table; check the spelling", patterns=unmatched)
    topic_now = topic_id(librdkafka_options(settings.kafka), topic)
    check_topic(topic, topic_now, batches.topic_id())
    warehouse = settings.tables.warehouse
    log.info("starting Spark", master=settings.spark.master)
    name = f"spark-sink {settings.pipeline}"
    spark = spark_session.build(name, settings.spark, warehouse, settings.store, iceberg=settings.has_iceberg)
    signals.end_at_once()
    try:
        checkpoint = checkpoint_id(spark, settings.checkpoint)
        app = f"{settings.pipeline}/{checkpoint}"
        tables = FormatTables(warehouse, app, rules.engines, rules.formats, rules.buckets, catalog, rules.layouts)
        ddl = spark_ddl(spark, tables)
        ddl.create_quarantine()
        ask_catalog(spark, tables)
        control = ControlTables(settings.tables.warehouse, settings.pipeline, checkpoint, topic)
        control.create()
        if topic_now is not None and topic_now != control.batches.topic_id():
            control.batches.keep_topic_id(topic_now)
        starting = "earliest"
        if has_progress(spark, settings.checkpoint):
            check_progress(settings.checkpoint, progress(spark, settings.checkpoint), control.batches.ended())
        else:
            configured, reached = settings.input.starting_offsets, control.batches.reached()
            starting = starting_offsets(topic, configured, reached, schemas.ends(topic))
        metrics, health = Metrics(settings.metrics.max_tables), Health()
        # Without events, no batch sets these metrics, and a scheduled run may end before its first batch.
        metrics.parked(control.held())
        verified = VerifiedMetrics(control.verified, metrics)
        verified.refresh()
        if settings.metrics.port is not None:
            probes.serve(settings.metrics.host, settings.metrics.port, metrics.registry, health)
        runner, writer = SparkRunner(spark), spark_writer(spark, tables)
        ends, begins = (partial(ask, topic, PATIENCE_SECONDS) for ask in (schemas.ends, schemas.begins))
        lag = Lag(
            topic,
            partial(offset_entry, spark, settings.checkpoint),
            ends,
            begins if starting == "earliest" else None,
        )
        apply = Applier(
            schemas, tables, ddl, settings.tables.pattern, app, rules, control, metrics, runner, writer, lag
        )
        files = FormatMaintenance(tables, spark)
        maintenance = Maintenance(files, control, settings.maintenance.rules, metrics)
        readers = readers_catalog(spark, tables, settings.registered, configured_views(settings))
        registration = None if readers is None else Registration(readers, control.batches, metrics, ddl.changed)
        topic_range = TopicRange(spark, settings, lambda: schemas.begins(topic))
        limit, layouts = settings.batches.max_offsets, FormatRelayout(spark, tables)
        erase = Erase(warehouse, tables, control, settings.tables.pattern, FormatErasure(spark, tables))
        actions = Actions(
            *(apply, tables, control, metrics, limit, maintenance, registration, topic_range, layouts, erase),
            shadows=Shadows(spark, tables, ddl),
        )
        actions.park_changed()
        requests = Requests(control.requests, actions.by_name())
        job = Job(
            spark,
            settings,
            apply,
            requests,
            maintenance,
            verified,
            checkpoint,
            starting,
            registration,
            health=health,
            available_now=available_now,
        )
        identity = {"service.name": "cdc-spark-sink", "cdc.pipeline": settings.pipeline}
        lineage = lineage_of(settings, tables, schemas.catalog, metrics)
        if lineage is not None:
            lineage.begin(shapes)
            ddl.listen(lineage.changed)
        jobs = None if lineage is None else lineage.reports
        with reports(settings.metrics.otlp, metrics.registry, identity, log.warning), jobs or nullcontext():
            was_stopped = job.run()
            if jobs is not None:
                jobs.end = "ABORT" if was_stopped else "COMPLETE"
    finally:
        schemas.close()
        spark.stop()
