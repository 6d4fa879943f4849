"""An earlier release of the translator, from the repository's history."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

BEFORE_0_1_0 = "1306530"
"""The last commit whose states have no format."""

_PACKAGES = ("cdc_core", "translator")


def is_known(commit: str) -> bool:
    """Return whether this checkout has a commit. A shallow clone does not."""
    return not subprocess.run(["git", "cat-file", "-e", commit], cwd=ROOT, capture_output=True, check=False).returncode


def install(commit: str, folder: Path) -> Path:
    """Unpack the packages of a commit, and return a program that runs its translator. It has no native path."""
    packed = folder / "release.tar"
    command = ["git", "archive", "-o", str(packed), commit, *_PACKAGES]
    subprocess.run(command, cwd=ROOT, check=True)
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    path, python = shlex.quote(str(folder)), shlex.quote(sys.executable)
    program = folder / "translator-of-release"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {python} -m translator "$@"\n')
    program.chmod(0o755)
    found = subprocess.run(
        [sys.executable, "-c", "import translator; print(translator.__file__)"],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert Path(found.strip()).is_relative_to(folder), found
    return program
