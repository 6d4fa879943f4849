"""The contents of the images, and the permissions of their processes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib.metadata import version

import pytest

from dev.release.images import TARGETS, BuiltImage
from tests.images.conftest import Run

PYTHON = ["/opt/cdc/bin/python", "-c"]


@pytest.mark.parametrize("target", TARGETS)
def test_it_starts(target: str, run: Run, images: Mapping[str, BuiltImage]) -> None:
    """Each image reports its version on a read-only root. The test prints its size and startup time."""
    started = time.monotonic()
    done = run(target, "--version")
    took = time.monotonic() - started
    assert (0, "") == (done.returncode, done.stderr)
    assert version("cdc-translator") in done.stdout
    print(f"{target}: {_mib(images[target])} MiB on disk, --version in {took:.1f} s")


def test_the_native_path_is_inside(run: Run) -> None:
    """The images contain the native path. Without it, common messages cost several times as much."""
    assert "native" in run("translator", "--version").stdout


@pytest.mark.parametrize("target", TARGETS)
def test_it_is_nobody_in_particular(target: str, run: Run) -> None:
    """The process has PID 1, user 10001 and no capabilities, and can write only to /tmp."""
    code = """
import os, pathlib
print(os.getpid(), os.getuid(), os.getgid())
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")))
for folder in ("/", "/opt/cdc", "/etc", "/var/tmp", "/tmp"):
    try:
        pathlib.Path(folder, "x").write_text("")
        print(folder, "written")
    except OSError:
        pass
"""
    done = run(target, code, entry=PYTHON)
    assert (0, "") == (done.returncode, done.stderr)
    who, capabilities, *written = done.stdout.splitlines()
    assert "1 10001 10001" == who
    assert {"0000000000000000"} == {*capabilities.split()}
    assert ["/tmp written"] == written


@pytest.mark.parametrize("target", TARGETS)
def test_tools_stayed_behind(target: str, images: Mapping[str, BuiltImage]) -> None:
    """The image contains no compiler and no package installer."""
    places = [images[target].root / folder for folder in ("usr/bin", "usr/local/bin", "opt/cdc/bin")]
    programs = {path.name for place in places if place.is_dir() for path in place.iterdir()}
    assert {"translator", "python"} <= programs
    assert set() == programs & {"cargo", "rustc", "gcc", "cc", "javac", "pip", "pip3", "git", "curl", "wget"}


@pytest.mark.parametrize("target", TARGETS)
def test_bytecode_fits(target: str, images: Mapping[str, BuiltImage]) -> None:
    """The bytecode validates by source content, because file times differ in an image. Bytecode that does not match
    would be compiled at every start, since there is no place to store it.
    """
    (packages,) = (images[target].root / "opt" / "cdc" / "lib").glob("python3*/site-packages")
    assert list((packages / "translator" / "config" / "__pycache__").glob("settings.*.pyc"))
    # Thrift's wheel has bytecode for -O, which is not used here.
    read = (path for path in packages.rglob("*.pyc") if ".opt-" not in path.name)
    by_time = [path for path in read if not path.read_bytes()[4] & 1]
    assert [] == by_time


def _mib(image: BuiltImage) -> int:
    return sum(path.lstat().st_blocks * 512 for path in image.root.rglob("*")) >> 20
