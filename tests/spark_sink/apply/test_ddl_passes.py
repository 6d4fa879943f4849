"""Runs of a task, between which the driver makes the changes that tables request."""

from __future__ import annotations

import msgspec
import pytest

from spark_sink.apply.ddl_passes import DriverWork, SeenRequests, merge_reports
from spark_sink.errors import FatalError
from spark_sink.schema.evolution import AddColumns, TableColumn
from spark_sink.table_report import (
    LATENCY_BOUNDS,
    Conflict,
    Deferred,
    Done,
    Latency,
    NeedsDdl,
    NeedsRecords,
    NeedsSpark,
    Outcome,
    Parked,
)
from spark_sink.tables.changes import Marker
from spark_sink.tables.spark_operations import Clear, Order
from tests.spark_sink.records import report

STEP = AddColumns((TableColumn("n", "int"),))


def test_runs_add_up() -> None:
    """The work of each run counts once. What an earlier run did is no replay; what was done before the runs is."""
    first = report("t", NeedsSpark((), more=True), commits=2, skipped=1, rows=4, stale={"duplicate": 1}, megabytes=90)
    second = report("t", events=9, commits=1, skipped=3, rows=2, stale={"duplicate": 2}, late=1)
    other = report("u", rejected={"KEY_UNKNOWN": 1})
    (found, rest) = merge_reports([[first, other], [second]])
    counted = found.counters
    assert (3, 1, 6, 1, {"duplicate": 3}) == (
        counted.commits,
        counted.skipped,
        counted.rows,
        counted.late,
        counted.stale,
    )
    assert (Done(), 9, other, 90) == (found.outcome, counted.events, rest, counted.megabytes)


def test_a_run_after_a_step_is_the_first() -> None:
    """Before its table is changed, a run does nothing, so what the next run skips was done by another start."""
    asks = report("t", NeedsDdl(STEP), ignored={"watermark": 1})
    (found,) = merge_reports([[asks], [report("t", skipped=2, ignored={"watermark": 1})]])
    assert (Done(), 2, {"watermark": 1}) == (found.outcome, found.counters.skipped, found.counters.ignored)


def test_what_one_run_tells_stays() -> None:
    """A table is parked once, however often it is processed, and its latency is that of each commit."""
    latency = Latency((1,) * len(LATENCY_BOUNDS), 1, 0.25, 0.25, 0.25)
    first = msgspec.structs.replace(report("t", Parked("a rule", 7), latency=latency), version=4)
    (found,) = merge_reports([[first], [report("t", skipped=1)], [report("t", latency=latency)]])
    assert (Parked("a rule", 7), 7, 4) == (found.outcome, found.parked, found.version)
    assert (2, 0.5) == (found.counters.latency.count, found.counters.latency.sum)
    (found,) = merge_reports([[report("t", Deferred(3))], [report("t", skipped=1)]])
    assert (Deferred(3), 3) == (found.outcome, found.parked)


def test_what_is_left_to_the_driver() -> None:
    """Each outcome leads to one kind of work or none. A table that contradicts the configuration is refused."""
    orders = (Clear({}, Marker("a", 1)),)
    found = [report("t", outcome, route=route) for route, outcome in _by_route(orders)]
    work = DriverWork.of(found)
    assert DriverWork([("t", STEP)], {"t": orders}, {"records"}, {"ddl", "records", "spark and more"}) == work
    assert not DriverWork.of([report("t"), report("t", Parked("", 1)), report("t", Deferred(1))])
    refused = DriverWork.of([*found, report("other", Conflict("one"))])
    assert ({"other": "one"}, work.steps) == (refused.refused, refused.steps)


def _by_route(orders: tuple[Order, ...]) -> list[tuple[str, Outcome]]:
    return [
        ("ddl", NeedsDdl(STEP)),
        ("records", NeedsRecords()),
        ("spark", NeedsSpark(orders)),
        ("spark and more", NeedsSpark(orders, more=True)),
        ("done", Done()),
    ]


def test_nothing_is_asked_for_twice() -> None:
    """A table that requests the same change twice would loop forever. Another order, table or turn is allowed."""
    seen = SeenRequests()
    for first in (
        [report("t", NeedsDdl(STEP), events=9), report("u", NeedsDdl(STEP))],
        [report("t", NeedsDdl(STEP), route="another turn")],
        [report("t", NeedsRecords(), events=9)],
        [report("t", NeedsSpark((Clear({}, Marker("a", 1)),)))],
        [report("t", NeedsSpark((Clear({}, Marker("a", 2)),)))],
    ):
        assert set() == seen.repeated(first)
    assert {"t"} == seen.repeated([report("t", NeedsDdl(STEP), events=5), report("v", NeedsDdl(STEP))])
    assert {"t"} == seen.repeated([report("t", NeedsSpark((Clear({}, Marker("a", 2)),)))])
    with pytest.raises(FatalError, match="t requests its raw records again"):
        seen.repeated([report("t", NeedsRecords(), events=5)])


def test_a_repeated_request_is_refused() -> None:
    """The other tables get what they request, and the table runs once more, to be parked."""
    work = DriverWork.of([report("t", NeedsDdl(STEP), route="a"), report("u", NeedsDdl(STEP), route="b")])
    rest = work.without({"t"})
    assert [("u", STEP)] == rest.steps
    assert {"t": "it requests the same change again after the change was made"} == rest.refused
    assert {"a", "b"} == rest.again
