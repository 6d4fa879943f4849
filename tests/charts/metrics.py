"""The metrics of the programs, for comparison with the charts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

import spark_sink.metrics
import translator.service.metrics

_REGISTRIES: dict[str, CollectorRegistry] = {
    "translator": translator.service.metrics.Metrics("test").registry,
    "spark-sink": spark_sink.metrics.Metrics(0).registry,
}
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


def series(chart: str) -> set[str]:
    """Return the names of all series of the chart's program."""
    return {
        metric.name + suffix for metric in _REGISTRIES[chart].collect() for suffix in _SUFFIXES.get(metric.type, ("",))
    }


def labels(chart: str) -> set[str]:
    """Return the labels of all series, including those of the pods."""
    collectors = _REGISTRIES[chart]._collector_to_names
    return {label for one in collectors for label in getattr(one, "_labelnames", ())} | {"pod", "le"}
