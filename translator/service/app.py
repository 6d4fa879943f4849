"""The Faust app: topics in, `translate`, topics out, commit. The only file that builds one."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from typing import Any

import faust
import structlog
from faust.auth import OAuthCredentials
from faust.types import TP
from faust.types.auth import AuthProtocol

from translator.errors import ConfigError, RetryableError
from translator.kafka import client_config
from translator.kafka.oauth import Tokens
from translator.kafka.subscription import added
from translator.service import probes
from translator.service.bootstrap import prepare
from translator.service.components import Components
from translator.service.delivery.base import Delivery
from translator.service.faust_transport import Drain, attach, batches, resubscribe
from translator.service.partition_workers import PartitionWorkers
from translator.service.pipeline import raw_bytes
from translator.service.raw_topics import add_topics, preview_topics
from translator.service.start_offsets import offset_lookup_timeout
from translator.service.state_follower import follow, restore
from translator.service.watchdog import Watchdog, Watched
from translator.settings import Kafka, Settings, is_pattern

log = structlog.get_logger("translator")

_FATAL_EXIT_SECONDS = 10
_REAP_INTERVAL = 0.005


def create_app(components: Components, datadir: str) -> BoundedStopApp:
    """The Faust app over a prepared world."""
    settings = components.settings
    app = BoundedStopApp(settings.group, **_checked(_faust_settings(settings, datadir)))
    app.stop_seconds = settings.timing.rebalance
    app.owned = components.metrics.assigned.set
    app.watchdog = _watchdog(app, components)
    stopper = FailStop(app, components.delivery)
    pipeline = components.pipeline

    def given_up() -> None:
        pipeline.forget()
        components.metrics.given_up.inc()
        app.owned(0)

    drain = Drain(settings.timing.rebalance - 5, pipeline.cancel_waits, stopper.stop_work, given_up)
    attach(app, drain, components.positions, components.transactions)
    source_topics = app.topic(*sorted(components.subscribed), key_serializer="raw", value_serializer="raw")
    delivery = components.delivery

    async def process(event: Any) -> None:
        tp = event.message.tp
        membership = b"" if components.transactions is None else batches(app).membership(event.message)
        if membership is None:  # its records are read again by whoever has the partition now
            batches(app).give_back(event.message)
            return
        try:
            await delivery.wait_for_capacity()
            if not await pipeline.process(tp.topic, tp.partition, event.value, event.ack, membership):
                batches(app).give_back(event.message)
        except Exception as error:
            await stopper.trigger(error)

    def resume(tp: TP) -> None:
        if tp in app.consumer.assignment():
            app.consumer.resume_partitions({tp})

    lanes: PartitionWorkers[TP, Any] = PartitionWorkers(
        process,
        app.add_future,
        lambda tp: app.consumer.pause_partitions({tp}),
        resume,
        lambda event: raw_bytes(event.value),
        settings.bounds.bytes,
    )

    @app.agent(source_topics, name="translate")
    async def translate(stream: Any) -> None:
        # noack: a batch is acknowledged by its delivery, never by the stream
        async for event in stream.noack().events():
            await lanes.put(event.message.tp, event)

    @app.task  # type: ignore[untyped-decorator]  # Faust's own decorator has no types
    async def reap() -> None:
        while not stopper.dead:
            try:
                app.turns += 1
                delivery.reap()
            except Exception as error:
                await stopper.trigger(error)
            components.metrics.in_flight.set(delivery.batches)
            components.metrics.events_in_flight.set(delivery.records)
            components.metrics.bytes_waiting.set(lanes.bytes)
            components.metrics.waiting.set(components.waiter.waiting)
            components.metrics.held.set(components.holds.count)
            await asyncio.sleep(_REAP_INTERVAL)

    @app.task  # type: ignore[untyped-decorator]  # as above
    async def follow_others() -> None:
        """Takes in what other processes of the group wrote to the compacted topics."""
        while not stopper.dead:
            try:
                await restore(components)
                follow(components, await asyncio.to_thread(lambda: list(components.reader.poll(0.5))))
            except Exception as error:
                await stopper.trigger(error)

    has_patterns = any(is_pattern(topic) for topic in settings.raw_topics)

    @app.task  # type: ignore[untyped-decorator]  # as above
    async def look_at_topics() -> None:
        """Ends the process when a topic was made again, for its records would get the id of the old one; takes on
        topics that match a pattern and were not there before.
        """
        reading = set(components.subscribed)
        while not stopper.dead:
            await asyncio.sleep(settings.timing.topic_refresh)
            try:
                await asyncio.to_thread(components.positions.look)
                if has_patterns:
                    await _take_on_new(components)
                    wanted = set(components.subscribed)
                    if wanted != reading and await resubscribe(app, wanted):
                        reading = wanted
            except (RetryableError, ConfigError) as error:  # no broker answers, or a new topic is gone already
                log.warning("looking at topics failed; it is tried again", error=str(error))
            except Exception as error:
                await stopper.trigger(error)

    def ready() -> str | None:
        if stopper.dead:
            return "stopping after an error"
        return None if app.placed and not app.rebalancing else "partitions are being assigned"

    for path, view in probes.pages(components.metrics, ready).items():
        app.page(path, name=path)(view)
    return app


async def _take_on_new(components: Components) -> None:
    """Finds new topics and makes them ready to be read."""
    there = await asyncio.to_thread(components.topics.names)
    fresh, doubtful = added(components.settings, components.subscribed, there)
    for text in doubtful:
        log.error("topic is not read", reason=text)
    if fresh:
        ahead = await asyncio.to_thread(preview_topics, components, fresh)
        add_topics(
            components, fresh, ahead, lambda _: "earliest"
        )  # whatever `start` says: nothing of them was there before us
        log.info("new topics", topics=sorted(fresh))


def _watchdog(app: BoundedStopApp, components: Components) -> Watchdog:
    timing = components.settings.timing
    watched = [
        Watched(timing.stuck, lambda: app.turns, "the event loop has not turned"),
        Watched(
            timing.delivery + timing.stuck,
            lambda: components.delivery.progress,
            "nothing was heard of records to deliver",
        ),
        Watched(
            timing.rebalance + timing.stuck,
            lambda: app.rebalancing_count if app.rebalancing else None,
            "partitions have been moving",
        ),
    ]
    return Watchdog(watched, timing.stuck)


class BoundedStopApp(faust.App):
    """Ends within `stop_seconds`, delivered or not: a supervisor's grace period must be longer."""

    stop_seconds: float
    watchdog: Watchdog
    owned: Callable[[int], object]
    """Is told of how many partitions were assigned, when they are placed."""
    placed = False  # what the group has assigned, be it nothing, at least once
    turns = 0  # of the event loop, as far as our own work sees them

    def on_rebalance_end(self) -> None:
        super().on_rebalance_end()
        self.placed = True
        self.owned(len(self.consumer.assignment()))

    async def stop(self) -> None:
        self.watchdog.retire(self.stop_seconds)
        exit_within(self.stop_seconds)
        await super().stop()


