"""One worker per partition: what waits (for metadata, say) holds its own partition and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

P = TypeVar("P")  # a partition
B = TypeVar("B")  # a batch

# A lane with this many waiting batches is not fetched for any more; it is again when it has none left.
FULL = 2
# All lanes together.
MAX_WAITING = 256


class Lanes(Generic[P, B]):
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
        self._lanes: dict[P, asyncio.Queue[tuple[B, int]]] = {}
        self._paused: set[P] = set()
        self._size = size
        self._max_bytes = max_bytes
        self._waiting = 0
        self._bytes = 0
        self._freed = asyncio.Event()

    @property
    def bytes(self) -> int:
        """What waits or is being processed."""
        return self._bytes

    async def put(self, partition: P, batch: B) -> None:
        """Hands a batch to its partition's worker; waits only while all lanes together are full."""
        size = self._size(batch)
        while self._waiting >= MAX_WAITING or (self._bytes and self._bytes + size > self._max_bytes):
            self._freed.clear()
            await self._freed.wait()
        self._waiting += 1
        self._bytes += size
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._lanes[partition] = asyncio.Queue()
            self._start(self._work(partition, lane))
        lane.put_nowait((batch, size))
        if lane.qsize() >= FULL and partition not in self._paused:
            self._paused.add(partition)
            self._pause(partition)

    async def _work(self, partition: P, lane: asyncio.Queue[tuple[B, int]]) -> None:
        while True:
            batch, size = await lane.get()
            self._waiting -= 1
            self._freed.set()
            if lane.empty() and partition in self._paused:
                self._paused.discard(partition)
                self._resume(partition)
            await self._process(batch)
            self._bytes -= size
            self._freed.set()
            # a reference kept while waiting for the next batch would keep this one from being forgotten on a rebalance
            del batch
            await asyncio.sleep(0)  # a busy lane lets the others and the probes have their turn
