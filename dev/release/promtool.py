"""Find Prometheus and promtool, which evaluate queries and alerts: `python -m dev.release.promtool [--build]`.

Programs on the PATH are preferred. If the programs are missing, `--build` downloads Debian's package and unpacks it
into the user's cache. Nothing is installed, and no root is needed. The exit code is 1 if the programs are not
available.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dev.jars import cache, only_one

MISSING = "promtool was not found: make chart-check downloads it on Debian (package prometheus)"

_PROGRAMS = ("promtool", "prometheus")


def _fetched(name: str) -> Path:
    return cache() / f"{name}-debian"


def program(name: str) -> str | None:
    """Return the path of `promtool` or `prometheus`, or None if the program is not available."""
    return shutil.which(name) or (str(_fetched(name)) if _fetched(name).is_file() else None)


def promtool() -> str | None:
    """Return the path of promtool, or None if promtool is not available."""
    return program("promtool")


def build(name: str = "promtool") -> str | None:
    """If promtool is missing, download both programs. Return the program's path, or None if it is not available."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg")
    with only_one(_fetched("promtool")):
        if program(name) is None and apt and dpkg:
            _fetch(apt, dpkg)
    return program(name)


def _fetch(apt: str, dpkg: str) -> None:
    with tempfile.TemporaryDirectory(dir=cache(), prefix="prometheus.new-") as folder:
        subprocess.run([apt, "-qq", "download", "prometheus"], cwd=folder, capture_output=True, check=False)
        for package in Path(folder).glob("prometheus_*.deb"):
            subprocess.run([dpkg, "-x", str(package), folder], capture_output=True, check=False)
        for name in _PROGRAMS:
            unpacked = Path(folder, "usr", "bin", name)
            if unpacked.is_file():
                unpacked.rename(_fetched(name))


def main() -> None:
    """Print the path of promtool, or a message about what is missing."""
    found = build() if "--build" in sys.argv[1:] else promtool()
    if found is None:
        sys.exit(MISSING)
    print(found)


if __name__ == "__main__":
    main()
