"""Probes and metrics on Faust's web server: /livez, /readyz, /metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from translator.service.metrics import Metrics

View = Callable[[Any, Any], Awaitable[Any]]


def pages(metrics: Metrics, ready: Callable[[], str | None]) -> dict[str, View]:
    """Return the views by path. `ready` returns what is still missing, or None.

    /livez responds whenever the event loop runs. A standby without partitions is healthy.
    """

    async def livez(view: Any, _request: Any) -> Any:
        return view.text("ok\n")

    async def readyz(view: Any, _request: Any) -> Any:
        missing = ready()
        return view.text("ok\n") if missing is None else view.text(f"not ready: {missing}\n", status=503)

    async def exposition(view: Any, _request: Any) -> Any:
        return view.bytes(metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return {"/livez": livez, "/readyz": readyz, "/metrics": exposition}
