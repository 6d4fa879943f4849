"""A schema is in its topic before the first row that references it, and delays only rows that need it."""

import asyncio
import json

import pytest

from tests.translator.service._pipeline import CANAL_ROW, PARTITION, Bench, record
from translator.errors import FatalError

OTHER_TABLE = CANAL_ROW | {"table": "u"}


SCHEMAS = "out.schemas"
BEFORE = (PARTITION - 1) % 4
"""The partition for raw partition 2."""


@pytest.fixture
def bench() -> Bench:
    """A pipeline whose schemas topic acknowledges slowly."""
    bench = Bench("canal")
    bench.delivery.withhold(SCHEMAS)
    return bench


def test_a_new_schema_holds_no_other_partition(bench: Bench) -> None:
    """While a schema is being written, its rows wait and those of other partitions do not."""

    async def scenario() -> None:
        bench.delivery.release(SCHEMAS)
        await bench.process(2, [record(0, CANAL_ROW)])
        bench.delivery.withhold(SCHEMAS)
        waiting = asyncio.create_task(bench.process(3, [record(0, OTHER_TABLE)]))
        await bench.withheld(SCHEMAS, 1)
        await bench.process(2, [record(1, CANAL_ROW)])
        await bench.acknowledged(2)
        assert not waiting.done()
        assert [] == bench.read(bench.output.topic, PARTITION)
        bench.delivery.release(SCHEMAS)
        await waiting
        await bench.acknowledged(3)

    asyncio.run(scenario())
    assert 1 == len(bench.read(bench.output.topic, PARTITION))
    assert [0, 1] == [json.loads(event.value())["origin"]["offset"] for event in bench.read(bench.output.topic, BEFORE)]


def test_a_schema_that_two_partitions_meet_is_written_once(bench: Bench) -> None:
    """The second partition waits for the first, and writes no earlier row either."""

    async def scenario() -> None:
        tasks = [asyncio.create_task(bench.process(partition, [record(0, CANAL_ROW)])) for partition in (2, 3)]
        await bench.withheld(SCHEMAS, 1)
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in tasks)
        bench.delivery.release(SCHEMAS)
        await asyncio.gather(*tasks)
        await bench.acknowledged(2)

    asyncio.run(scenario())
    assert 1 == len(bench.read(bench.output.schemas_topic, 0))
    assert [1, 1] == [len(bench.read(bench.output.topic, partition)) for partition in (BEFORE, PARTITION)]


def test_a_schema_that_is_not_written_stops_every_row_of_it(bench: Bench) -> None:
    """The error is fatal for all rows that need the schema, now and later, and none of them is written."""

    async def scenario() -> None:
        tasks = [asyncio.create_task(bench.process(partition, [record(0, CANAL_ROW)])) for partition in (2, 3)]
        await bench.withheld(SCHEMAS, 1)
        bench.delivery.release(SCHEMAS, "this user is not allowed to write to it")
        for task in tasks:
            with pytest.raises(FatalError, match=r"cannot write to out\.schemas"):
                await task
        with pytest.raises(FatalError, match="cannot write to"):
            await bench.process(1, [record(0, CANAL_ROW)])

    asyncio.run(scenario())
    assert [[], [], [], []] == [bench.read(bench.output.topic, partition) for partition in range(4)]


def test_who_stops_waiting_takes_nothing_from_the_others(bench: Bench) -> None:
    """If a partition is revoked while its schema is being written, the write continues for those that still need it."""

    async def scenario() -> None:
        first, second = (asyncio.create_task(bench.process(partition, [record(0, CANAL_ROW)])) for partition in (2, 3))
        await bench.withheld(SCHEMAS, 1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        bench.delivery.release(SCHEMAS)
        await second

    asyncio.run(scenario())
    assert 1 == len(bench.read(bench.output.topic, PARTITION))
