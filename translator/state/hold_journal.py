"""The journal of holds in the metadata topic (`table_holds.Journal`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from translator.codecs.record import Record
from translator.kafka.admin import TopicAdmin
from translator.kafka.retry import retry_until

log = structlog.get_logger("translator")

_PATIENCE = 20.0


class TopicJournal:
    """The journal, which writes to the metadata topic. Another component reads the topic and reports how far it is
    (`follow`).

    Args:
        letters_id: the dead-letter topic's id.
        confirm: writes a record to the metadata topic.
    """

    def __init__(
        self,
        topics: TopicAdmin,
        metadata: str,
        letters: str,
        letters_id: str,
        confirm: Callable[[Record], Awaitable[None]],
    ) -> None:
        self.letters_id = letters_id
        self._reached = 0
        self._moved = asyncio.Event()
        self._topics = topics
        self._metadata = metadata
        self._letters = letters
        self._confirm = confirm

    def follow(self, reached: int) -> None:
        """Record that all records before this offset in the metadata topic have been processed."""
        self._reached = reached
        self._moved.set()

    async def confirm(self, record: Record) -> None:
        """Return once the record is in the metadata topic.

        Raises:
            FatalError: the record was not delivered.
        """
        await self._confirm(record)

    async def synced(self) -> None:
        """Return once everything that the metadata topic contains now has been processed.

        Raises:
            RetryableError: no broker responds.
        """
        end = await asyncio.to_thread(self._end, self._metadata, 0, stable=True)
        while self._reached < end:
            self._moved.clear()
            await self._moved.wait()

    async def end_of_letters(self, partition: int) -> int:
        """Return the end offset of a partition in the dead-letter topic.

        Raises:
            RetryableError: no broker responds.
        """
        return await asyncio.to_thread(self._end, self._letters, partition, stable=False)

    def _end(self, topic: str, partition: int, *, stable: bool) -> int:
        where = topic, partition
        ask = self._topics.offsets
        return retry_until("broker", lambda _: ask([where], "latest", stable=stable)[where], _PATIENCE, log.warning)
