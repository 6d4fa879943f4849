"""Drawing the dashboards: a panel queries a real Prometheus, and its lines are drawn."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from dev.pages.dashboard_pictures import Curve, Prometheus, Span, chart, figure
from dev.pages.dashboards import dashboards
from dev.release.promtool import MISSING, program
from dev.servers.broker import LOOPBACK
from dev.servers.stack import wait_until
from tests.chaos.alerts import prometheus

_PATIENCE = 120.0


@pytest.mark.skipif(program("prometheus") is None, reason=f"{MISSING}: that panels show data is NOT SHOWN")
def test_a_panel(tmp_path: Path) -> None:
    """A panel shows the program's series with its legend. A panel whose metric does not exist is empty."""
    registry = CollectorRegistry()
    lag = Gauge("cdc_source_lag_seconds", "As the translator has it.", ["source"], registry=registry)
    lag.labels("shop").set(7)
    lag.labels("erp").set(3)
    pages, thread = start_http_server(0, LOOPBACK, registry)
    started = time.time()
    server = prometheus.Prometheus(tmp_path, {"translator": pages.server_port})
    asked = Prometheus(server.address, scrape=1)

    def found(title: str) -> list[Curve]:
        return asked.lines(_panel(title), Span(started, time.time() + 1))

    try:
        wait_until("it was looked at", _PATIENCE, lambda: server.value("up"))
        wait_until("the panel has data", _PATIENCE, lambda: found("Source lag"))
        assert [("erp", 3.0), ("shop", 7.0)] == [(one.name, one.values[-1][1]) for one in found("Source lag")]
        assert [] == found("Backlog")
    finally:
        server.close()
        pages.shutdown()
        pages.server_close()
        thread.join()


def test_lines() -> None:
    """A line breaks at missing values, a single value is a dot, and the latest value is shown in its unit."""
    span = Span(0, 160)
    values = [(0.0, 60.0), (1.0, 90.0), (50.0, 30.0)]
    panel = {"fieldConfig": {"defaults": {"unit": "s"}}}
    drawn = chart([Curve("a<b", values)], panel, span)
    assert 2 == drawn.count("<polyline")
    dot = drawn.split("<polyline points='")[2].partition("'")[0].split()
    assert [dot[0]] * 2 == dot
    assert "a&lt;b 30 s" in drawn
    assert "1.5 min" in drawn
    assert "no data" in chart([], panel, span)


@pytest.mark.parametrize(("value", "color"), [(0.0, "green"), (59.0, "green"), (60.0, "orange"), (300.0, "red")])
def test_a_figure(value: float, color: str) -> None:
    """The newest value has the color of the highest threshold that it reaches."""
    panel = _panel("Oldest unread record")
    assert f"class='figure {color}'" in figure([Curve("", [(0.0, 999.0), (1.0, value)])], panel)
    assert "no data" in figure([], panel)


def _panel(title: str) -> dict[str, Any]:
    for text in dashboards().values():
        for panel in json.loads(text)["panels"]:
            if panel["title"] == title:
                found: dict[str, Any] = panel
                return found
    raise AssertionError(title)