class FailStop:
    """After an error nothing is produced, acknowledged or committed, and the process ends with code 1."""

    def __init__(self, app: BoundedStopApp, delivery: Delivery) -> None:
        self._app = app
        self._delivery = delivery
        self.dead = False

    async def trigger(self, error: BaseException) -> None:
        """Crashes the app; does not return."""
        self.stop_work(error)
        await self._app.crash(error)
        await asyncio.Event().wait()

    def stop_work(self, error: BaseException) -> None:
        """From here on nothing leaves the process, and it ends within seconds."""
        if self.dead:
            return
        self.dead = True
        log.critical("stopping", error=str(error), error_type=type(error).__name__, exc_info=error)
        self._delivery.fail_stop()
        self._app.watchdog.retire(_FATAL_EXIT_SECONDS)
        exit_within(_FATAL_EXIT_SECONDS)


def exit_within(seconds: float) -> None:
    """Ends the process with code 1 after that time.

    With the broker gone, Faust's own way out never ends (its consumer thread hangs in LeaveGroup). A hard exit loses
    nothing: what is not delivered is not committed.
    """
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()


def _faust_settings(settings: Settings, datadir: str) -> dict[str, Any]:
    timing = settings.timing
    return {
        "env": {},
        "broker": [f"kafka://{server.strip()}" for server in settings.kafka.bootstrap_servers.split(",")],
        "broker_credentials": _credentials(settings.kafka),
        "datadir": datadir,
        "store": "memory://",
        "key_serializer": "raw",
        "value_serializer": "raw",
        "processing_guarantee": "at_least_once",
        "consumer_group_instance_id": settings.group_instance_id,
        "broker_commit_interval": timing.commit_interval,
        "broker_commit_every": 1_000_000_000,  # by the timer only: an inline commit stalls fetching
        "stream_buffer_maxsize": 8,  # batches
        "stream_wait_empty": True,
        "broker_max_poll_records": 1000,
        "consumer_max_fetch_size": 1024 * 1024,
        "consumer_auto_offset_reset": "none",  # the library would jump silently (positions)
        "broker_session_timeout": timing.session,
        "broker_heartbeat_interval": timing.session / 10,
        # Faust goes on without the places of partitions after this time: it must be above that for finding them.
        "broker_request_timeout": max(60.0, timing.session, offset_lookup_timeout(settings) + 5),
        "broker_rebalance_timeout": timing.rebalance,
        "broker_max_poll_interval": 300.0,
        "producer_request_timeout": 60.0,
        "table_standby_replicas": 0,
        "topic_disable_leader": True,
        "topic_allow_declare": False,
        "debug": False,
        "web_enabled": True,
        "web_bind": settings.web.host,
        "web_port": settings.web.port,
        "web_tables_enabled": False,
        "web_router_enabled": False,
        "web_stats_enabled": False,
        "web_graph_enabled": False,
        "worker_redirect_stdouts": False,
    }


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Faust ignores a misspelt setting without a word; here it is an error."""
    unknown = set(given) - faust.Settings.setting_names() - {"env"}
    if unknown:
        raise TypeError(f"Faust has no setting {', '.join(sorted(unknown))}")
    return dict(given)


def _credentials(kafka: Kafka) -> Any:
    context = client_config.ssl_context(kafka)
    credentials: Any
    if kafka.sasl_mechanism is None:
        return faust.SSLCredentials(context) if context is not None else None
    if kafka.sasl_mechanism == "OAUTHBEARER":
        credentials = OAuthCredentials(oauth_cb=Tokens(kafka), ssl_context=context)
    else:
        credentials = faust.SASLCredentials(
            username=kafka.sasl_username,
            password=kafka.sasl_password.get_secret_value() if kafka.sasl_password else None,
            mechanism=kafka.sasl_mechanism,
            ssl_context=context,
        )
    credentials.protocol = AuthProtocol(kafka.security_protocol)
    return credentials


def run(settings: Settings, *, accept_gap: bool = False) -> int:
    """Runs the service until a signal (0) or an error (1)."""
    components = prepare(settings, accept_gap=accept_gap)
    log.info("prepared", sources=len(components.translators), topics=len(components.subscribed))
    with tempfile.TemporaryDirectory(prefix="cdc-translator-") as datadir:
        app = create_app(components, datadir)
        worker = faust.Worker(app, loglevel="INFO", quiet=True, override_logging=False, redirect_stdouts=False)
        worker.spinner = None
        app.watchdog.start()
        try:
            worker.execute_from_commandline()  # always ends with SystemExit
        except SystemExit as end:
            return int(end.code or 0)
        finally:
            components.delivery.fail_stop()
            components.reader.close()
            if components.transactions is not None and components.transactions.overstayed:
                os._exit(1)  # its thread does not come back, and an orderly end would wait for it
