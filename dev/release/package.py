"""`python -m dev.release.package [FOLDER]` builds this checkout's sdist and wheel in `dist` or FOLDER.

The wheel is built from the sdist, and the sdist from a copy of the files that git tracks, so neither contains leftovers
from earlier builds. If the native path has been built, the wheel contains it and is specific to this platform. Nothing
is downloaded, because the build tools come from `.venv`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from dev.native import BUILT

ROOT = Path(__file__).parents[2]

# The content of the distributions. The rest of the checkout is for building, testing and documentation.
_PARTS = ("pyproject.toml", "README.md", "LICENSE", "cdc_core", "translator", "spark_sink")

# 2026-01-01. Files in a wheel have timestamps, and two builds from the same source must be identical.
EPOCH = "1767225600"


class Packages(NamedTuple):
    """The built files."""

    source: Path
    wheel: Path


def build(folder: Path) -> Packages:
    """Build both distributions into a folder, in place of the distributions from an earlier build."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("cdc_translator-*.tar.gz"), *folder.glob("cdc_translator-*.whl")):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="cdc-package-") as name:
        work = Path(name)
        copy_checkout(work / "checkout", _PARTS)
        source = folder / call_backend("build_sdist", work / "checkout", folder)
        with tarfile.open(source) as packed:
            packed.extractall(work, filter="data")
        plain = (
            work / "wheels" / call_backend("build_wheel", work / source.name.removesuffix(".tar.gz"), work / "wheels")
        )
        if BUILT.is_file():
            plain = _with_native_path(plain, work)
        wheel = folder / plain.name
        shutil.copyfile(plain, wheel)
    return Packages(source, wheel)


def copy_checkout(to: Path, parts: Iterable[str]) -> None:
    """Copy the files in parts of this checkout that git tracks."""
    listed = _run(["git", "ls-files", "-z", *parts], ROOT)
    for name in filter(None, listed.split("\0")):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, to / name)


def call_backend(hook: str, checkout: Path, folder: Path, environment: Mapping[str, str] = os.environ) -> str:
    """Call a hook of the build backend, and return the name of the file that the hook created in a folder."""
    folder.mkdir(exist_ok=True)
    code = f"import sys, setuptools.build_meta as backend; print(backend.{hook}(sys.argv[1]))"
    return _run([sys.executable, "-c", code, str(folder.resolve())], checkout, environment).splitlines()[-1]


def _with_native_path(plain: Path, work: Path) -> Path:
    """Return a wheel that also contains the extension, and is named after the platform. The stable ABI works with any
    newer Python.
    """
    tool = [sys.executable, "-m", "wheel"]
    _run([*tool, "unpack", "--dest", str(work / "unpacked"), str(plain)], work)
    (unpacked,) = (work / "unpacked").iterdir()
    shutil.copyfile(BUILT, unpacked / "translator" / "_native" / BUILT.name)
    (work / "native").mkdir()
    _run([*tool, "pack", "--dest-dir", str(work / "native"), str(unpacked)], work)
    (packed,) = (work / "native").iterdir()
    platform = "import sysconfig; print(sysconfig.get_platform().translate(str.maketrans('-.', '__')))"
    tags = [
        "--python-tag",
        "cp311",
        "--abi-tag",
        "abi3",
        "--platform-tag",
        _run([sys.executable, "-c", platform], work),
    ]
    name = _run([*tool, "tags", "--remove", *tags, str(packed)], work).splitlines()[-1]
    return packed.with_name(Path(name).name)


def _run(command: list[str], folder: Path, environment: Mapping[str, str] = os.environ) -> str:
    environment = {**environment, "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"package: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def main() -> None:
    for path in build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"):
        print(f"{path} ({path.stat().st_size / 1024:.0f} KiB)")


if __name__ == "__main__":
    main()
