"""A schema is in its topic before the first row that names it, and holds only those who need it."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError

from dev.broker import Broker
from tests.translator.service._pipeline import CANAL_ROW, PARTITION, Bench, Holding, record
from translator.errors import FatalError

OTHER_TABLE = CANAL_ROW | {"table": "u"}


@pytest.fixture
def holding(broker: Broker) -> Iterator[tuple[Bench, Holding]]:
    bench = Bench(broker.bootstrap, "canal", producer=Holding)
    assert isinstance(bench.producer, Holding)
    yield bench, bench.producer
    bench.close()


def test_a_new_schema_holds_no_other_partition(holding: tuple[Bench, Holding]) -> None:
    """While a schema is being written, its rows wait and those of other partitions do not."""
    bench, producer = holding

    async def scenario() -> None:
        producer.open = True
        await bench.process(2, [record(0, CANAL_ROW)])
        producer.open = False
        waiting = asyncio.create_task(bench.process(3, [record(0, OTHER_TABLE)]))
        await producer.reports(1)
        await bench.process(2, [record(1, CANAL_ROW)])
        await bench.acknowledged(2)
        assert not waiting.done()
        assert [] == bench.read(bench.output.topic, PARTITION)
        producer.release()
        await waiting
        await bench.acknowledged(3)

    asyncio.run(scenario())
    assert 1 == len(bench.read(bench.output.topic, PARTITION))
    assert [0, 1] == [json.loads(event.value())["origin"]["offset"] for event in bench.read(bench.output.topic, 0)]


def test_a_schema_that_two_partitions_meet_is_written_once(holding: tuple[Bench, Holding]) -> None:
    """Who comes second waits for the first, and writes no row before either."""
    bench, producer = holding

    async def scenario() -> None:
        tasks = [asyncio.create_task(bench.process(partition, [record(0, CANAL_ROW)])) for partition in (2, 3)]
        await producer.reports(1)
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in tasks)
        producer.release()
        await asyncio.gather(*tasks)
        await bench.acknowledged(2)

    asyncio.run(scenario())
    assert 1 == len(bench.read(bench.output.schemas_topic, 0))
    assert [1, 1] == [len(bench.read(bench.output.topic, partition)) for partition in (0, PARTITION)]


def test_a_schema_that_is_not_written_stops_every_row_of_it(holding: tuple[Bench, Holding]) -> None:
    """An error is fatal for all who need the schema, then and later; none of its rows is written."""
    bench, producer = holding

    async def scenario() -> None:
        tasks = [asyncio.create_task(bench.process(partition, [record(0, CANAL_ROW)])) for partition in (2, 3)]
        await producer.reports(1)
        producer.release(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
        for task in tasks:
            with pytest.raises(FatalError, match=r"cannot write to out-.*\.schemas"):
                await task
        with pytest.raises(FatalError, match="cannot write to"):
            await bench.process(1, [record(0, CANAL_ROW)])

    asyncio.run(scenario())
    bench.producer.flush(10)
    assert [[], [], [], []] == [bench.read(bench.output.topic, partition) for partition in range(4)]


def test_who_stops_waiting_takes_nothing_from_the_others(holding: tuple[Bench, Holding]) -> None:
    """A partition that is given up while its schema is being written leaves the writing to those who still need it."""
    bench, producer = holding

    async def scenario() -> None:
        first, second = (asyncio.create_task(bench.process(partition, [record(0, CANAL_ROW)])) for partition in (2, 3))
        await producer.reports(1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        producer.release()
        await second

    asyncio.run(scenario())
    bench.producer.flush(10)
    assert 1 == len(bench.read(bench.output.topic, PARTITION))
