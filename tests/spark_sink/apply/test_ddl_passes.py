"""Runs of the task between which the driver does what tables ask for."""

from __future__ import annotations

import pytest

from spark_sink.apply.ddl_passes import Asked, merge_reports
from spark_sink.errors import FatalError
from spark_sink.events.latency import BOUNDS, Latency
from spark_sink.schema.evolution import AddColumns, TableColumn
from spark_sink.table_report import TableReport
from spark_sink.tables.protocols import Marker
from spark_sink.tables.spark_operations import WriteMarker

STEP = AddColumns((TableColumn("n", "int"),))


def test_runs_add_up() -> None:
    """What each run did counts once; what an earlier run did is no replay for a later one, what came before is."""
    first = TableReport("t", "r", 3, 9, engine="spark", commits=2, skipped=1, rows=4, stale={"duplicate": 1}, more=True)
    first.megabytes = 90
    second = TableReport("t", "r", 3, 9, engine="spark", commits=1, skipped=3, rows=2, stale={"duplicate": 2}, late=1)
    other = TableReport("u", "r", 3, 1, rejected={"KEY_UNKNOWN": 1})
    (report, rest) = merge_reports([[first, other], [second]])
    assert (3, 1, 6, 1, {"duplicate": 3}) == (report.commits, report.skipped, report.rows, report.late, report.stale)
    assert (False, 9, other, 90) == (report.more, report.events, rest, report.megabytes)


def test_a_run_after_a_step_is_the_first() -> None:
    """Before its table was changed a run did nothing: what the next one skips was done by another start."""
    asks = TableReport("t", "r", 0, 9, step=STEP, ignored={"watermark": 1})
    (report,) = merge_reports([[asks], [TableReport("t", "r", 0, 9, skipped=2, ignored={"watermark": 1})]])
    assert (None, 2, {"watermark": 1}) == (report.step, report.skipped, report.ignored)


def test_what_one_run_tells_stays() -> None:
    """A table is parked once, however often it is met again, and its latency is that of each commit."""
    latency = Latency((1,) * len(BOUNDS), 1, 0.25, 0.25)
    first = TableReport("t", "r", 0, 9, refused="a rule", parked=7, version=4, latency=latency)
    (report,) = merge_reports(
        [[first], [TableReport("t", "r", 0, 9, parked=7)], [TableReport("t", "r", 0, 9, latency=latency)]]
    )
    assert ("a rule", 7, 4, 2, 0.5) == (
        report.refused,
        report.parked,
        report.version,
        report.latency.count,
        report.latency.sum,
    )


def test_nothing_is_asked_for_twice() -> None:
    """A table that asks again for what was done would do so for ever; another order, or another table or turn, may."""
    asked = Asked()
    asked.take([TableReport("t", "r", 0, 9, step=STEP), TableReport("u", "r", 0, 9, step=STEP)])
    asked.take([TableReport("t", "another turn", 0, 9, step=STEP)])
    asked.take([TableReport("t", "r", 0, 9, wants_records=True)])
    asked.take([TableReport("t", "r", 0, 9, orders=[WriteMarker(Marker("a", 1))])])
    asked.take([TableReport("t", "r", 0, 9, orders=[WriteMarker(Marker("a", 2))])])
    for again in (
        TableReport("t", "r", 0, 5, step=STEP),
        TableReport("t", "r", 0, 5, wants_records=True),
        TableReport("t", "r", 0, 9, orders=[WriteMarker(Marker("a", 2))]),
    ):
        with pytest.raises(FatalError, match="t asks for the same change again"):
            asked.take([again])
