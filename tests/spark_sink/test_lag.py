"""The lag of the tables behind the topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from spark_sink.errors import FatalError
from spark_sink.lag import Lag
from spark_sink.spark.checkpoint import planned_offsets

ENTRY = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"cdc.canonical":{"1":7,"0":120}}'


def _after(entry: str, ends: Mapping[int, int] | Exception) -> tuple[int | None, list[Any]]:
    def asked() -> Mapping[int, int]:
        if isinstance(ends, Exception):
            raise ends
        return ends

    with capture_logs() as log:
        return Lag("cdc.canonical", lambda batch: entry if batch == 3 else "", asked).after(3), log


@pytest.mark.parametrize(
    ("ends", "lag"),
    [
        ({0: 120, 1: 7}, 0),
        ({0: 125, 1: 9}, 7),
        ({0: 120, 1: 7, 2: 30}, 30),
        ({0: 100, 1: 9}, 2),
        ({}, None),
    ],
)
def test_what_is_to_come(ends: Mapping[int, int], lag: int | None) -> None:
    """The lag covers all partitions, including records after the plan of the batch. A partition whose end moved back
    does not offset others, and a deleted topic has no lag.
    """
    assert (lag, []) == _after(ENTRY, ends)


@pytest.mark.parametrize(
    ("entry", "ends", "why"),
    [
        (ENTRY, FatalError("no broker"), "no broker"),
        (ENTRY.replace("v1", "v2"), {0: 1}, "the offset log has version v2; expected v1"),
        (ENTRY.replace("cdc.", "another."), {0: 1}, "'cdc.canonical'"),
    ],
)
def test_not_known(entry: str, ends: Mapping[int, int] | Exception, why: str) -> None:
    """An unknown lag never fails a batch, and the log states the cause."""
    lag, (line,) = _after(entry, ends)
    assert (None, "lag unknown", 3, why) == (lag, line["event"], line["batch"], line["reason"])


FIRST = ENTRY.replace('{"1":7,"0":120}', '{"1":7,"0":100}')


@pytest.mark.parametrize(
    ("batch", "begins", "taken"),
    [(3, None, 20), (0, lambda: {0: 70}, 37), (0, lambda: {0: 100, 1: 9}, 0), (0, None, None)],
)
def test_what_a_batch_takes(batch: int, begins: Callable[[], Mapping[int, int]] | None, taken: int | None) -> None:
    """A batch covers the offsets since the previous plan. The first one can count from the beginning of the topic."""
    entries = {0: FIRST, 2: FIRST, 3: ENTRY}
    with capture_logs() as log:
        assert taken == Lag("cdc.canonical", entries.__getitem__, dict, begins).taken(batch)
    assert [] == log


def test_the_size_of_a_batch_is_not_known() -> None:
    """An unknown batch size does not fail the batch."""
    with capture_logs() as log:
        assert Lag("cdc.canonical", lambda batch: "v2\n{}", dict).taken(3) is None
    assert [("the size of a batch is unknown", 3, "the offset log has version v2; expected v1")] == [
        (line["event"], line["batch"], line["reason"]) for line in log
    ]


def test_a_plan_is_read_once() -> None:
    """A plan is in the checkpoint's store, where reading it three times would slow down every batch."""
    read: list[int] = []

    def entry(batch: int) -> str:
        read.append(batch)
        return ENTRY

    lag = Lag("cdc.canonical", entry, lambda: {0: 120, 1: 7}, dict)
    for batch in range(3):
        lag.taken(batch)
        lag.after(batch)
    assert [0, 1, 2] == read


def test_what_spark_has_planned() -> None:
    """An entry of Spark's offset log contains the end of every partition."""
    assert {0: 120, 1: 7} == planned_offsets(ENTRY, "cdc.canonical")
