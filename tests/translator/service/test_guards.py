"""A dialect's guard stops the process before the offending message is written."""

import asyncio
import json

import pytest

from tests.translator.service._pipeline import CANAL_ROW, PARTITION, Bench, Record, record
from translator.errors import ContradictionError

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
    """In a run translated together, the earlier messages are written, and the batch is never completed."""
    with pytest.raises(ContradictionError, match=r"partition 3: the change at offset 2 .* offset 0\."):
        asyncio.run(bench.run(records(INSERT, UNRELATED, MISREAD, UNRELATED, UNRELATED)))
    assert [0, 1] == written(bench)
    assert [] == bench.accounted
    (mark,) = bench.read(bench.output.metadata_topic, 0)
    with pytest.raises(ContradictionError, match="stays stopped until its options change"):
        bench.contradictions.check(mark.key().decode(), mark.value())


def test_it_knows_what_came_in_earlier_batches(bench: Bench) -> None:
    """The batches of a partition form one history, separate from other partitions."""
    first, second = records(INSERT, MISREAD)
    asyncio.run(bench.run([first]))
    asyncio.run(bench.process(4, [second]))
    with pytest.raises(ContradictionError):
        asyncio.run(bench.process(3, [second]))


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
