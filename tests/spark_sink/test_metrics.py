"""The metrics that a scrape of the sink returns."""

from __future__ import annotations

import math
import urllib.request
from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pytest

from spark_sink import table_report
from spark_sink.control_tables.verified import Standing, Verification
from spark_sink.events import event_columns
from spark_sink.events.parking import Cause
from spark_sink.metrics import Metrics
from spark_sink.probes import Health, serve
from spark_sink.table_report import (
    LATENCY_BOUNDS,
    NO_LATENCY,
    Latency,
    Parked,
)
from tests.spark_sink.records import report


def _scrape(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def test_a_scrape() -> None:
    """A scrape has events by table up to the cap, others by reason, parked tables, the latency and the last lag."""
    metrics = Metrics(tables=1)
    port = serve("127.0.0.1", 0, metrics.registry, Health())
    latency = Latency.of(pa.chunked_array([[0, 1_000_000, 8_000_000, 20_000_000, None]]), 10_000_000)
    first = report("a", events=4, commits=1, stale={"duplicate": 2}, rejected={"KEY_UNKNOWN": 1}, latency=latency)
    parked = report("b", Parked("no", 3), events=3)
    assert math.isnan(_scrape(port)["cdc_sink_lag_records"])
    metrics.batch([first, parked], {"b": Cause("COMMAND", "", 0, 5)}, {"total": 1.5, "ddl": 0.5}, 7)
    metrics.batch([report("c", events=2, commits=1)], {}, {"total": 1.0}, None)
    found = _scrape(port)
    assert {
        'cdc_sink_events_total{table="a"}': 4,
        'cdc_sink_events_total{table="other"}': 5,
        'cdc_sink_commits_total{table="other"}': 1,
        'cdc_sink_stale_events_total{reason="duplicate"}': 2,
        'cdc_sink_quarantined_events_total{reason="KEY_UNKNOWN"}': 1,
        "cdc_sink_parked_events_total": 3,
        "cdc_sink_parked_tables": 0,
        "cdc_sink_parked_events_waiting": 0,
        'cdc_sink_batch_seconds_total{phase="total"}': 2.5,
        "cdc_sink_batches_total": 2,
        "cdc_sink_lag_records": 7,
        'cdc_sink_latency_seconds_bucket{le="0.5"}': 1,
        'cdc_sink_latency_seconds_bucket{le="2.5"}': 2,
        'cdc_sink_latency_seconds_bucket{le="10.0"}': 4,
        "cdc_sink_latency_seconds_sum": 21,
    }.items() <= found.items()


def test_results_of_verifications() -> None:
    """Tables that share a label show the oldest time, and all of their rows. An inconclusive verification changes
    nothing, and results that are no longer stored are not shown.
    """
    metrics = Metrics(tables=1)
    port = serve("127.0.0.1", 0, metrics.registry, Health())
    first = Verification("a", "topic", datetime.fromtimestamp(10, UTC), 1, datetime.fromtimestamp(9, UTC), 5, 0, 0)
    b, c, d = (first._replace(table=table, differing=count) for table, count in (("b", 2), ("c", 3), ("d", 1)))
    found = [
        Standing(first, first, first),
        Standing(b, b._replace(at=datetime.fromtimestamp(8, UTC)), b),
        Standing(c._replace(differing=None), c._replace(at=datetime.fromtimestamp(6, UTC)), c),
        Standing(d, None, d),
        Standing(d._replace(differing=None), None, None),
    ]
    metrics.verified([Standing(first._replace(against="database:old"), first, first)])
    metrics.verified(found)
    shown = {name: value for name, value in _scrape(port).items() if "verif" in name}
    assert shown == {
        'cdc_sink_last_verified_timestamp_seconds{against="topic",table="a"}': 10,
        'cdc_sink_last_verified_timestamp_seconds{against="topic",table="other"}': 6,
        'cdc_sink_verify_differing_rows{against="topic",table="a"}': 0,
        'cdc_sink_verify_differing_rows{against="topic",table="other"}': 6,
    }


@pytest.fixture(params=[0, event_columns.FEW], ids=["in columns", "one by one"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute latencies in either way."""
    monkeypatch.setattr(table_report, "FEW", request.param)


@pytest.mark.usefixtures("few")
def test_latencies_add_up() -> None:
    """The histograms of two workers add up to one over all events. No time is negative, and none means no event."""
    one, other = pa.chunked_array([[5, 10**9]]), pa.chunked_array([[7 * 10**11, 3]])
    now = 10**12
    together = Latency.of(pa.chunked_array([*one.chunks, *other.chunks]), now)
    assert together == Latency.of(one, now) + Latency.of(other, now)
    assert (len(LATENCY_BOUNDS), 4) == (len(together.within), together.count)
    assert NO_LATENCY == Latency.of(pa.chunked_array([pa.nulls(2, pa.int64())]), now)
    assert 0 == Latency.of(pa.chunked_array([[5]]), 0).greatest


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(20))
def test_a_latency_is_within_the_bounds_that_it_does_not_exceed(seed: int) -> None:
    random, micros = Random(seed), [round(bound * 10**6) for bound in LATENCY_BOUNDS]
    ages = [random.choice(micros) + random.choice((-1, 0, 1)) for _ in range(random.choice((1, 2, 9)))]
    found = Latency.of(pa.chunked_array([[-age for age in ages]]), 0)
    assert tuple(sum(age <= bound for age in ages) for bound in micros) == found.within


@pytest.mark.usefixtures("few")
def test_what_is_old_is_history() -> None:
    """Events older than a day count in the histogram's sum, but not in the live latency."""
    day, now = 86_400_000_000, 10 * 86_400_000_000
    found = Latency.of(pa.chunked_array([[now - day, now - 2_000_000], [now - day - 1, 0]]), now)
    assert (4, 2, 86_402.0, 86_400.0) == (found.count, found.live_count, found.live, found.greatest)
    assert (found.live, found.greatest) == ((found + found).live / 2, (found + found).greatest)
    old = Latency.of(pa.chunked_array([[0]]), now)
    assert (1, 0, 0.0, 0.0) == (old.count, old.live_count, old.live, old.greatest)
