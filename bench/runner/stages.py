"""Measure the service's latency by stage, from the histogram in its metrics."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from prometheus_client.parser import text_string_to_metric_families

from bench.results import StageFigures

_BUCKETS = "cdc_latency_seconds_bucket"

BatchCounts = Mapping[str, Mapping[float, float]]
"""For each stage, the number of batches that spent at most this many seconds in it."""


def batch_counts(pages: Iterable[str]) -> BatchCounts:
    """Return the counts from the metrics pages of all processes together."""
    found: defaultdict[str, defaultdict[float, float]] = defaultdict(lambda: defaultdict(float))
    for page in pages:
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                if sample.name == _BUCKETS:
                    found[sample.labels["stage"]][float(sample.labels["le"])] += sample.value
    return found


def stage_figures(before: BatchCounts, after: BatchCounts) -> dict[str, StageFigures]:
    """Return the percentiles of the batches that were acknowledged between two looks, by stage."""
    found = {}
    for stage, counts in after.items():
        earlier = before.get(stage, {})
        passed = {bound: count - earlier.get(bound, 0.0) for bound, count in counts.items()}
        if passed[math.inf]:
            found[stage] = StageFigures(_percentile(passed, 0.5) * 1000, _percentile(passed, 0.99) * 1000)
    return found


def _percentile(counts: Mapping[float, float], share: float) -> float:
    """Return a percentile in seconds, interpolated within its bucket as in Prometheus' `histogram_quantile`."""
    wanted = share * counts[math.inf]
    low = below = 0.0
    for bound, count in sorted(counts.items()):
        if count >= wanted:
            return low if math.isinf(bound) else low + (bound - low) * (wanted - below) / (count - below)
        low, below = bound, count
    raise AssertionError("the last bucket contains everything")
