"""The registry for a process's own metrics, and the page that Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.registry import Collector


def process_registry() -> CollectorRegistry:
    """Return a registry with the `process_*` metrics for memory, processor time, open files and start time."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry


def shown(registry: CollectorRegistry) -> CollectorRegistry:
    """Return the metrics in Prometheus's text format.

    The time at which a counter was created (`*_created`) is left out, because it would double the number of series.
    """
    page = CollectorRegistry()
    page.register(_WithoutCreationTimes(registry))
    return page


class _WithoutCreationTimes(Collector):
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def describe(self) -> Iterator[Metric]:
        """Return no names, so that registration does not collect the metrics again."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            found = Metric(family.name, family.documentation, family.type, family.unit)
            found.samples = [sample for sample in family.samples if sample.name != f"{family.name}_created"]
            yield found
