"""Push metrics to an OpenTelemetry receiver: the configuration section and the reports."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from cdc_core.otlp.settings import Otlp, Warn
from cdc_core.state_format import release

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Otlp", "Warn", "reports"]


def reports(
    settings: Otlp | None, registry: CollectorRegistry, identity: Mapping[str, str], warn: Warn
) -> AbstractContextManager[None]:
    """Report a registry's metrics while the block runs, and once when the block ends. Reports are lost while the
    receiver is down.

    Args:
        settings: None disables reporting.
        identity: process attributes, including `service.name`.
        warn: called for each failed report.
    """
    if settings is None:
        return nullcontext()
    # Imported here because the import costs 0.06 s and 5 MiB, and most processes do not report metrics in this way.
    from cdc_core.otlp.export import Reports

    return Reports(settings, registry, {"service.version": release(), **identity}, warn)
