"""Kubernetes accepts every example, in the oldest version that the charts support and in newer ones."""

from __future__ import annotations

import pytest
import yaml

from dev.release.charts import CHARTS, FIRST_KUBERNETES, FOLDER, LAST_KUBERNETES, VALIDATOR, examples, refusals

needs_validator = pytest.mark.skipif(
    not VALIDATOR.place.is_file(), reason=f"minutes of building that CI does without: {VALIDATOR.build_command}"
)


@needs_validator
@pytest.mark.parametrize("minor", [FIRST_KUBERNETES, 26, LAST_KUBERNETES])
@pytest.mark.parametrize("chart", CHARTS)
def test_every_example_is_taken(chart: str, minor: int) -> None:
    """Every example is valid. A Kubernetes version would silently drop a field that it does not know."""
    found = {values.stem: refusals(chart, f"1.{minor}", values) for values in examples(chart)}
    assert {} == {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize("chart", CHARTS)
def test_what_is_asked_for(chart: str) -> None:
    """The chart requires no older version than those tested above."""
    asked = yaml.safe_load((FOLDER / chart / "Chart.yaml").read_text())["kubeVersion"]
    assert f">= 1.{FIRST_KUBERNETES}.0-0" == asked
