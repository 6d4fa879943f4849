"""Run one worker per partition. A wait, such as for metadata, then blocks only its own partition."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

P = TypeVar("P")  # partition
B = TypeVar("B")  # batch

# The number of pending batches at which fetching for a queue pauses. Fetching resumes when the queue is empty.
PAUSE_AT = 2
# This limit applies to all workers together.
MAX_WAITING = 256


class PartitionWorkers(Generic[P, B]):
    """Processes the batches of each partition in order, and the partitions in parallel.

    Args:
        process: handles one batch. It must not raise.
        start: runs a coroutine for as long as the app lives.
        pause: stops fetching for a partition.
        resume: restarts fetching for a partition.
        size: returns a batch's size in bytes.
        max_bytes: the limit for all batches that are pending or being processed. A single batch can be larger.
    """

    def __init__(
        self,
        process: Callable[[B], Awaitable[None]],
        start: Callable[[Coroutine[Any, Any, None]], object],
        pause: Callable[[P], None],
        resume: Callable[[P], None],
        size: Callable[[B], int],
        max_bytes: int,
    ) -> None:
        self._process = process
        self._start = start
        self._pause = pause
        self._resume = resume
        self._queues: dict[P, asyncio.Queue[tuple[B, int]]] = {}
        self._paused: set[P] = set()
        self._size = size
        self._max_bytes = max_bytes
        self._waiting = 0
        self._bytes = 0
        self._freed = asyncio.Event()

    @property
    def bytes(self) -> int:
        """The number of bytes that are pending or being processed."""
        return self._bytes

    async def put(self, partition: P, batch: B) -> None:
        """Pass a batch to its partition's worker. It waits only while the workers together are at their limit."""
        size = self._size(batch)
        while self._waiting >= MAX_WAITING or (self._bytes and self._bytes + size > self._max_bytes):
            self._freed.clear()
            await self._freed.wait()
        self._waiting += 1
        self._bytes += size
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = asyncio.Queue()
            self._start(self._work(partition, queue))
        queue.put_nowait((batch, size))
        if queue.qsize() >= PAUSE_AT and partition not in self._paused:
            self._paused.add(partition)
            self._pause(partition)

    async def _work(self, partition: P, queue: asyncio.Queue[tuple[B, int]]) -> None:
        while True:
            batch, size = await queue.get()
            self._waiting -= 1
            self._freed.set()
            if queue.empty() and partition in self._paused:
                self._paused.discard(partition)
                self._resume(partition)
            await self._process(batch)
            self._bytes -= size
            self._freed.set()
            # A reference kept while waiting for the next batch would keep this batch alive after a rebalance.
            del batch
            if not queue.empty():
                await asyncio.sleep(0)  # gives the other queues and the probes a turn while this queue is busy
