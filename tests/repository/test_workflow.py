"""Hosted workflows only use actions whose content cannot change, and do what anybody can do with make."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

_ROOT = Path(__file__).parents[2]
_WORKFLOWS = sorted((_ROOT / ".github" / "workflows").glob("*.yml"))
_MAKEFILE = (_ROOT / "Makefile").read_text(encoding="utf-8")

each_workflow = pytest.mark.parametrize("workflow", _WORKFLOWS, ids=lambda path: path.stem)


def test_actions_are_pinned_to_a_commit() -> None:
    used = [line for file in _WORKFLOWS for line in re.findall(r"uses: (.+)", file.read_text())]
    assert used
    assert [] == [line for line in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[0-9.]+", line)]


def test_an_action_has_one_version() -> None:
    """Two workflows use the same commit of an action."""
    used = {line for file in _WORKFLOWS for line in re.findall(r"uses: (.+)", file.read_text())}
    actions = [line.split("@")[0] for line in used]
    assert sorted(set(actions)) == sorted(actions)


@each_workflow
def test_commands(workflow: Path) -> None:
    """Scripts are valid for bash, and each make target exists."""
    targets = set(re.findall(r"^([a-z-]+):", _MAKEFILE, re.MULTILINE))
    for job in _jobs(workflow).values():
        for script in _scripts(job):
            assert "${{" not in script, "a value of an event would run as code; pass it as a variable"
            done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
            assert not done.returncode, done.stderr
            assert set(re.findall(r"\bmake ([a-z-]+)", script)) <= targets


def test_a_release_is_checked_before_anything_is_uploaded() -> None:
    """Each job that can write waits for the packages, which only `make release-check` builds."""
    release = _release()
    jobs = release["jobs"]
    assert {"contents": "read"} == release["permissions"]
    assert ["make release-check"] == [
        found for job in jobs.values() for script in _scripts(job) for found in re.findall(r"\bmake [a-z-]+", script)
    ]
    assert any("make release-check" in script for script in _scripts(jobs["packages"]))
    assert "permissions" not in jobs["packages"]
    for name, job in jobs.items():
        assert name == "packages" or ("packages" in job["needs"] and "write" in job["permissions"].values())


def test_no_secret_is_stored() -> None:
    """PyPI and cosign trust the identity of the workflow, and only jobs that need this identity have it."""
    release = _release()
    assert "secrets." not in (_ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    for name, job in release["jobs"].items():
        uses = [step.get("uses", "") for step in job["steps"]]
        identifies = any("cosign" in one or "pypi-publish" in one for one in uses)
        assert identifies == ("id-token" in job.get("permissions", {})), name


def test_the_options_of_release_check_exist() -> None:
    (script,) = (one for one in _scripts(_release()["jobs"]["packages"]) if "release-check" in one)
    command = [sys.executable, "-m", "dev.release.check", "--help"]
    told = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout
    options = re.findall(r"--[a-z]+", script)
    assert options
    assert set(options) <= set(re.findall(r"--[a-z]+", told))
    assert "dev.release.check $(RELEASE_ARGS)" in _MAKEFILE


def test_images_and_charts_of_a_release() -> None:
    """A release has all images of the Dockerfile and all charts."""
    jobs = _release()["jobs"]
    dockerfile = (_ROOT / "Dockerfile").read_text(encoding="utf-8")
    targets = re.findall(r"docker build --target ([a-z-]+)", dockerfile)
    assert targets == jobs["images"]["strategy"]["matrix"]["target"]
    (loop,) = (found for script in _scripts(jobs["charts"]) for found in re.findall(r"for chart in (.+); do", script))
    assert {path.parent.name for path in (_ROOT / "helm").glob("*/Chart.yaml")} == set(loop.split())
    (epoch,) = (found for script in _scripts(jobs["images"]) for found in re.findall(r"EPOCH=(\d+)", script))
    assert f"SOURCE_DATE_EPOCH={epoch}" in dockerfile


def test_files_of_a_release() -> None:
    """Each job downloads files that another job has uploaded."""
    steps = [step for job in _release()["jobs"].values() for step in job["steps"]]
    uploaded = {step["with"]["name"].partition("-")[0] for step in steps if "upload-artifact" in step.get("uses", "")}
    asked = [step["with"] for step in steps if "download-artifact" in step.get("uses", "")]
    names = " ".join(one.get("name") or one["pattern"] for one in asked)
    assert uploaded == set(re.findall(r"[a-z]{2,}", names))


def _release() -> dict[str, Any]:
    (file,) = (path for path in _WORKFLOWS if path.stem == "release")
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def _jobs(workflow: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return found


def _scripts(job: dict[str, Any]) -> Iterator[str]:
    return (step["run"] for step in job["steps"] if "run" in step)
