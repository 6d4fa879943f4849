"""Push the metrics of a process to an OpenTelemetry receiver, under their Prometheus names.

This module is imported only if `metrics.otlp` is set. OpenTelemetry's own variables provide the options that the
settings lack, such as certificates and process attributes
(https://opentelemetry.io/docs/specs/otel/protocol/exporter/).
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client import Metric as Family

from cdc_core.otlp.settings import Otlp, Warn

_CUMULATIVE = AggregationTemporality.CUMULATIVE
_BILLION = 1_000_000_000

_TRY_SECONDS = 5.0
"""The timeout for one report, including the exporter's retries. It limits how long a process waits for its last report.
"""

_LOGGER = "opentelemetry.exporter"
_REASON_CHARACTERS = 300


class Reports(threading.Thread):
    """Reports at a fixed interval, and once at the end. `reports` collects the data to send."""

    def __init__(self, settings: Otlp, registry: CollectorRegistry, identity: Mapping[str, str], warn: Warn) -> None:
        super().__init__(name="reports of metrics", daemon=True)
        self._settings = settings
        self._registry = registry
        self._warn = warn
        self._ended = threading.Event()
        self._reasons = _Reasons()
        self._begun = time.time_ns()
        defaults = {"service.instance.id": f"{socket.gethostname()}:{os.getpid()}", **identity}
        self._resource = Resource(defaults).merge(OTELResourceDetector().detect())
        headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        self._exporter = OTLPMetricExporter(settings.endpoint, headers=headers, timeout=_TRY_SECONDS)

    def run(self) -> None:
        while not self._ended.wait(self._settings.interval):
            self._report()
        self._report()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()  # the last report has a timeout

    def _report(self) -> None:
        metrics = metrics_of(self._registry, self._begun, time.time_ns())
        scope = ScopeMetrics(InstrumentationScope("cdc"), metrics, "")
        data = MetricsData([ResourceMetrics(self._resource, [scope], "")])
        arrived = self._exporter.export(data) is MetricExportResult.SUCCESS
        reason = self._reasons.take()
        if not arrived:
            self._warn("metrics report failed", endpoint=self._settings.endpoint, reason=reason)


class _Reasons(logging.Handler):
    """Captures the reason why a report failed. The exporter writes it only to its own logger."""

    def __init__(self) -> None:
        super().__init__()
        self._told: list[str] = []
        logger = logging.getLogger(_LOGGER)
        logger.addHandler(self)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self._told.append(record.getMessage())

    def take(self) -> str:
        """Return the first reason that came up since the last call. Later reasons only repeat it."""
        told, self._told = self._told, []
        return told[0][:_REASON_CHARACTERS] if told else ""


def metrics_of(registry: CollectorRegistry, begun_ns: int, now_ns: int) -> list[Metric]:
    """Convert a registry's metrics to OpenTelemetry. A gauge with the value NaN means "unknown" and is omitted.

    Args:
        begun_ns: the start time, in nanoseconds since 1970, for counters that have none.
        now_ns: the time at which the values were read, in nanoseconds since 1970.
    """
    return [metric for family in registry.collect() for metric in _READERS[family.type](family, begun_ns, now_ns)]


def _counter(family: Family, begun_ns: int, now_ns: int) -> Iterator[Metric]:
    name = f"{family.name}_total"
    created = _created(family)
    points = [
        NumberDataPoint(sample.labels, created.get(_key(sample.labels), begun_ns), now_ns, sample.value)
        for sample in family.samples
        if sample.name == name
    ]
    if points:
        yield Metric(name, family.documentation, "", Sum(points, _CUMULATIVE, is_monotonic=True))


def _gauge(family: Family, begun_ns: int, now_ns: int) -> Iterator[Metric]:
    points = [
        NumberDataPoint(sample.labels, begun_ns, now_ns, sample.value)
        for sample in family.samples
        if not math.isnan(sample.value)
    ]
    if points:
        yield Metric(family.name, family.documentation, "", Gauge(points))


def _histogram(family: Family, begun_ns: int, now_ns: int) -> Iterator[Metric]:
    """Convert a summary with a count and a sum to a histogram with one bucket, because the exporter does not support
    summaries.
    """
    created = _created(family)
    series: dict[tuple[tuple[str, str], ...], dict[float, int]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        if sample.name in (f"{family.name}_bucket", f"{family.name}_count"):
            bound = float(sample.labels.get("le", math.inf))
            series.setdefault(_key(labels), {})[bound] = int(sample.value)
        elif sample.name == f"{family.name}_sum":
            sums[_key(labels)] = sample.value
    points = [
        _histogram_point(dict(labels), within, sums[labels], created.get(labels, begun_ns), now_ns)
        for labels, within in series.items()
    ]
    if points:
        yield Metric(family.name, family.documentation, "", Histogram(points, _CUMULATIVE))


def _histogram_point(
    labels: Mapping[str, str], within: Mapping[float, int], total: float, begun_ns: int, now_ns: int
) -> HistogramDataPoint:
    """Convert Prometheus's cumulative buckets to a data point in which each bucket counts only its own values."""
    bounds = sorted(within)
    counts = [within[bound] for bound in bounds]
    own = [count - below for count, below in zip(counts, [0, *counts], strict=False)]
    return HistogramDataPoint(
        labels,
        begun_ns,
        now_ns,
        count=counts[-1],
        sum=total,
        bucket_counts=own,
        explicit_bounds=bounds[:-1],
        # This field is optional in the protocol and unknown here, although the library's types do not allow None.
        min=None,  # type: ignore[arg-type]
        max=None,  # type: ignore[arg-type]
    )


_READERS = {"counter": _counter, "gauge": _gauge, "histogram": _histogram, "summary": _histogram}


def _created(family: Family) -> Mapping[tuple[tuple[str, str], ...], int]:
    """Return the start times of all series that have one."""
    return {
        _key(sample.labels): int(sample.value * _BILLION)
        for sample in family.samples
        if sample.name == f"{family.name}_created"
    }


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))
