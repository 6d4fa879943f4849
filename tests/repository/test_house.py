"""The house is in order: nothing of one machine is committed, the entry points work, the versions agree."""

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

# Folders that exist on somebody's machine, and hosts that only some networks reach.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(^|[^.a-zA-Z0-9])/(work|root|farm|home)/"),
    "the address of a package registry": re.compile(r"https?://[^ ]*(maven2|pypi|hosted[.]org|npmjs|/@v/|crates)"),
}

PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;]+)(?: ; .*?)? \\$", re.MULTILINE)


def _committed() -> list[Path]:
    """Every file that is committed, or would be by `git add --all`."""
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
    """Line numbers and what is wrong there."""
    return [
        f"line {number}: {what}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]


def test_no_file_knows_a_machine() -> None:
    """No committed text names a folder of one machine or the address of a package registry."""
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
    """The search above can fail."""
    assert 1 == len(_complaints(line))


def test_the_search_is_not_too_eager() -> None:
    """Relative paths and other addresses are fine."""
    assert [] == _complaints("build/work/x ./root/ https://kafka.apache.org/documentation ~/.cache")


def test_nothing_built_is_committed() -> None:
    """Jars, wheels, byte code, locks of other tools and state of daemons are never committed."""
    wrong = {".jar", ".whl", ".pyc"}
    names = {"uv.lock", "package-lock.json", ".dmypy.json"}
    assert [] == [path for path in _committed() if path.suffix in wrong or path.name in names]


@pytest.mark.parametrize("script", [".ci/run", "dev/setup.sh", "dev/lock.sh"])
def test_scripts_have_their_run_bit(script: str) -> None:
    """What is called by its name can be."""
    assert os.access(ROOT / script, os.X_OK)


def test_help_lists_every_target() -> None:
    """`make` alone prints every target, each with a sentence."""
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    printed = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert targets == set(phony.split())
    assert targets == set(re.findall(r"^  make ([a-z-]+) +\S.*\.$", printed.stdout, re.MULTILINE))


def test_changelog_knows_this_version() -> None:
    """The newest release of the changelog is the version of the package; `Unreleased` may stand above it."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[?([^\]\s]+)", changelog, re.MULTILINE)
    releases = [heading for heading in headings if heading.lower() != "unreleased"]
    assert PROJECT["version"] == releases[0]


def test_the_version_stands_in_one_place() -> None:
    """In pyproject.toml; what repeats it for a reader outside of Python says the same, tags of our images included."""
    charts = {path.parent.name: yaml.safe_load(path.read_text()) for path in (ROOT / "helm").glob("*/Chart.yaml")}
    assert {"translator", "spark-sink"} == charts.keys()
    assert {PROJECT["version"]} == {chart["appVersion"] for chart in charts.values()}
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
    """Every dependency, of every extra, is in the lock in a version that pyproject.toml allows."""
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
    """Every entry of a lock is one exact version with at least one hash, and no address of an index."""
    lock = (ROOT / name).read_text()
    entries = [entry for entry in re.split(r"\n(?=[A-Za-z0-9])", lock) if not entry.startswith("#")]
    assert [] == [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry]
    assert len(entries) == len(PINNED.findall(lock))
    assert "://" not in lock
