"""The images for the tests of this folder, which `make image-check` builds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dev.release.container import command
from dev.release.images import ROOT, TARGETS, BuiltImage, built

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def images() -> Mapping[str, BuiltImage]:
    """The images. If one is missing, the tests fail and explain how to build it."""
    return {target: built(target) for target in TARGETS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that the images' user can write to, like a volume."""
    os.chown(tmp_path, 10001, 10001)
    return tmp_path


@pytest.fixture
def run(images: Mapping[str, BuiltImage], folder: Path) -> Run:
    """Run an image with arguments until it ends. `entry` replaces its entry point."""

    def run(target: str, *arguments: str, entry: list[str] | None = None) -> subprocess.CompletedProcess[str]:
        image = images[target]
        if entry is not None:
            image = image._replace(settings={**image.settings, "Entrypoint": entry})
        return subprocess.run(
            command(image, folder, arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def programs(images: Mapping[str, BuiltImage], folder: Path) -> Mapping[str, Path]:
    """The images as programs that `dev.servers.stack` starts. They can write to the same folder."""
    found = {}
    for target in images:
        program = folder / f"run-{target}"
        program.write_text(
            f'#!/bin/sh\ncd "{ROOT}"\nexec "{sys.executable}" -m dev.release.container "{folder}" {target} "$@"\n'
        )
        program.chmod(0o755)
        found[target] = program
    return found
