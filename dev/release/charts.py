"""Check the Helm charts. Helm lints and renders them, kube-score scores them, and a validator uses Kubernetes' own
schemas.

`python -m dev.release.charts --build` builds Helm and kube-score into the user's cache from the Go module proxy. This
takes a few minutes of CPU time, once. `--build-validator` builds the validator, which takes a little longer.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from dev.go_program import GoProgram, GoProgramError

HELM = GoProgram(
    "Helm",
    "helm",
    "helm.sh/helm/v3/cmd/helm",
    "v3.22.0",
    ".venv/bin/python -m dev.release.charts --build",
)

KUBE_SCORE = GoProgram(
    "kube-score",
    "kube-score",
    "github.com/zegl/kube-score/cmd/kube-score",
    "v1.20.0",
    ".venv/bin/python -m dev.release.charts --build",
)

# The validator includes the schemas for Kubernetes 1.23 to 1.30. It validates an object in the same way as an API
# server does before it stores the object.
VALIDATOR = GoProgram(
    "kubectl-validate",
    "kubectl-validate",
    "sigs.k8s.io/kubectl-validate",
    "v0.0.4",
    ".venv/bin/python -m dev.release.charts --build-validator",
)
FIRST_KUBERNETES, LAST_KUBERNETES = 23, 30

# If Helm is built from its module, it assumes a Kubernetes 1.20 cluster by default.
_NEWEST = f"1.{LAST_KUBERNETES}"

FOLDER = Path(__file__).parents[2] / "helm"
CHARTS = ("translator", "spark-sink")

_OF_OPERATORS = frozenset({"kafka.strimzi.io", "keda.sh", "monitoring.coreos.com", "sparkoperator.k8s.io"})

# The result of a kube-score check without objections.
_FINE = 10
_NO_COMMENT = ({"summary": "no reason given"},)

RELEASE, NAMESPACE = "orders", "cdc"


class ChartError(Exception):
    """Raised if Helm rejects the values. The message comes from Helm."""


def lint(chart: str, *values: Path) -> None:
    """Lint a chart with values files.

    Raises:
        ChartError: Helm found an error or bad style.
    """
    _helm("lint", "--strict", "--kube-version", _NEWEST, str(FOLDER / chart), *_files(values))


def render(chart: str, *values: Path, overrides: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return a release's objects.

    Args:
        overrides: the values that override those in the files.

    Raises:
        ChartError: the values are rejected.
    """
    settings = (
        [] if overrides is None else ["--set-json", ",".join(f"{k}={json.dumps(v)}" for k, v in overrides.items())]
    )
    text = _template(chart, values, settings)
    return [found for found in yaml.safe_load_all(text) if found]


def remarks(chart: str, *values: Path) -> set[str]:
    """Return kube-score's suggestions for a release, without duplicates."""
    command = [str(KUBE_SCORE.built()), "score", "--output-format", "json", "-"]
    text = _template(chart, values, ())
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise ChartError(f"kube-score: {done.stderr.strip()}")
    failed = [check for one in json.loads(done.stdout) or () for check in one["checks"] or () if check["grade"] < _FINE]
    return {
        comment["summary"] for check in failed if not check["skipped"] for comment in check["comments"] or _NO_COMMENT
    }


def refusals(chart: str, kubernetes: str, *values: Path) -> list[str]:
    """Return the errors for which an API server of that version would reject a release. Kinds of objects that belong to
    operators are skipped.
    """
    text = _template(chart, values, (), kubernetes)
    own = [one for one in yaml.safe_load_all(text) if one and one["apiVersion"].split("/")[0] not in _OF_OPERATORS]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump_all(own, file)
        file.flush()
        command = [str(VALIDATOR.built()), "--version", kubernetes, file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines() if done.returncode else []


def examples(chart: str) -> list[Path]:
    """Return a chart's values files."""
    return sorted((FOLDER / chart / "ci").glob("*-values.yaml"))


class Published(NamedTuple):
    """Where a release is published.

    Args:
        project: URL of the project's page.
        registry: the images' registry, with its path.
    """

    project: str
    registry: str


def package_chart(chart: str, folder: Path, where: Published | None = None) -> Path:
    """Package a chart into a folder, and return the archive.

    Raises:
        ChartError: Helm cannot package the chart.
    """
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name, chart)
        shutil.copytree(FOLDER / chart, copy)
        if where is not None:
            _publish(copy, where)
        told = _helm("package", str(copy), "--destination", str(folder))
    return Path(told.strip().rpartition(": ")[2])


def _publish(chart: Path, where: Published) -> None:
    """Put the publisher's addresses into a copy of a chart."""
    image = f"cdc-{chart.name}"
    values, about = chart / "values.yaml", chart / "Chart.yaml"
    for path, text in ((values, f"  repository: {image}\n"), (about, f"      image: {image}:")):
        before = path.read_text(encoding="utf-8")
        if before.count(text) != 1:
            raise ChartError(f"{path.name} of {chart.name} does not have exactly one line {text.strip()!r}")
        path.write_text(before.replace(text, text.replace(image, f"{where.registry}/{image}")), encoding="utf-8")
    found = yaml.safe_load(about.read_text(encoding="utf-8"))
    links = [{"name": "Documentation", "url": f"{where.project}/tree/v{found['appVersion']}/docs"}]
    found |= {"home": where.project, "sources": [where.project]}
    found["annotations"]["artifacthub.io/links"] = yaml.safe_dump(links)
    about.write_text(yaml.safe_dump(found, sort_keys=False), encoding="utf-8")


def _template(chart: str, values: Sequence[Path], settings: Sequence[str], kubernetes: str = _NEWEST) -> str:
    cluster = ("-n", NAMESPACE, "--kube-version", kubernetes)
    return _helm("template", RELEASE, str(FOLDER / chart), *cluster, *_files(values), *settings)


def _files(values: Sequence[Path]) -> list[str]:
    return [argument for path in values for argument in ("-f", str(path))]


def _helm(*arguments: str) -> str:
    done = subprocess.run([str(HELM.built()), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ChartError(f"{done.stdout}{done.stderr}".strip())
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    wanted = {"--build": (HELM, KUBE_SCORE), "--build-validator": (VALIDATOR,)}.get(" ".join(arguments))
    if wanted is None:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for program in wanted:
            print(program.build())
    except GoProgramError as error:
        print(f"charts: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
