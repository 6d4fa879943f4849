"""`spark-sink rebuild --without`: a table as if some events had never arrived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_sink.control_tables.requests import State
from spark_sink.operations import rebuild as rebuild_module
from spark_sink.operations.rebuild_options import options_for_table
from spark_sink.schema.table_spec import Mode
from tests.spark_sink.changes import OTHER_SCOPE, SCOPE, change
from tests.spark_sink.lake import Lake, Topic
from tests.spark_sink.operations.rebuilt import (
    COPY,
    FIRST,
    ITEMS,
    ORDERS,
    WIDER,
    copy,
    filled,
    lake_without,
    rebuild_in_place,
    values,
)


@pytest.mark.parametrize("mode", Mode)
def test_without_some_events(lake_of_format: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    _check_without(lake_of_format, tmp_path, monkeypatch, mode, seed=0)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("mode", Mode)
def test_without_some_other_events(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, seed: int
) -> None:
    _check_without(lake, tmp_path, monkeypatch, mode, seed)


def _check_without(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, seed: int) -> None:
    """Compare the result with a table whose batches lacked these events: as a copy, in place, and with later events."""
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    topic, batches = filled(lake, mode, seed)
    live, items = values(lake), values(lake, ITEMS)
    options = "0:3", "0:5-8", "batch:2"
    other = lake_without(lake, tmp_path / "beside", mode, batches, [(3, 3), (5, 8), (20, 29)])
    assert State.DONE == copy(lake, None, *options).state
    assert values(other) == values(lake, COPY) != live
    assert live == values(lake)
    assert State.DONE == rebuild_in_place(lake, *options).state
    assert (values(other), []) == (values(lake), lake.parked())
    later = [change("u", {"id": 1}, {"name": "later", "more": 1}, pos=99, schema=WIDER)]
    topic.apply(4, later)
    other.applier(other.records(later, 40), 4)
    assert values(other) == values(lake)
    assert items == values(lake, ITEMS)
    assert State.DONE == rebuild_in_place(lake).state
    assert live != values(lake)  # the later event


@pytest.mark.parametrize("mode", Mode)
def test_a_rebuild_in_place_is_killed(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    """Every process continues without the same events. Events that arrive meanwhile are included once."""
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    topic, batches = filled(lake, mode)
    options = options_for_table(lake.control.batches, ["0:30-33"])
    assert options is not None
    lake.control.requests.ask("rebuild", ORDERS, options.text())
    while (requests := lake.requests()).run() and requests.run():
        lake.use(lake.rules)
        lake.topic = topic
        number = len(batches)
        batches.append([change("c", {"id": 100 + number}, {"name": "x"}, pos=100 + number, schema=FIRST)])
        topic.apply(number, batches[-1])
    assert (State.DONE, []) == (lake.control.requests.requests()[0].state, lake.parked())
    assert values(lake_without(lake, tmp_path / "other", mode, batches, [(30, 33)])) == values(lake)
    assert len(batches) > 5


class TwoPartitions(Topic):
    """A topic with a second partition, whose records come from another scope."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        self._all = lake
        self.partitions = [
            [
                change("c", {"id": n}, {"name": "x"}, pos=n + 1, scope=scope, schema=FIRST)
                for n in range(first, first + 10)
            ]
            for first, scope in ((0, SCOPE), (100, OTHER_SCOPE))
        ]

    def begins(self) -> dict[int, int]:
        return {0: 0, 1: 0}

    def read(self, begin: Any, end: Any) -> Any:
        read = []
        for one, first in begin.items():
            records = self._all.records(self.partitions[one][first : end[one]], first)
            numbers = pa.array([one] * len(records), pa.int32())
            read.append(records.set_column(records.column_names.index("partition"), "partition", numbers))
        return pa.concat_tables(read)


def test_two_partitions(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset range concerns one partition, and a batch has a range in each."""
    lake.announce(FIRST)
    topic = TwoPartitions(lake)
    lake.applier(topic.read({0: 0, 1: 0}, {0: 4, 1: 6}), 0)
    lake.applier(topic.read({0: 4, 1: 6}, {0: 10, 1: 10}), 1)
    monkeypatch.setattr(rebuild_module, "SLICE", 6)

    def ids(as_of: str | None, *without: str) -> list[int]:
        asked = copy(lake, as_of, *without)
        assert (State.DONE, None) == (asked.state, asked.error)
        return [row["id"] for row in sorted(values(lake, COPY), key=lambda row: int(row["id"]))]

    every = [*range(10), *range(100, 110)]
    assert [*range(4), *range(100, 106)] == ids("0")
    assert [id for id in every if id not in (102, 103)] == ids(None, "1:2-3")
    assert [*range(4, 10), *range(106, 110)] == ids(None, "batch:0")


def test_waiting_events_that_are_left_out(lake_of_format: Lake, tmp_path: Path) -> None:
    """A bad load waits because its table was parked. A rebuild without it applies only the events after it. A copy
    includes waiting events.
    """
    lake = lake_of_format
    topic, batches = filled(lake)
    lake.command("park")
    bad = [change("c", {"id": id}, {"name": "bad"}, pos=50 + id, schema=FIRST) for id in range(5)]
    good = [change("c", {"id": 9}, {"name": "good"}, pos=60, schema=FIRST)]
    topic.apply(4, bad)
    topic.apply(5, good)
    assert State.DONE == copy(lake).state
    assert {"good", "bad"} <= {row["name"] for row in values(lake, COPY)}
    asked = rebuild_in_place(lake, "batch:4")
    assert (State.DONE, None, []) == (asked.state, asked.error, lake.parked())
    other = lake_without(lake, tmp_path / "beside", Mode.MIRROR, [*batches, bad, good], [(40, 44)])
    assert values(other) == values(lake)


def test_a_failed_rebuild_starts_over_with_other_options(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, _ = filled(lake, Mode.CHANGELOG)
    expected = values(lake)
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    read = topic.read
    monkeypatch.setattr(topic, "read", lambda begin, end: read(begin, end) if begin[0] < 18 else 1 / 0)
    assert State.FAILED == rebuild_in_place(lake, "0:0-12").state
    monkeypatch.setattr(topic, "read", read)
    assert State.DONE == rebuild_in_place(lake).state
    assert (expected, []) == (values(lake), lake.parked())
