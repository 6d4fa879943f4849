"""No record that arrives at a bad moment of a rebalance is lost, and a fetch is one event for Faust. The tests simulate
the client.
"""

import asyncio
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

import pytest
from aiokafka.consumer.fetcher import Fetcher
from faust.types import TP

from translator.service.faust_transport import BatchConsumer
from translator.service.fetched_records import FetchedRecord
from translator.service.paced_fetcher import PacedFetcher
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
        self._next = {}
        self._n_acked = 0
        self._waiting_for_ack = None
        self._unacked_messages = WeakSet()
        self.fetched: Mapping[TP, list[Any]] = {FIRST: [object()]}

    def assignment(self) -> set[TP]:
        return {FIRST, SECOND}

    def _get_active_partitions(self) -> set[TP]:
        return {FIRST, SECOND}

    async def _wait_next_records(self, timeout: float) -> Any:  # noqa: ASYNC109  upstream's
        return self.fetched, {FIRST}

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


def _records(*offsets: int) -> list[FetchedRecord]:
    return [FetchedRecord(offset, 0, 0, None, b"", ()) for offset in offsets]


def test_a_fetch_is_one_event_with_a_batch_for_each_partition() -> None:
    """The batches are then in flight instead of the fetch, and each is acknowledged separately."""

    async def scenario() -> None:
        consumer = Consumer()
        consumer.flow_active = True
        consumer.fetched = {FIRST: _records(3, 4), SECOND: _records(7), TP("raw", 2): []}
        ((tp, fetch),) = [event async for event in consumer.getmany(1.0)]
        assert (FIRST, 1) == (tp, fetch.generation_id)
        consumer._unacked_messages.add(fetch)  # as Faust's stream does
        first, second = consumer.unpack(fetch)
        assert [(FIRST, [3, 4]), (SECOND, [7])] == [
            (batch.tp, [record.offset for record in batch.value]) for batch in (first, second)
        ]
        assert {first, second} == set(consumer._unacked_messages)
        assert consumer.ack(second)
        assert ({first}, {SECOND: 8}) == (set(consumer._unacked_messages), consumer._next)
        assert consumer.ack(first)
        assert (set(), {FIRST: 5, SECOND: 8}) == (set(consumer._unacked_messages), consumer._next)

    asyncio.run(scenario())


def test_an_empty_fetch_is_no_event() -> None:
    async def scenario() -> None:
        consumer = Consumer()
        consumer.flow_active = True
        consumer.fetched = {FIRST: []}
        assert [] == [event async for event in consumer.getmany(1.0)]

    asyncio.run(scenario())


def test_requests_to_a_broker_are_paced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request to each broker is sent immediately, and the next one later. A waiting request can be
    cancelled.
    """
    sent: list[int] = []

    async def send(self: Fetcher, assignment: object, node_id: int, request: object) -> bool:
        sent.append(node_id)
        return True

    monkeypatch.setattr(Fetcher, "_proc_fetch_request", send)
    monkeypatch.setattr(PacedFetcher, "seconds", 3600.0)

    async def scenario() -> None:
        fetcher = PacedFetcher.__new__(PacedFetcher)
        fetcher._due = {}
        assert [True, True] == [await fetcher._proc_fetch_request(None, node, None) for node in (1, 2)]
        waiting = asyncio.create_task(fetcher._proc_fetch_request(None, 1, None))
        for _ in range(50):
            await asyncio.sleep(0)
        assert (False, [1, 2]) == (waiting.done(), sent)
        waiting.cancel()
        assert not await waiting
        assert [1, 2] == sent

    asyncio.run(scenario())
