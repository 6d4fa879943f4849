"""How far the tables are behind the topic."""

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
    """Over all partitions, those that came after the batch was planned included; a partition that lost its end is none
    that makes up for others, and a topic that is gone says nothing."""
    assert (lag, []) == _after(ENTRY, ends)


@pytest.mark.parametrize(
    ("entry", "ends", "why"),
    [
        (ENTRY, FatalError("no broker"), "no broker"),
        (ENTRY.replace("v1", "v2"), {0: 1}, "an offset log of version v2, not v1"),
        (ENTRY.replace("cdc.", "another."), {0: 1}, "'cdc.canonical'"),
    ],
)
def test_not_known(entry: str, ends: Mapping[int, int] | Exception, why: str) -> None:
    """Whatever is the matter, no batch fails for it; the log says what."""
    lag, (line,) = _after(entry, ends)
    assert (None, "lag unknown", 3, why) == (lag, line["event"], line["batch"], line["reason"])


FIRST = ENTRY.replace('{"1":7,"0":120}', '{"1":7,"0":100}')


@pytest.mark.parametrize(
    ("batch", "begins", "taken"),
    [(3, None, 20), (0, lambda: {0: 70}, 37), (0, lambda: {0: 100, 1: 9}, 0), (0, None, None)],
)
def test_what_a_batch_takes(batch: int, begins: Callable[[], Mapping[int, int]] | None, taken: int | None) -> None:
    """Offsets since the plan before; of the first batch since the topic begins, where it is read from there."""
    entries = {0: FIRST, 2: FIRST, 3: ENTRY}
    with capture_logs() as log:
        assert taken == Lag("cdc.canonical", entries.__getitem__, dict, begins).taken(batch)
    assert [] == log


def test_the_size_of_a_batch_is_not_known() -> None:
    """No batch fails for it either."""
    with capture_logs() as log:
        assert Lag("cdc.canonical", lambda batch: "v2\n{}", dict).taken(3) is None
    assert [("size of batch unknown", 3, "an offset log of version v2, not v1")] == [
        (line["event"], line["batch"], line["reason"]) for line in log
    ]


def test_a_plan_is_read_once() -> None:
    """It lies in the store of the checkpoint, and every batch would wait for it three times."""
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
    """The entry of the log of offsets tells the end of every partition."""
    assert {0: 120, 1: 7} == planned_offsets(ENTRY, "cdc.canonical")
