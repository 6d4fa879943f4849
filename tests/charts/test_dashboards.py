"""The dashboards use existing metrics and labels, in queries that Prometheus accepts."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from dev.pages.dashboard_panels import DASHBOARDS, Panel
from dev.pages.dashboards import DESK, RUNBOOKS, dashboards
from dev.release.charts import CHARTS, FOLDER, render
from dev.release.promtool import MISSING, promtool
from tests.charts.metrics import labels, series
from translator.web.meanings import runbooks

_PROMTOOL = promtool()


def _panels(chart: str) -> list[Panel]:
    return [panel for panels in DASHBOARDS[chart].values() for panel in panels]


@pytest.mark.parametrize("path", dashboards(), ids=[path.stem for path in dashboards()])
def test_file_is_current(path: Path) -> None:
    """The file contains all current panels. `python -m dev.pages.dashboards` writes it."""
    assert dashboards()[path] == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("chart", CHARTS)
def test_metrics_and_labels(chart: str) -> None:
    """Panels use existing metrics and labels. Otherwise they would be empty."""
    for panel in _panels(chart):
        named = set(re.findall(r"\bcdc_\w+", panel.query))
        assert named, panel.title
        assert named <= series(chart), panel.title
        by = {label.strip() for group in re.findall(r"by \(([^)]*)\)", panel.query) for label in group.split(",")}
        told = set(re.findall(r"{{(\w+)}}", panel.legend))
        assert by | told <= labels(chart), panel.title
        assert not by or told <= by, panel.title


@pytest.mark.parametrize("chart", CHARTS)
def test_config_map(chart: str) -> None:
    """The chart ships the dashboard where Grafana's sidecar finds it, with the addresses from its values."""
    (found,) = [
        one["data"][f"{chart}.json"]
        for one in render(chart, FOLDER / chart / "ci" / "watched-values.yaml")
        if one["kind"] == "ConfigMap" and "grafana_dashboard" in one["metadata"]["labels"]
    ]
    shipped = (FOLDER / chart / "dashboards" / f"{chart}.json").read_text(encoding="utf-8")
    wiki, desk = "https://wiki.example/cdc/runbooks", "https://desk.wiki.example"
    assert json.loads(shipped.replace(RUNBOOKS, wiki).replace(DESK, desk)) == json.loads(found)


@pytest.mark.parametrize("path", dashboards(), ids=[path.stem for path in dashboards()])
def test_layout(path: Path) -> None:
    """Questions are rows, the first of figures, each with thresholds and an existing runbook. Nothing overlaps."""
    panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
    cells = [
        (at["x"] + across, at["y"] + down)
        for at in (panel["gridPos"] for panel in panels)
        for across in range(at["w"])
        for down in range(at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert 24 > max(across for across, _ in cells)
    assert ["row", *["stat"] * 5, "row", "timeseries"] == [panel["type"] for panel in panels[:8]]
    assert len(panels) == len({panel["id"] for panel in panels})
    for panel in panels[1:6]:
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["value"] is None
        (link,) = panel["links"]
        assert link["title"].removeprefix("Runbook ") in runbooks()
        assert link["url"].endswith(f"/{path.stem}.md#{link['title'].removeprefix('Runbook ').lower()}")


@pytest.mark.skipif(_PROMTOOL is None, reason=f"{MISSING}: that queries are valid is NOT SHOWN")
@pytest.mark.parametrize("path", dashboards(), ids=[path.stem for path in dashboards()])
def test_queries(path: Path, tmp_path: Path) -> None:
    """Prometheus' own tool accepts each query as a recording rule."""
    expressions = [
        target["expr"] for panel in json.loads(path.read_text())["panels"] for target in panel.get("targets", ())
    ]
    assert expressions
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(expressions)
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    assert _PROMTOOL is not None
    done = subprocess.run([_PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(_PROMTOOL is None, reason=f"{MISSING}: that the first dead letter is seen is NOT SHOWN")
def test_the_first_counts(tmp_path: Path) -> None:
    """Dead letters of a new code count immediately, those of a known code over the last hour."""
    (panel,) = [one for one in _panels("translator") if one.title == "Dead letters"]
    new, old = (f'cdc_records_dead_total{{source="shop",code="{code}"}}' for code in ("NEW", "OLD"))
    test = {
        "interval": "1m",
        # One code exists from the start. Two dead letters of another follow, and then the process restarts.
        "input_series": [{"series": new, "values": "_x99 2x2 0x8"}, {"series": old, "values": "5x99 8x10"}],
        "promql_expr_test": [
            {
                "expr": f"round({panel.query.replace('PODS', '')})",
                "eval_time": "105m",
                "exp_samples": [
                    {"labels": f'{{source="shop",code="{code}"}}', "value": value}
                    for code, value in (("NEW", 2), ("OLD", 3))
                ],
            }
        ],
    }
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}), encoding="utf-8")
    assert _PROMTOOL is not None
    done = subprocess.run([_PROMTOOL, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
