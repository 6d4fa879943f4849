"""Lanes keep the order within a partition, are independent of each other, and are bounded."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from translator.service.partition_workers import PAUSE_AT, PartitionWorkers

Batch = tuple[str, int]


class Bench:
    """Lanes whose processing can be blocked per partition."""

    def __init__(self, max_bytes: int = 1_000_000) -> None:
        self.done: list[Batch] = []
        self.fetching: dict[str, bool] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.lanes: PartitionWorkers[str, Batch] = PartitionWorkers(
            self._process,
            self._start,
            lambda partition: self.fetching.update({partition: False}),
            lambda partition: self.fetching.update({partition: True}),
            size=lambda batch: 10,
            max_bytes=max_bytes,
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _process(self, batch: Batch) -> None:
        if batch[0] in self.gates:
            await self.gates[batch[0]].wait()
        self.done.append(batch)

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


def test_a_partition_that_waits_holds_no_other() -> None:
    """While one partition waits, the others continue. Later it continues in the order of its batches."""

    async def scenario() -> None:
        bench = Bench()
        gate = bench.gates["slow"] = asyncio.Event()
        for number in range(3):
            await bench.lanes.put("slow", ("slow", number))
            await bench.lanes.put("fast", ("fast", number))
        await bench.settle()
        assert [("fast", 0), ("fast", 1), ("fast", 2)] == bench.done
        gate.set()
        await bench.settle()
        assert [("slow", 0), ("slow", 1), ("slow", 2)] == bench.done[3:]
        bench.close()

    asyncio.run(scenario())


def test_a_full_lane_is_not_fetched_for_until_it_is_empty() -> None:
    """Backpressure is per partition: a lane pauses at FULL waiting batches and resumes when none waits."""

    async def scenario() -> None:
        bench = Bench()
        gate = bench.gates["p"] = asyncio.Event()
        await bench.lanes.put("p", ("p", 0))
        await bench.settle()  # the first is being processed and not waiting
        for number in range(1, PAUSE_AT):
            await bench.lanes.put("p", ("p", number))
        assert "p" not in bench.fetching
        await bench.lanes.put("p", ("p", PAUSE_AT))
        assert bench.fetching["p"] is False
        gate.set()
        await bench.settle()
        assert bench.fetching["p"] is True
        assert PAUSE_AT + 1 == len(bench.done)
        bench.close()

    asyncio.run(scenario())


def test_bytes_are_bounded_over_all_lanes() -> None:
    """Waiting and processed bytes count. A put waits for room, and a single batch can exceed the limit."""

    async def scenario() -> None:
        bench = Bench(max_bytes=25)
        gate = bench.gates["p"] = asyncio.Event()
        await bench.lanes.put("p", ("p", 0))
        await bench.settle()  # being processed
        await bench.lanes.put("q", ("q", 0))
        await bench.settle()
        await bench.lanes.put("p", ("p", 1))
        third = asyncio.create_task(bench.lanes.put("p", ("p", 2)))
        await bench.settle()
        assert (False, 20) == (third.done(), bench.lanes.bytes)
        gate.set()
        await third
        await bench.settle()
        assert (4, 0) == (len(bench.done), bench.lanes.bytes)
        bench.close()
        alone = Bench(max_bytes=1)
        await asyncio.wait_for(alone.lanes.put("p", ("p", 0)), 10)
        alone.close()

    asyncio.run(scenario())
