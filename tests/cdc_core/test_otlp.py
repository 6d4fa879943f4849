"""OTLP reports contain what Prometheus would scrape, and no failure to report stops the process."""

import math

import pytest
from opentelemetry.sdk.metrics.export import Histogram, Sum
from prometheus_client import CollectorRegistry, Counter, Gauge, Summary
from pydantic import ValidationError

from cdc_core.otlp import Otlp, reports
from cdc_core.otlp.export import metrics_of
from tests.cdc_core.metrics_of_both import registries
from tests.otlp_receiver import TOKEN, Receiver, receiver

BEGUN, NOW = 1_000, 2_000


def _otlp(receiving: Receiver, token: str = TOKEN) -> Otlp:
    return Otlp(endpoint=receiving.endpoint, headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize("registry", registries().values(), ids=registries())
def test_every_value_that_prometheus_reads_is_reports(registry: CollectorRegistry) -> None:
    """Names and labels are the same. Prometheus buckets are cumulative, OTLP buckets are not. Values of the process
    change in between.
    """
    expected = {}
    for sample in (sample for family in registry.collect() for sample in family.samples):
        if not sample.name.endswith("_created") and not math.isnan(sample.value):
            expected[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    found = {}
    for metric in metrics_of(registry, BEGUN, NOW):
        for point in metric.data.data_points:
            labels = dict(point.attributes)
            if not isinstance(metric.data, Histogram):
                found[metric.name, tuple(sorted(labels.items()))] = point.value
                continue
            found[f"{metric.name}_count", tuple(labels.items())] = point.count
            found[f"{metric.name}_sum", tuple(labels.items())] = point.sum
            below = 0
            for bound, count in zip([*point.explicit_bounds, math.inf], point.bucket_counts, strict=True):
                below += count
                said = "+Inf" if math.isinf(bound) else str(bound)
                found[f"{metric.name}_bucket", tuple(sorted({**labels, "le": said}.items()))] = below
    without_buckets = {key: value for key, value in found.items() if "cdc_transaction_seconds_bucket" not in key}
    assert {name for name, _ in expected} == {name for name, _ in without_buckets}
    assert _of_the_program(expected) == _of_the_program(without_buckets)


def _of_the_program(samples: dict[tuple[str, tuple[tuple[str, str], ...]], float]) -> dict[object, float]:
    return {key: value for key, value in samples.items() if not key[0].startswith("process_")}


def test_times_and_kinds() -> None:
    """Counters start when they are created. A gauge without a value is not reported."""
    registry = CollectorRegistry()
    made = Counter("made", "Tells since when.", registry=registry)
    Gauge("unknown", "Not known.", registry=registry).set(math.nan)
    Summary("times", "None of these labels yet.", ("kind",), registry=registry)
    Gauge("known", "Known.", registry=registry).set(0)
    made.inc(2)
    counter, gauge = metrics_of(registry, BEGUN, NOW)
    assert ("made_total", "known") == (counter.name, gauge.name)
    assert isinstance(counter.data, Sum)
    assert counter.data.is_monotonic
    (point,) = counter.data.data_points
    assert (2, NOW) == (point.value, point.time_unix_nano)
    assert point.start_time_unix_nano > BEGUN, "since it was made, which it tells"


def test_a_last_report_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process reports once more at exit. OpenTelemetry's environment variables can set the resource attributes."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.version=9")
    warnings: list[str] = []
    with receiver() as receiving:
        identity = {"service.name": "cdc-translator", "service.version": "1"}
        with reports(_otlp(receiving), registries()["translator"], identity, lambda event, **_: warnings.append(event)):
            pass
        (report,) = receiving.reports
    assert [] == warnings
    assert {"service.name": "cdc-translator", "service.version": "9"}.items() <= report.identity.items()
    assert {"deployment.environment", "service.instance.id"} <= report.identity.keys()
    point = report.series["cdc_records_in_total", (("partition", "3"), ("source", "erp"), ("topic", "raw"))]
    assert 7 == point.as_double


def test_who_is_refused_says_why() -> None:
    """The log shows the endpoint and its answer but not the token, and the process continues."""
    lines: list[dict[str, object]] = []
    with receiver() as receiving:
        settings = _otlp(receiving, "stolen-token")
        with reports(
            settings, registries()["spark-sink"], {}, lambda event, **fields: lines.append({"event": event, **fields})
        ):
            pass
    (line,) = lines
    assert ("metrics report failed", receiving.endpoint) == (line["event"], line["endpoint"])
    assert "401" in str(line["reason"]) or "who are you" in str(line["reason"])
    assert "stolen-token" not in str(line)
    assert "stolen-token" not in repr(settings)


@pytest.mark.parametrize("endpoint", ["collector:4318", "http://me:secret@collector/v1/metrics", "grpc://collector"])
def test_what_is_no_endpoint(endpoint: str) -> None:
    """A bad endpoint is rejected when the file is read, without quoting it, since it can contain a password."""
    with pytest.raises(ValidationError, match="endpoint") as refused:
        Otlp(endpoint=endpoint)
    assert "secret" not in str(refused.value.errors(include_input=False, include_context=False))
