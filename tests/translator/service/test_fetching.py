"""No record that arrives at a bad moment of a rebalance is lost. The tests simulate that moment."""

import asyncio
from collections.abc import Mapping
from typing import Any

from faust.types import TP

from translator.service.faust_transport import BatchConsumer
from translator.service.start_offsets import FoundOffsets

FIRST, SECOND = TP("raw", 0), TP("raw", 1)


class StartOffsets:
    """The group has a committed offset for only one of two partitions."""

    async def find(self, _: object) -> FoundOffsets:
        return FoundOffsets({("raw", 0): 0, ("raw", 1): 7}, {})


class Consumer(BatchConsumer):
    """A consumer whose client answers a fetch after partitions are placed and before the flow resumes."""

    def __init__(self) -> None:
        self.flow_active = False
        self.positions: Any = StartOffsets()
        self.offsets = None
        self.sought: list[Mapping[TP, int]] = []
        self._placed = {}
        self._placings = 0

    def assignment(self) -> set[TP]:
        return {FIRST, SECOND}

    def _get_active_partitions(self) -> set[TP]:
        return {FIRST, SECOND}

    async def _wait_next_records(self, timeout: float) -> Any:  # noqa: ASYNC109  upstream's
        return {FIRST: [object()]}, {FIRST}

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        self.sought.append(dict(partitions))

    class app:  # noqa: N801  an attribute of upstream's consumer
        consumer_generation_id = 1

    @property
    def should_stop(self) -> bool:
        return False


def test_what_is_fetched_before_the_flow_goes_on_is_fetched_again() -> None:
    """This includes offset 0: records of a fresh partition were lost when two workers started together."""

    async def run() -> Consumer:
        consumer = Consumer()
        await consumer.perform_seek()
        assert [] == [batch async for batch in consumer.getmany(1.0)]
        return consumer

    assert [{FIRST: 0, SECOND: 7}] * 2 == asyncio.run(run()).sought
