"""Define the Faust app. It reads topics, translates, writes topics and commits. No other file creates an app."""

from __future__ import annotations

import gc
import os
import tempfile
from contextlib import nullcontext
from functools import partial
from typing import Any

import structlog
from faust.types import TP

from cdc_core.otlp import reports
from translator.config.settings import Settings
from translator.service import probes
from translator.service.background_tasks import BackgroundTasks
from translator.service.bootstrap import prepare
from translator.service.components import Components
from translator.service.faust_pauses import PromptWorker
from translator.service.faust_settings import checked, faust_settings
from translator.service.faust_transport import Drain, attach, batches
from translator.service.message_context import raw_bytes
from translator.service.partition_workers import PartitionWorkers
from translator.service.stopping import BoundedStopApp, FailStop
from translator.service.watchdog import Watchdog, Watched
from translator.service.web_port import check_web_port

log = structlog.get_logger("translator")


def create_app(components: Components, datadir: str) -> BoundedStopApp:
    """Create the Faust app from prepared components."""
    settings = components.settings
    app = BoundedStopApp(settings.group, **checked(faust_settings(settings, datadir)))
    app.stop_seconds = settings.timing.rebalance
    app.owned = components.metrics.assigned.set
    app.watchdog = _watchdog(app, components)
    stopper = FailStop(app, components.delivery)
    _attach(app, components, stopper)
    source_topics = app.topic(*sorted(components.subscribed), key_serializer="raw", value_serializer="raw")
    workers: PartitionWorkers[TP, Any] = PartitionWorkers(
        partial(_process, app, components, stopper),
        app.add_future,
        lambda tp: app.consumer.pause_partitions({tp}),
        partial(_resume, app, components),
        lambda batch: raw_bytes(batch.value),
        settings.bounds.bytes,
    )

    @app.agent(source_topics, name="translate")
    async def translate(stream: Any) -> None:
        # noack, because the delivery acknowledges a batch, and not the stream
        async for event in stream.noack().events():
            for batch in batches(app).unpack(event.message):
                await workers.put(batch.tp, batch)

    background = BackgroundTasks(app, components, stopper, workers)
    for task in (
        background.reap,
        background.follow_state,
        background.watch_topics,
        background.watch_lag,
        background.summarise,
    ):
        app.task(task)

    def ready() -> str | None:
        if stopper.dead:
            return "stopping after an error"
        if components.lag.brokers.is_lost:
            return "no broker responds"
        return None if app.placed and not app.rebalancing else "partitions are being assigned"

    for path, view in probes.pages(components.metrics, ready).items():
        app.page(path, name=path)(view)
    return app


def _attach(app: BoundedStopApp, components: Components, stopper: FailStop) -> None:
    """Make the consumer hand over partitions the way the pipeline requires it."""

    def given_up() -> None:
        components.pipeline.forget()
        components.lag.forget()
        components.metrics.given_up.inc()
        components.metrics.forget_stops()
        app.owned(0)

    seconds = components.settings.timing.rebalance - 5
    drain = Drain(seconds, components.pipeline.cancel_waits, stopper.stop_work, given_up, lambda: stopper.dead)
    attach(app, drain, components.positions, components.transactions, components.settings.latency)


async def _process(app: BoundedStopApp, components: Components, stopper: FailStop, batch: Any) -> None:
    """Process a partition's batch in the pipeline."""
    tp, consumer = batch.tp, batches(app)
    membership = b"" if components.transactions is None else consumer.membership(batch)
    if membership is None:  # the partition's new owner reads the records again
        consumer.give_back(batch)
        return
    acknowledge, shorten = partial(consumer.ack, batch), partial(consumer.shorten, batch)
    pipeline = components.pipeline
    try:
        await components.delivery.wait_for_capacity()
        if not await pipeline.process(
            tp.topic, tp.partition, batch.value, acknowledge, membership, shorten, fetched=batch.time_in
        ):
            consumer.give_back(batch)
        if tp in pipeline.stopped:
            app.consumer.pause_partitions({tp})
    except Exception as error:
        await stopper.trigger(error)


def _resume(app: BoundedStopApp, components: Components, tp: TP) -> None:
    if tp in app.consumer.assignment() and tp not in components.pipeline.stopped:
        app.consumer.resume_partitions({tp})


def _watchdog(app: BoundedStopApp, components: Components) -> Watchdog:
    timing = components.settings.timing
    watched = [
        Watched(timing.stuck, lambda: app.turns, "the event loop has been blocked"),
        Watched(
            timing.delivery + timing.stuck,
            lambda: components.delivery.progress,
            "pending records have had no delivery report",
        ),
        Watched(
            timing.rebalance + timing.stuck,
            lambda: app.rebalancing_count if app.rebalancing else None,
            "a rebalance has been in progress",
        ),
    ]
    return Watchdog(watched, timing.stuck)


def _log_end(app: BoundedStopApp, components: Components, code: int) -> None:
    """Log the last line, unless the error that ended the process has already been logged."""
    if code == 0:
        log.info("stopped", exit_code=code, **components.summary.total())
    elif not app.ending:
        log.critical("stopping", error="Faust ended with an error", error_type="FatalError", exit_code=code)


def run(settings: Settings, *, accept_gap: bool = False) -> int:
    """Run the service until a signal (exit code 0) or an error (exit code 1) ends it."""
    check_web_port(settings.web)
    components = prepare(settings, accept_gap=accept_gap)
    log.info("prepared", sources=len(components.translators), topics=len(components.subscribed))
    identity = {"service.name": "cdc-translator", "cdc.group": settings.group}
    reported = reports(settings.metrics.otlp, components.metrics.registry, identity, log.warning)
    lineage = None if components.lineage is None else components.lineage.reports
    with tempfile.TemporaryDirectory(prefix="cdc-translator-") as datadir, reported, lineage or nullcontext():
        app = create_app(components, datadir)
        worker = PromptWorker(app, loglevel="INFO", quiet=True, override_logging=False, redirect_stdouts=False)
        worker.spinner = None
        app.watchdog.start()
        gc.freeze()  # not collecting existing objects saves 6 % of the time for SharePlex messages
        try:
            worker.execute_from_commandline()  # always ends with SystemExit
        except SystemExit as end:
            code = int(end.code or 0)
            if lineage is not None and code == 0:
                lineage.end = "ABORT"
            _log_end(app, components, code)
            return code
        finally:
            components.delivery.fail_stop()
            components.reader.close()
            if components.transactions is not None and components.transactions.overstayed:
                os._exit(1)  # the delivery's thread does not return, and a graceful shutdown would wait for it
