"""A guard of a dialect in a pipeline: it stops the process before what it objects to is written."""

import asyncio
import json

import pytest

from tests.translator.service._pipeline import CANAL_ROW, PARTITION, Bench, Record, record
from translator.errors import ContradictionError

ROW = {"id": "1", "name": "a"}
INSERT = CANAL_ROW | {"es": 1000}
MISREAD = CANAL_ROW | {"type": "UPDATE", "data": [ROW], "old": [ROW | {"name": "b"}], "es": 2000}
"""A legacy update: `old` is the row after it."""
UNRELATED = CANAL_ROW | {"data": [{"id": "2", "name": "c"}], "es": 3000}


@pytest.fixture
def bench() -> Bench:
    return Bench("canal", options={"profile": "dts"})


def written(bench: Bench) -> list[int]:
    """Raw offsets of the events that lie in the canonical topic."""
    return [json.loads(event.value())["origin"]["offset"] for event in bench.read(bench.output.topic, PARTITION)]


def records(*documents: object) -> list[Record]:
    return [record(offset, document) for offset, document in enumerate(documents)]


@pytest.mark.requirement("canal.reject.8")
def test_nothing_from_the_contrary_message_on_is_written(bench: Bench) -> None:
    """In the middle of a run that was translated together: what precedes it is written, its batch is never done."""
    with pytest.raises(ContradictionError, match=r"partition 3: the change at offset 2 .* offset 0\."):
        asyncio.run(bench.run(records(INSERT, UNRELATED, MISREAD, UNRELATED, UNRELATED)))
    assert [0, 1] == written(bench)
    assert [] == bench.accounted
    (mark,) = bench.read(bench.output.metadata_topic, 0)
    with pytest.raises(ContradictionError, match="stays stopped until its options change"):
        bench.contradictions.check(mark.key().decode(), mark.value())


def test_it_knows_what_came_in_earlier_batches(bench: Bench) -> None:
    """Batches of one partition are one history; another partition is another."""
    first, second = records(INSERT, MISREAD)
    asyncio.run(bench.run([first]))
    asyncio.run(bench.process(4, [second]))
    with pytest.raises(ContradictionError):
        asyncio.run(bench.process(3, [second]))


def test_it_forgets_partitions_that_were_given_up(bench: Bench) -> None:
    """What others did with a partition meanwhile is not known: its rows are no evidence any more."""
    first, second = records(INSERT, MISREAD)
    asyncio.run(bench.run([first]))
    bench.pipeline.forget()
    asyncio.run(bench.run([second]))
    assert [0, 1] == written(bench)


def test_a_dead_letter_is_told_to_the_guard(bench: Bench) -> None:
    """A message that has no events may have changed any row."""
    first, second = records(INSERT, MISREAD)
    asyncio.run(bench.run([first, Record(1, b"{]"), Record(2, second.value)]))
    assert [0, 2] == written(bench)
