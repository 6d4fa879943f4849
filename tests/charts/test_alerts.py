"""The alerts of the charts use existing metrics, and each has a runbook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dev.release.charts import CHARTS, FOLDER, render
from tests.chaos.alerts.drills import DRILLS
from tests.charts.metrics import labels, series

_RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"


@pytest.mark.parametrize("chart", CHARTS)
def test_metrics(chart: str) -> None:
    """Alerts use only existing metrics. Otherwise they would never fire."""
    known = series(chart)
    for alert in _alerts(chart):
        named = set(re.findall(r"\bcdc_\w+", alert["expr"]))
        assert named, alert["alert"]
        assert named <= known, alert["alert"]


@pytest.mark.parametrize("chart", CHARTS)
def test_labels(chart: str) -> None:
    """Alerts group by labels of their metrics, and their summaries use only such labels."""
    known = labels(chart)
    for alert in _alerts(chart):
        by = {label.strip() for group in re.findall(r"by \(([^)]*)\)", alert["expr"]) for label in group.split(",")}
        told = set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"]))
        assert by <= known, alert["alert"]
        assert told <= by, alert["alert"]


@pytest.mark.parametrize("chart", CHARTS)
def test_runbooks(chart: str) -> None:
    """Each alert has a section on its program's page, and each section an alert."""
    page = (_RUNBOOKS / f"{chart}.md").read_text(encoding="utf-8")
    assert [alert["alert"] for alert in _alerts(chart)] == re.findall(r"^## (\w+)$", page, re.MULTILINE)
    for alert in _alerts(chart):
        address = alert["annotations"]["runbook_url"]
        assert address.endswith(f"/{chart}.md#{alert['alert'].lower()}")
        assert "//" not in address.removeprefix("https://")


_NOT_DRIVEN = {
    # Only a bug of the extension triggers it. tests/translator/native/test_pipeline.py covers the metric, and
    # test_alerts_fire.py the rule.
    "TranslatorNativePathDisabled",
    # It needs a limit in the values. tests/spark_sink/operations/test_verify.py covers the metric.
    "SinkNotVerified",
}


def test_each_is_driven() -> None:
    """Each alert has a drill, except those that another test covers, and each drill has an alert."""
    named = {alert["alert"] for chart in CHARTS for alert in _alerts(chart)}
    driven = {drill.alert for drill in DRILLS}
    assert named == driven | _NOT_DRIVEN
    assert not driven & _NOT_DRIVEN


def _alerts(chart: str) -> list[dict[str, Any]]:
    (rule,) = [
        one for one in render(chart, FOLDER / chart / "ci" / "watched-values.yaml") if one["kind"] == "PrometheusRule"
    ]
    (group,) = rule["spec"]["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules
