"""A dialect's guard stops the source before the offending message is written."""

import asyncio
import json

import pytest

from tests.translator.service._pipeline import CANAL_ROW, PARTITION, Bench, Record, record
from translator.state.contradiction_marks import Contradictions
from translator.state.partition_stops import stop_of

ROW = {"id": "1", "name": "a"}
INSERT = CANAL_ROW | {"es": 1000}
MISREAD = CANAL_ROW | {"type": "UPDATE", "data": [ROW], "old": [ROW | {"name": "b"}], "es": 2000}
"""Return a legacy update, whose `old` is the new row."""
UNRELATED = CANAL_ROW | {"data": [{"id": "2", "name": "c"}], "es": 3000}


@pytest.fixture
def bench() -> Bench:
    return Bench("canal", options={"profile": "dts"})


def written(bench: Bench) -> list[int]:
    """Return the raw offsets of the events in the canonical topic."""
    return [json.loads(event.value())["origin"]["offset"] for event in bench.read(bench.output.topic, PARTITION)]


def records(*documents: object) -> list[Record]:
    return [record(offset, document) for offset, document in enumerate(documents)]


@pytest.mark.requirement("canal.reject.8")
def test_nothing_from_the_contrary_message_on_is_written(bench: Bench) -> None:
    """In a run translated together, the earlier messages are written, and the batch ends with them."""
    asyncio.run(bench.run(records(INSERT, UNRELATED, MISREAD, UNRELATED, UNRELATED)))
    assert [0, 1] == written(bench)
    assert [2] == bench.ends
    assert [(2, 2, 2)] == [(account.records, account.translated, account.next_offset) for account in bench.accounted]
    mark, stopped = bench.read(bench.output.metadata_topic, 0)
    found = Contradictions(bench.settings.sources)
    assert "src" == found.apply(mark.key().decode(), mark.value())
    stop = stop_of(stopped.key().decode(), stopped.value())
    assert stop is not None
    assert (3, 2, "CONTRADICTION", found.found["src"]) == (stop.partition, stop.offset, stop.code, stop.reason)
    assert bench.pipeline.stopped == {("raw", 3): stop}


def test_no_partition_of_the_source_continues(bench: Bench) -> None:
    """Batches of this and of other partitions are given back, also after a rebalance."""
    first, second = records(INSERT, MISREAD)
    asyncio.run(bench.run([first]))
    assert not asyncio.run(bench.process(3, [second]))
    for _ in range(2):
        assert not asyncio.run(bench.process(3, records(UNRELATED)))
        assert not asyncio.run(bench.process(4, records(UNRELATED)))
        bench.pipeline.forget()
    assert [0] == written(bench)


def test_it_knows_what_came_in_earlier_batches(bench: Bench) -> None:
    """The batches of a partition form one history, separate from other partitions."""
    first, second = records(INSERT, MISREAD)
    asyncio.run(bench.run([first]))
    assert asyncio.run(bench.process(4, [second]))
    assert not asyncio.run(bench.process(3, [second]))
    assert "CONTRADICTION" == bench.pipeline.stopped["raw", 3].code


def test_it_forgets_partitions_that_were_given_up(bench: Bench) -> None:
    """Others may have changed the rows of a revoked partition meanwhile, so they are no longer evidence."""
    first, second = records(INSERT, MISREAD)
    asyncio.run(bench.run([first]))
    bench.pipeline.forget()
    asyncio.run(bench.run([second]))
    assert [0, 1] == written(bench)


def test_a_dead_letter_is_told_to_the_guard(bench: Bench) -> None:
    """A message without events may have changed any row."""
    first, second = records(INSERT, MISREAD)
    asyncio.run(bench.run([first, Record(1, b"{]"), Record(2, second.value)]))
    assert [0, 2] == written(bench)
