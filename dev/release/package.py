"""`python -m dev.release.package [FOLDER]` builds this checkout's sdist and wheel in `dist` or FOLDER.

The wheel is built from the sdist, and the sdist from a copy of the files that git tracks. Neither contains leftovers
from earlier builds. If cargo is installed, the wheel contains the native path and works only on this platform. The
build tools come from `.venv`.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

# The content of the distributions. The rest of the checkout is for building, testing and documentation.
_PARTS = (
    *("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"),
    *("cdc_core", "translator", "spark_sink", "dev"),
)

# 2026-01-01. Files in a wheel have timestamps, and two builds from the same source must be identical.
EPOCH = "1767225600"


class Packages(NamedTuple):
    """The built files."""

    source: Path
    wheel: Path


def build(folder: Path, environment: Mapping[str, str] = os.environ) -> Packages:
    """Build both distributions into a folder, in place of the distributions from an earlier build."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("cdc_translator-*.tar.gz"), *folder.glob("cdc_translator-*.whl")):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="cdc-package-") as name:
        work = Path(name)
        copy_checkout(work / "checkout", _PARTS)
        source = folder / call_backend("build_sdist", work / "checkout", folder, environment)
        _set_times(source)
        with tarfile.open(source) as packed:
            packed.extractall(work, filter="data")
        unpacked = work / source.name.removesuffix(".tar.gz")
        wheel = folder / call_backend("build_wheel", unpacked, folder, environment)
    return Packages(source, wheel)


def _set_times(source: Path) -> None:
    """Give everything in a source distribution the same time and owner. The build backend leaves the ones from the
    build.
    """
    data = io.BytesIO()
    with tarfile.open(source) as packed, tarfile.open(fileobj=data, mode="w") as same:
        for member in packed:
            member.mtime = int(EPOCH)
            member.pax_headers = {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            same.addfile(member, packed.extractfile(member) if member.isfile() else None)
    source.write_bytes(gzip.compress(data.getvalue(), mtime=int(EPOCH)))


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
