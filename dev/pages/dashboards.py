"""Generate both charts' Grafana dashboards from panel tables.

`python -m dev.pages.dashboards` writes helm/*/dashboards/*.json. Tests compare the files with the tables, and the
tables with the programs' metrics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dev.pages.dashboard_panels import DASHBOARDS, Panel

_HELM = Path(__file__).parents[2] / "helm"

# A grid row has 24 columns, enough for three panels.
_COLUMNS, _HEIGHT, _IN_A_ROW = 24, 8, 3
_STAT_HEIGHT = 4

# Label matchers for the pods that the dashboard's variables select.
_PODS = 'namespace="$namespace",pod=~"$pod"'

RUNBOOKS, DESK = "https://runbooks.example", "https://desk.example"
"""The addresses in the files, which the charts replace with those in their values."""


def dashboards() -> dict[Path, str]:
    """Return each file's content by its path."""
    return {
        _HELM / chart / "dashboards" / f"{chart}.json": json.dumps(_dashboard(chart, groups), indent=2) + "\n"
        for chart, groups in DASHBOARDS.items()
    }


def _dashboard(chart: str, groups: Mapping[str, Sequence[Panel]]) -> dict[str, Any]:
    metric = {"translator": "cdc_build_info", "spark-sink": "cdc_sink_batches_total"}[chart]
    page = {"translator": "home", "spark-sink": "sink"}[chart]
    return {
        "title": f"CDC {chart}",
        "uid": f"cdc-{chart}",
        "tags": ["cdc"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "links": [_link("Runbooks", _runbook(chart)), _link("Desk", f"${{desk:raw}}/{page}")],
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                _variable("namespace", f"label_values({metric}, namespace)", several=False),
                _variable("pod", f'label_values({metric}{{namespace="$namespace"}}, pod)', several=True),
                _address("runbooks", "Runbooks at", RUNBOOKS),
                _address("desk", "Desk at", DESK),
            ]
        },
        "panels": list(_panels(chart, groups)),
    }


def _runbook(chart: str, alert: str = "") -> str:
    return f"${{runbooks:raw}}/{chart}.md" + (f"#{alert.lower()}" if alert else "")


def _link(title: str, url: str) -> dict[str, Any]:
    return {"type": "link", "title": title, "url": url, "targetBlank": True}


def _address(name: str, label: str, default: str) -> dict[str, Any]:
    chosen: dict[str, Any] = {"text": default, "value": default}
    return {"name": name, "label": label, "type": "textbox", "query": default, "current": chosen}


def _variable(name: str, query: str, *, several: bool) -> dict[str, Any]:
    everything = {"multi": True, "includeAll": True, "allValue": ".+"} if several else {}
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "refresh": 2,
        "sort": 1,
        **everything,
    }


def _panels(chart: str, groups: Mapping[str, Sequence[Panel]]) -> Iterator[dict[str, Any]]:
    """Yield the panels from top to bottom, with a row for each question."""
    number, y = 0, 0
    for question, panels in groups.items():
        number += 1
        yield {"id": number, "type": "row", "title": question, "gridPos": {"h": 1, "w": _COLUMNS, "x": 0, "y": y}}
        y += 1
        in_a_row, height = (len(panels), _STAT_HEIGHT) if panels[0].steps else (_IN_A_ROW, _HEIGHT)
        for place, panel in enumerate(panels):
            number += 1
            row, column = divmod(place, in_a_row)
            # Five figures do not share 24 columns evenly.
            left, right = (_COLUMNS * edge // in_a_row for edge in (column, column + 1))
            at = {"h": height, "w": right - left, "x": left, "y": y + height * row}
            yield _panel(chart, panel, number, at)
        y += height * -(-len(panels) // in_a_row)


def _panel(chart: str, panel: Panel, number: int, at: Mapping[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.steps:
        steps = [{"value": value, "color": color} for value, color in panel.steps]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    described: dict[str, Any] = {
        "id": number,
        "type": "stat" if panel.steps else "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": at,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [{"refId": "A", "expr": panel.query.replace("PODS", _PODS), "legendFormat": panel.legend}],
    }
    if panel.steps:
        described["options"] = {"colorMode": "background", "reduceOptions": {"calcs": ["lastNotNull"]}}
    if panel.alert:
        url = _runbook(chart, panel.alert)
        described["links"] = [{"title": f"Runbook {panel.alert}", "url": url, "targetBlank": True}]
    return described


_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def main() -> None:
    """Write the files."""
    for path, text in dashboards().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
