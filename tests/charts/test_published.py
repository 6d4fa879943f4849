"""The charts as a publisher offers them: what Artifact Hub shows, and images from the publisher's registry."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.release.charts import CHARTS, FOLDER, HELM, Published, package_chart, render

_WHERE = Published("https://git.example/owner/cdc", "registry.example/owner")

# Artifact Hub's own lists.
_CATEGORIES = {
    *("ai-machine-learning", "database", "integration-delivery", "monitoring-logging"),
    *("networking", "security", "skip-prediction", "storage", "streaming-messaging"),
}
_KINDS = {"added", "changed", "deprecated", "removed", "fixed", "security"}


@pytest.mark.parametrize("chart", CHARTS)
def test_artifact_hub(chart: str) -> None:
    """The annotations have the form that Artifact Hub reads, and name the image that the chart installs."""
    about = yaml.safe_load((FOLDER / chart / "Chart.yaml").read_text(encoding="utf-8"))
    found = about["annotations"]
    assert {"license", "category", "changes", "images"} == {name.removeprefix("artifacthub.io/") for name in found}
    assert "Apache-2.0" == found["artifacthub.io/license"]
    assert found["artifacthub.io/category"] in _CATEGORIES
    changes = yaml.safe_load(found["artifacthub.io/changes"])
    assert changes
    assert all(one.keys() == {"kind", "description"} and one["kind"] in _KINDS for one in changes)
    (image,) = yaml.safe_load(found["artifacthub.io/images"])
    assert image["image"] == _image(render(chart, _values(chart)))
    assert ["linux/amd64", "linux/arm64"] == image["platforms"]


@pytest.mark.parametrize("chart", CHARTS)
def test_published(chart: str, tmp_path: Path) -> None:
    """A packaged chart links to the publisher's page and installs images from the publisher's registry. Everything else
    is unchanged.
    """
    archive = package_chart(chart, tmp_path, _WHERE)
    about = yaml.safe_load(_helm("show", "chart", str(archive)))
    assert (_WHERE.project, [_WHERE.project]) == (about["home"], about["sources"])
    (link,) = yaml.safe_load(about["annotations"]["artifacthub.io/links"])
    assert link["url"].startswith(f"{_WHERE.project}/")
    cluster = ("-n", "cdc", "--kube-version", "1.30")
    text = _helm("template", "orders", str(archive), *cluster, "-f", str(_values(chart)))
    objects = [one for one in yaml.safe_load_all(text) if one]
    plain = render(chart, _values(chart))
    (image,) = yaml.safe_load(about["annotations"]["artifacthub.io/images"])
    assert image["image"] == _image(objects) == f"{_WHERE.registry}/{_image(plain)}"
    assert yaml.safe_dump(plain).replace(_image(plain), _image(objects)) == yaml.safe_dump(objects)


@pytest.mark.parametrize("chart", CHARTS)
def test_without_a_publisher(chart: str, tmp_path: Path) -> None:
    """Without addresses, the archive has the chart's files."""
    with tarfile.open(package_chart(chart, tmp_path)) as packed:
        values = packed.extractfile(f"{chart}/values.yaml")
        assert values is not None
        assert (FOLDER / chart / "values.yaml").read_bytes() == values.read()


def _values(chart: str) -> Path:
    return FOLDER / chart / "ci" / "default-values.yaml"


def _image(objects: list[dict[str, Any]]) -> str:
    (deployment,) = (one for one in objects if one["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def _helm(*arguments: str) -> str:
    return subprocess.run([HELM.built(), *arguments], capture_output=True, text=True, check=True).stdout
