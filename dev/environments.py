"""Create virtual environments in the user's cache, for programs that this project uses but does not depend on."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dev.jars import cache, only_one

_INSTALL_SECONDS = 900.0
_QUIETLY = ("--quiet", "--disable-pip-version-check")


class NotInstalledError(Exception):
    """Raised if a program is not available on this machine. The message gives the reason."""


def environment(name: str, requirements: Sequence[str]) -> Path:
    """Return the Python of an environment that has these packages. The first call installs the packages.

    Raises:
        NotInstalledError: pip cannot install the packages. The message contains the last line of pip's output.
    """
    made_from = "\n".join((*requirements, sys.version))
    directory = cache() / f"python-{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}"
    done = directory / "installed"
    with only_one(directory):
        if not done.exists():
            shutil.rmtree(directory, ignore_errors=True)
            _run([sys.executable, "-m", "venv", directory], name)
            python: list[str | Path] = [directory / "bin" / "python"]
            _run([*python, "-m", "pip", "install", *_QUIETLY, *requirements], name)
            done.touch()
    return directory / "bin" / "python"


def download(package: str, to: Path) -> Path:
    """Download a wheel without its dependencies, and return the file.

    Raises:
        NotInstalledError: pip cannot download the wheel.
    """
    options: list[str | Path] = [*_QUIETLY, "--no-deps", "--only-binary=:all:", "--dest", to]
    with tempfile.TemporaryDirectory(dir=to.parent) as scratch:
        _run([sys.executable, "-m", "pip", "download", "--cache-dir", scratch, *options, package], package)
    (wheel,) = to.glob("*.whl")
    return wheel


def versions(python: Path, packages: Sequence[str]) -> str:
    """Return the package versions in an environment as one line."""
    code = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return _run([python, "-c", code, *packages], "versions").strip()


def _run(command: Sequence[str | Path], name: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(f"{name}: {type(error).__name__}") from None
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:] or ["no reason given"]
        raise NotInstalledError(f"{name} could not be installed: {last[0][:200]}")
    return done.stdout
