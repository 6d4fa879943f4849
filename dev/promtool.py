"""`python -m dev.promtool [--build]`: Prometheus' own tool, by which queries are checked and alerts are evaluated.

It is the one on the PATH. With `--build` Debian's package is fetched where there is none, and unpacked into the user's
cache: nothing is installed, and no root is needed. Exit code 1: it is not there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dev.jars import cache, only_one

MISSING = "promtool was not found: make chart-check fetches it on Debian (package prometheus)"

_FETCHED = "promtool-debian"


def promtool() -> str | None:
    """Return the program; None where there is none."""
    fetched = cache() / _FETCHED
    return shutil.which("promtool") or (str(fetched) if fetched.is_file() else None)


def build() -> str | None:
    """Fetch it where it is missing, and return it as `promtool` does."""
    fetched = cache() / _FETCHED
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg")
    with only_one(fetched):
        if promtool() is None and apt and dpkg:
            _fetch(apt, dpkg, fetched)
    return promtool()


def _fetch(apt: str, dpkg: str, to: Path) -> None:
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=f"{to.name}.new-") as folder:
        subprocess.run([apt, "-qq", "download", "prometheus"], cwd=folder, capture_output=True, check=False)
        for package in Path(folder).glob("prometheus_*.deb"):
            subprocess.run([dpkg, "-x", str(package), folder], capture_output=True, check=False)
        unpacked = Path(folder, "usr", "bin", "promtool")
        if unpacked.is_file():
            unpacked.rename(to)


def main() -> None:
    """Say where it is, or what is missing."""
    found = build() if "--build" in sys.argv[1:] else promtool()
    if found is None:
        sys.exit(MISSING)
    print(found)


if __name__ == "__main__":
    main()
