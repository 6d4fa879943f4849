"""Run loops in the background: delivery reports, the group's shared state, new topics, and work reports."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from translator.config.setting_types import is_pattern
from translator.errors import ConfigError, RetryableError
from translator.kafka.subscription import added
from translator.service.components import Components
from translator.service.faust_transport import batches, resubscribe
from translator.service.lag import LOOK_SECONDS
from translator.service.partition_workers import PartitionWorkers
from translator.service.raw_topics import add_topics, preview_topics
from translator.service.state_follower import follow, restore
from translator.service.stopping import BoundedStopApp, FailStop

log = structlog.get_logger("translator")

_REAP_SECONDS = 0.005


class BackgroundTasks:
    """The service's background loops. An error in any loop stops the process. Only the topic check continues while
    brokers are down.
    """

    def __init__(
        self, app: BoundedStopApp, components: Components, stopper: FailStop, workers: PartitionWorkers[Any, Any]
    ) -> None:
        self._app = app
        self._components = components
        self._stopper = stopper
        self._workers = workers

    async def reap(self) -> None:
        """Process delivery reports, acknowledge batches, and update the metrics for work in progress."""
        components, metrics, delivery = self._components, self._components.metrics, self._components.delivery
        while not self._stopper.dead:
            try:
                self._app.turns += 1
                delivery.reap()
            except Exception as error:
                await self._stopper.trigger(error)
            metrics.in_flight.set(delivery.batches)
            metrics.events_in_flight.set(delivery.records)
            metrics.bytes_waiting.set(self._workers.bytes)
            metrics.waiting.set(components.waiter.waiting)
            metrics.held.set(components.holds.count)
            await asyncio.sleep(_REAP_SECONDS)

    async def follow_state(self) -> None:
        """Process the records that other processes in the group write to the compacted topics."""
        components = self._components
        while not self._stopper.dead:
            try:
                await restore(components)
                follow(components, await asyncio.to_thread(lambda: list(components.reader.poll(0.5))))
            except Exception as error:
                await self._stopper.trigger(error)

    async def watch_topics(self) -> None:
        """If a topic was recreated, stop the process, because its records would get the old topic's id. Add new topics
        that match a pattern.
        """
        components = self._components
        has_patterns = any(is_pattern(topic) for topic in components.settings.raw_topics)
        reading = set(components.subscribed)
        while not self._stopper.dead:
            await asyncio.sleep(components.settings.timing.topic_refresh)
            try:
                await asyncio.to_thread(components.positions.look)
                if has_patterns:
                    await _take_on_new(components)
                    wanted = set(components.subscribed)
                    if wanted != reading and await resubscribe(self._app, wanted):
                        reading = wanted
            except (RetryableError, ConfigError) as error:  # no broker responds, or a new topic was already deleted
                log.warning("topic refresh failed, will retry", error=str(error))
            except Exception as error:
                await self._stopper.trigger(error)

    async def watch_lag(self) -> None:
        """Measure the lag of the partitions that this process owns."""
        while not self._stopper.dead:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._components.lag.look(batches(self._app).placed)
            except Exception as error:
                await self._stopper.trigger(error)

    async def summarise(self) -> None:
        """Log summary lines even if there was nothing to do, because they show that the process is alive."""
        components, seconds = self._components, self._components.settings.timing.summary
        while seconds and not self._stopper.dead:
            await asyncio.sleep(seconds)
            log.info(
                "summary",
                seconds=seconds,
                **components.summary.take(),
                partitions=len(batches(self._app).placed),
                lag_records=components.lag.records,
                lag_seconds=None if (behind := components.lag.seconds) is None else round(behind, 1),
                in_flight=components.delivery.batches,
                waiting=components.waiter.waiting,
                held=components.holds.count,
                stopped=len(components.pipeline.stopped),
            )


async def _take_on_new(components: Components) -> None:
    """Find new topics and prepare them for reading."""
    there = await asyncio.to_thread(components.topics.names)
    fresh, doubtful = added(components.settings, components.subscribed, there)
    for text in doubtful:
        log.error("topic not added", reason=text)
    if fresh:
        ahead = await asyncio.to_thread(preview_topics, components, fresh)
        add_topics(
            components, fresh, ahead, lambda _: "earliest"
        )  # regardless of `start`, because the topic is newer than the process
        log.info("new topics", topics=sorted(fresh))
