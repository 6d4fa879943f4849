"""The percentiles of the stages are those of the batches between two looks at a real histogram."""

from __future__ import annotations

import time

import pytest

from bench.runner.stages import batch_counts, stage_figures
from translator.service.metrics import BatchAccount, Metrics


def _batches(metrics: Metrics, count: int, queued: float, source: str = "erp") -> None:
    """Acknowledge batches that were in the queue for this number of seconds, and were translated in 15 ms."""
    for _ in range(count):
        account = BatchAccount(source, "raw", 0, records=1)
        account.sent = time.monotonic()
        account.begun = account.sent - 0.015
        account.fetched = account.begun - queued
        metrics.account(account)


def test_percentiles() -> None:
    """Batches before the first look do not count. Batches are spread evenly over their bucket."""
    metrics = Metrics("test")
    _batches(metrics, 1_000, 20.0)
    before = batch_counts([metrics.exposition().decode()])
    _batches(metrics, 50, 0.004)
    _batches(metrics, 50, 0.8, "crm")
    found = stage_figures(before, batch_counts([metrics.exposition().decode()]))
    assert (5.0, 990.0) == pytest.approx((found["queue"].p50_ms, found["queue"].p99_ms))
    assert 10.0 < found["translate"].p50_ms < found["translate"].p99_ms <= 20.0
    assert {"queue", "translate", "deliver"} == found.keys(), "no record has a timestamp"


def test_several_processes() -> None:
    """The batches of all processes count together. A new process has no batches before."""
    one, other = Metrics("test"), Metrics("test")
    before = batch_counts([page.exposition().decode() for page in (one, other)])
    _batches(one, 60, 0.004)
    _batches(other, 60, 0.006)
    found = stage_figures(before, batch_counts([page.exposition().decode() for page in (one, other)]))
    assert 5.0 == pytest.approx(found["queue"].p50_ms)
    assert 5.0 < found["queue"].p99_ms < 7.0


def test_beyond_the_largest_bucket() -> None:
    """A percentile that is in no bounded bucket is reported as the largest bound."""
    metrics = Metrics("test")
    _batches(metrics, 3, 86_400.0)
    found = stage_figures({}, batch_counts([metrics.exposition().decode()]))
    assert 30_000.0 == found["queue"].p50_ms == found["queue"].p99_ms


def test_no_batch_in_between() -> None:
    """Without batches, no percentile is known."""
    metrics = Metrics("test")
    _batches(metrics, 3, 1.0)
    counts = batch_counts([metrics.exposition().decode()])
    assert {} == stage_figures(counts, counts)
    assert {} == stage_figures({}, batch_counts([]))
