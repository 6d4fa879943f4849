"""The OpenTelemetry Collector accepts our reports and exposes the same metrics to Prometheus as our page."""

from collections.abc import Iterable

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from cdc_core.otlp import Otlp, reports
from dev.collector import BUILD_COMMAND, Collector, program
from tests.cdc_core.metrics_of_both import registries

# OpenTelemetry's attributes of process and scope, which our page does not have.
FOREIGN = {"instance", "job", "otel_scope_name", "otel_scope_schema_url", "otel_scope_version"}


@pytest.mark.skipif(
    not program().is_file(), reason=f"the collector was not built; it needs Go, and minutes: {BUILD_COMMAND}"
)
def test_prometheus_reads_the_same_of_the_collector() -> None:
    """Every sample of both programs matches by name and labels. Only summaries have additional buckets."""
    warnings: list[str] = []
    expected = {}
    with Collector() as collector:
        for name, registry in registries().items():
            settings = Otlp(endpoint=collector.endpoint)
            with reports(settings, registry, {"service.name": name}, lambda event, **_: warnings.append(event)):
                expected |= _samples(registry.collect())
        found = _samples(text_string_to_metric_families(collector.scraped()))
    assert [] == warnings
    more = {name for name, _ in found.keys() - expected.keys()}
    assert {"cdc_transaction_seconds_bucket", "target_info"} == more
    assert expected == {key: found.get(key) for key in expected}


def _samples(families: Iterable[Metric]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (
            sample.name,
            tuple(sorted((key, _bound(key, value)) for key, value in sample.labels.items() if key not in FOREIGN)),
        ): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created") and sample.value == sample.value  # NaN means unknown
    }


def _bound(key: str, value: str) -> str:
    """Return the bound of a bucket, which one side writes as 5.0 and the other as 5."""
    return str(float(value)) if key == "le" else value
