"""`python -m dev.release.promtool [--build]`: Prometheus and its own tool, by which queries and alerts are evaluated.

They are those on the PATH. With `--build` Debian's package is fetched where there are none, and unpacked into the
user's cache: nothing is installed, and no root is needed. Exit code 1: they are not there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dev.jars import cache, only_one

MISSING = "promtool was not found: make chart-check fetches it on Debian (package prometheus)"

_PROGRAMS = ("promtool", "prometheus")


def _fetched(name: str) -> Path:
    return cache() / f"{name}-debian"


def program(name: str) -> str | None:
    """Return `promtool` or `prometheus`; None where there is none."""
    return shutil.which(name) or (str(_fetched(name)) if _fetched(name).is_file() else None)


def promtool() -> str | None:
    """Return the tool; None where there is none."""
    return program("promtool")


def build(name: str = "promtool") -> str | None:
    """Fetch both where that one is missing, and return it as `program` does."""
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
    """Say where it is, or what is missing."""
    found = build() if "--build" in sys.argv[1:] else promtool()
    if found is None:
        sys.exit(MISSING)
    print(found)


if __name__ == "__main__":
    main()
