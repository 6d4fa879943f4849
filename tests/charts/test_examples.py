"""The values that ship with the charts pass Helm's linter, render, and satisfy the programs."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import spark_sink.config.settings
import translator.config.settings
from dev.release.charts import CHARTS, NAMESPACE, examples, lint, render

_PROGRAMS = {"translator": translator.config.settings, "spark-sink": spark_sink.config.settings}

_EXAMPLES = [(chart, values) for chart in CHARTS for values in examples(chart)]
every_example = pytest.mark.parametrize(
    ("chart", "values"), _EXAMPLES, ids=[f"{chart}-{values.stem}" for chart, values in _EXAMPLES]
)


@every_example
def test_lint(chart: str, values: Path) -> None:
    """Helm reports no error and no warning."""
    lint(chart, values)


@every_example
def test_objects(chart: str, values: Path) -> None:
    """Each object carries the labels of its release, and selectors match only the release's pods."""
    objects = render(chart, values)
    pods = [labels for one in objects if (labels := _pod_labels(one))]
    assert pods
    for one in objects:
        assert NAMESPACE == one["metadata"]["namespace"]
        assert "orders" == one["metadata"]["labels"]["app.kubernetes.io/instance"]
        selected = _selector(one)
        if selected is not None:
            assert selected
            assert any(selected.items() <= labels.items() for labels in pods), one["kind"]


@every_example
def test_configuration(chart: str, values: Path) -> None:
    """The program accepts the file that the chart renders from the values. A hook has the same file."""
    (text,) = {
        text
        for one in render(chart, values)
        if one["kind"] == "ConfigMap"
        for name, text in one["data"].items()
        if name == f"{chart}.yaml"
    }
    environment = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "1")
    _PROGRAMS[chart].parse(text, environment, "the ConfigMap")
    assert json.loads(text)


def test_the_examples_of_the_documentation() -> None:
    """Both values files of the page on deployment render, satisfy the programs, and reach the same brokers."""
    page = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
    kafka = {}
    for chart in CHARTS:
        name = f"{chart.removeprefix('spark-')}-values.yaml"
        (block,) = re.findall(rf"```yaml\n# {name}\n(.*?)```", page, re.DOTALL)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(block)
            file.flush()
            test_configuration(chart, Path(file.name))
        kafka[chart] = yaml.safe_load(block)["config"]["kafka"]
    first, second = ({**one, "sasl_username": ""} for one in kafka.values())
    assert first == second


def _pod_labels(one: dict[str, Any]) -> dict[str, str] | None:
    match one["kind"]:
        case "Deployment" | "StatefulSet":
            labels: dict[str, str] = one["spec"]["template"]["metadata"]["labels"]
            return labels
        case "CronJob":
            return _pod_labels({"kind": "Deployment", "spec": one["spec"]["jobTemplate"]["spec"]})
        case "SparkApplication":
            return {"driver": "made by the operator"}
        case _:
            return None


def _selector(one: dict[str, Any]) -> dict[str, str] | None:
    """Return the labels by which an object selects pods, or None if it selects none."""
    spec = one.get("spec", {})
    match one["kind"]:
        case "Service":
            found: dict[str, str] = spec["selector"]
            return found
        case "Deployment" | "StatefulSet" | "PodDisruptionBudget" | "PodMonitor":
            return dict(spec["selector"]["matchLabels"])
        case "NetworkPolicy":
            return dict(spec["podSelector"]["matchLabels"])
        case _:
            return None
