"""The repository contains nothing specific to one machine, its entry points work, and its versions agree."""

import os
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Folders of a single machine, and hosts that are reachable from some networks only.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(^|[^.a-zA-Z0-9])/(work|root|farm|home)/"),
    "the address of a package registry": re.compile(r"https?://[^ ]*(maven2|pypi|hosted[.]org|npmjs|/@v/|crates)"),
}

PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;]+)(?: ; .*?)? \\$", re.MULTILINE)


def _committed() -> list[Path]:
    """Return every file that is committed or that `git add --all` would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def _complaints(text: str) -> list[str]:
    """Return line numbers and the problem on each line."""
    return [
        f"line {number}: {what}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]


def test_no_file_knows_a_machine() -> None:
    """No committed text contains a folder of one machine or the address of a package registry."""
    found = {}
    for path in _committed():
        content = path.read_bytes()
        if b"\0" not in content and (complaints := _complaints(content.decode("utf-8", errors="replace"))):
            found[str(path.relative_to(ROOT))] = complaints
    assert {} == found


@pytest.mark.parametrize(
    "line",
    [
        "cd /" + "work/main",
        "at /" + "root/.cache",
        "see https" + "://repo.example/maven2/org",
        "http" + "://pypi.example",
    ],
)
def test_the_search_finds(line: str) -> None:
    """The search finds machine-specific paths and registry addresses."""
    assert 1 == len(_complaints(line))


def test_the_search_is_not_too_eager() -> None:
    """The search accepts relative paths and other addresses."""
    assert [] == _complaints("build/work/x ./root/ https://kafka.apache.org/documentation ~/.cache")


def test_nothing_built_is_committed() -> None:
    """The repository contains no jars, wheels, bytecode, lock files of other tools or daemon state."""
    wrong = {".jar", ".whl", ".pyc"}
    names = {"uv.lock", "package-lock.json", ".dmypy.json"}
    assert [] == [path for path in _committed() if path.suffix in wrong or path.name in names]


@pytest.mark.parametrize("script", [".ci/run", "dev/setup.sh", "dev/lock.sh"])
def test_scripts_have_their_run_bit(script: str) -> None:
    """Scripts that are called by name are executable."""
    assert os.access(ROOT / script, os.X_OK)


def test_help_lists_every_target() -> None:
    """`make` without a target prints every target with a sentence."""
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    printed = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert targets == set(phony.split())
    assert targets == set(re.findall(r"^  make ([a-z-]+) +\S.*\.$", printed.stdout, re.MULTILINE))


def test_changelog_knows_this_version() -> None:
    """The latest release in the changelog is the package version. An `Unreleased` section can precede it."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[?([^\]\s]+)", changelog, re.MULTILINE)
    releases = [heading for heading in headings if heading.lower() != "unreleased"]
    assert PROJECT["version"] == releases[0]


def test_the_version_stands_in_one_place() -> None:
    """The version is defined in pyproject.toml. Copies for readers outside Python match it, also our image tags."""
    charts = {path.parent.name: yaml.safe_load(path.read_text()) for path in (ROOT / "helm").glob("*/Chart.yaml")}
    assert {"translator", "spark-sink"} == charts.keys()
    assert {PROJECT["version"]} == {chart[name] for chart in charts.values() for name in ("version", "appVersion")}
    crate = tomllib.loads((ROOT / "translator" / "_native" / "Cargo.toml").read_text())["package"]
    assert PROJECT["version"] == crate["version"]
    image = re.compile(r"cdc-(?:translator|spark-sink):(\d+\.\d+\.\d+)")
    tags = {
        str(path.relative_to(ROOT)): found
        for path in _committed()
        if path.suffix in {".md", ".yaml", ""} and path.name != "CHANGELOG.md" and b"\0" not in path.read_bytes()
        if (found := set(image.findall(path.read_text(encoding="utf-8"))))
    }
    assert {"Dockerfile", "docs/deploy.md"} <= tags.keys()
    assert {} == {name: found for name, found in tags.items() if found != {PROJECT["version"]}}


def test_lock_satisfies_the_project() -> None:
    """The lock contains every dependency of every extra, in a version that pyproject.toml allows."""
    lock = (ROOT / "requirements.lock").read_text()
    pinned: dict[str, list[str]] = {}
    for name, version in PINNED.findall(lock):
        pinned.setdefault(canonicalize_name(name), []).append(version)
    wanted = chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    unmet = []
    for requirement in map(Requirement, wanted):
        versions = pinned.get(canonicalize_name(requirement.name), [])
        if not versions or not all(requirement.specifier.contains(version) for version in versions):
            unmet.append(f"{requirement}: locked is {versions or 'nothing'}; run `make lock`")
    assert [] == unmet


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-docs.lock", "requirements-audit.lock"])
def test_lock_is_exact_and_hashed(name: str) -> None:
    """Every lock entry has one exact version and at least one hash. The lock contains no index address."""
    lock = (ROOT / name).read_text()
    entries = [entry for entry in re.split(r"\n(?=[A-Za-z0-9])", lock) if not entry.startswith("#")]
    assert [] == [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry]
    assert len(entries) == len(PINNED.findall(lock))
    assert "://" not in lock
