"""An owner of a yard's partitions: the whole service except Faust, running while a test does something else."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from tests.translator.operations._replay import Read, Yard
from translator.config.settings import Settings
from translator.service.bootstrap import prepare
from translator.service.components import Components
from translator.service.state_follower import follow


class Owner:
    """Reads partitions of the raw topic from a given offset to the end."""

    def __init__(self, yard: Yard, components: Components, begin: int) -> None:
        self.components = components
        self.tasks: list[asyncio.Task[None]] = []
        self._yard = yard
        self._next: Counter[int] = Counter()
        self._begin = begin

    async def reap(self) -> None:
        while True:
            self.components.delivery.reap()
            await asyncio.sleep(0.005)

    def follow(self) -> None:
        """From now on, read what others write."""
        self.tasks.append(asyncio.create_task(self._follow()))

    async def _follow(self) -> None:
        while True:
            follow(self.components, await asyncio.to_thread(lambda: list(self.components.reader.poll(0.1))))

    async def informed(self) -> None:
        """Wait until it has read everything that others have written so far."""
        await self.components.journal.synced()

    async def read(self, *partitions: int) -> None:
        """Translate the new messages, and return when all output is delivered."""
        for partition in partitions:
            begin = self._next[partition] or self._begin
            records = [Read.of(record) for record in await asyncio.to_thread(self._yard.raw_records, partition, begin)]
            if not records:
                continue
            done = asyncio.Event()
            await self.components.pipeline.process(self._yard.raw, partition, records, done.set)
            self._next[partition] = records[-1].offset + 1
            await done.wait()


@asynccontextmanager
async def owner(yard: Yard, settings: Settings, begin: int = 0, *, follows: bool = True) -> AsyncIterator[Owner]:
    """A process that has just been assigned the partitions.

    Args:
        begin: the committed offset.
        follows: whether it reads what others write. Otherwise it does so only when told to.
    """
    found = Owner(yard, await asyncio.to_thread(prepare, settings), begin)
    found.tasks.append(asyncio.create_task(found.reap()))
    if follows:
        found.follow()
    try:
        yield found
    finally:
        for task in found.tasks:
            task.cancel()
        ended = await asyncio.gather(*found.tasks, return_exceptions=True)
        assert [] == [error for error in ended if not isinstance(error, asyncio.CancelledError)]


def offsets(records: Iterable[Any], partition: int = 0) -> list[int]:
    """Return the raw offsets of events in topic order."""
    places = [dict(record.headers())["cdc-id"].decode().split("/")[2:4] for record in records]
    return [int(offset) for of, offset in places if int(of) == partition]


def in_order(found: Iterable[int]) -> list[int]:
    """Return what a reader keeps that skips duplicates.

    Raises:
        AssertionError: a new event comes after a later one, so the reader would lose it.
    """
    taken: list[int] = []
    for offset in found:
        if not taken or offset > taken[-1]:
            taken.append(offset)
        assert offset in taken, f"offset {offset} comes after {taken[-1]}"
    return taken
