"""One worker per partition: what waits (for metadata, say) holds its own partition and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

P = TypeVar("P")  # a partition
B = TypeVar("B")  # a batch

# A queue with this many waiting batches is not fetched for any more; it is again when it has none left.
PAUSE_AT = 2
# All workers together.
MAX_WAITING = 256


class PartitionWorkers(Generic[P, B]):
    """Takes batches of all partitions and processes each partition's in order, the partitions side by side.

    Args:
        process: handles one batch; it must not raise.
        start: runs a coroutine for as long as the app lives.
        pause, resume: stop and restart fetching for a partition.
        size: bytes of a batch.
        max_bytes: of all batches that wait or are being processed; a single one may be larger.
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
        """The bytes that wait or are being processed."""
        return self._bytes

    async def put(self, partition: P, batch: B) -> None:
        """Hand a batch to its partition's worker; wait only while all of them together are full."""
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
            # a reference kept while waiting for the next batch would keep this one from being forgotten on a rebalance
            del batch
            await asyncio.sleep(0)  # a busy queue lets the others and the probes have their turn
