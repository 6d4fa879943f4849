"""The phases of a batch add up to its duration."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from spark_sink.apply.phases import TOTAL, Phase, Stopwatch
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake


def test_a_stopwatch_loses_no_time() -> None:
    """Each moment belongs to the open phase, and a repeated phase has the sum of its times."""
    times = iter([10.0, 11.0, 13.0, 17.0, 25.0])
    watch = Stopwatch(Phase.SCHEMAS, lambda: next(times))
    for phase in (Phase.TASKS, Phase.DDL, Phase.TASKS):
        watch.enter(phase)
    expected = dict.fromkeys(Phase, 0.0) | {Phase.SCHEMAS: 1, Phase.TASKS: 2 + 8, Phase.DDL: 4}
    assert {**expected, TOTAL: 15} == watch.stop()


def test_the_phases_of_a_batch_sum_up_to_it(lake: Lake) -> None:
    """The sum is exact in the metrics and rounded in the log. A batch that creates a table has time in every phase that
    exists without Spark and brokers.
    """
    schema = lake.announce(schema_of({"id": "int64", "n": "int32"}))
    with capture_logs() as logged:
        lake.apply(0, [change("c", {"id": 1}, {"n": 1}, pos=1, schema=schema)])
    found = {
        phase: lake.metrics.registry.get_sample_value("cdc_sink_batch_seconds_total", {"phase": phase}) or 0.0
        for phase in (*Phase, TOTAL)
    }
    assert pytest.approx(found[TOTAL]) == sum(found[phase] for phase in Phase)
    assert {Phase.SCHEMAS, Phase.BOOKS, Phase.TASKS, Phase.DDL} <= {phase for phase in Phase if found[phase]}
    begun, *_, line = (entry for entry in logged if entry["event"].startswith("batch"))
    assert ("batch started", 0, None) == (begun["event"], begun["batch"], begun["offsets"])
    assert (1, False) == (line["older_than_a_day"], "latency_mean_ms" in line), "events of 1970 tell nothing of today"
    assert abs(line["total_ms"] - sum(line[f"{phase}_ms"] for phase in Phase)) <= len(Phase)
