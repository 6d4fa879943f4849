"""Find the topic of each record in projections whose topics are named after tables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

from translator.codecs.record import Record
from translator.config.topic_template import TopicTemplate
from translator.errors import CdcError, FatalError

OpenTopic: TypeAlias = Callable[[str], int]
"""Creates a topic if it is missing, and returns its number of partitions. Can block."""

Levels: TypeAlias = tuple[str, str | None, str | None, str | None]
"""Source, database, schema and table."""

_KEPT = 4096
"""Maximum number of tables whose topics are cached. A limit is needed, because table names come from messages."""

_REFUSED_SECONDS = 60.0
"""Seconds before the next attempt to open a topic that could not be opened."""


class TopicRefused(CdcError):
    """A topic cannot be created or used. Its name collides with that of another topic, it is missing and must not be
    created, or it accepts only smaller records.
    """


class Routes:
    """The topics of one projection. Each is opened before its first record is written.

    Args:
        open_topic: called in a thread, once per topic unless it fails.
        allowed: maximum number of topics.
        clock: returns seconds.
    """

    def __init__(
        self,
        template: TopicTemplate,
        open_topic: OpenTopic,
        allowed: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._template = template
        self._open_topic = open_topic
        self._allowed = allowed
        self._topic_of = lru_cache(maxsize=_KEPT)(template.topic)
        self._partitions: dict[str, int] = {}
        self._opening: dict[str, asyncio.Task[int]] = {}
        self._clock = clock
        self._refused: dict[str, tuple[float, str]] = {}

    def without_brokers(self) -> Routes:
        """Return the same routes for a dry run. They neither create topics nor request anything."""
        return Routes(self._template, lambda _topic: 1, self._allowed)

    async def partitions(self, topic: str) -> int:
        """Return a topic's number of partitions.

        Raises:
            TopicRefused: the topic cannot be created or used. Its name comes from a message, so nothing but this table
                is affected.
            RetryableError: no broker responded.
        """
        known = self._partitions.get(topic)
        if known is not None:
            return known
        if len(self._partitions) >= self._allowed:
            raise TopicRefused(
                f"topic {topic}: this process already writes {self._allowed} topics of the projection (limits.topics)"
            )
        until, why = self._refused.get(topic, (0.0, ""))
        if self._clock() < until:
            raise TopicRefused(why)
        task = self._opening.get(topic)
        if task is None:
            task = self._opening[topic] = asyncio.create_task(asyncio.to_thread(self._open_topic, topic))
        try:
            # Other callers can be waiting for the same topic, so cancelling one caller must not cancel the shared task.
            found = self._partitions[topic] = await asyncio.shield(task)
        except FatalError as error:
            if len(self._refused) >= _KEPT:
                self._refused.clear()
            self._refused[topic] = self._clock() + _REFUSED_SECONDS, str(error)
            raise TopicRefused(str(error)) from None
        finally:
            if task.done():
                self._opening.pop(topic, None)
        return found

    def split(self, records: Iterable[tuple[Levels, Sequence[Record]]]) -> dict[str, list[Record]]:
        """Group records by topic, and keep their order."""
        found: dict[str, list[Record]] = {}
        for levels, part in records:
            if part:
                found.setdefault(self._topic_of(*levels), []).extend(part)
        return found
