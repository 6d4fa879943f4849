"""The metrics that both programs have in addition to their own."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cdc_core.metrics_registry import shown
from tests.cdc_core.metrics_of_both import registries


@pytest.mark.parametrize("registry", registries().values(), ids=registries().keys())
def test_the_process_is_visible_and_creation_times_are_not(registry: CollectorRegistry) -> None:
    """Memory, processor time and open files have the usual names. No series repeats a counter's creation time."""
    names = {family.name for family in text_string_to_metric_families(generate_latest(shown(registry)).decode())}
    assert {"process_resident_memory_bytes", "process_cpu_seconds", "process_open_fds"} <= names
    assert [] == [name for name in names if name.endswith("_created")]
