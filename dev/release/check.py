"""`python -m dev.release.check` makes the files of a release in `dist`, and publishes nothing.

The packages are built twice and must be identical. They must contain the native path, so the build fails without cargo.
The second build compiles the native path again, because its cache is empty.

The charts name no registry and no page of the project. With `--project` and `--registry`, the packaged charts name
those of a publisher, and install images from this registry.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dev.go_program import GoProgramError
from dev.release.charts import CHARTS, ChartError, Published, package_chart
from dev.release.package import ROOT, build


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m dev.release.check", allow_abbrev=False)
    parser.add_argument("--project", metavar="URL", help="The address of the project's page, for the charts.")
    parser.add_argument("--registry", metavar="NAME", help="The registry of the images, such as ghcr.io/owner.")
    given = parser.parse_args(arguments)
    if (given.project is None) != (given.registry is None):
        parser.error("--project and --registry belong together")
    where = None if given.project is None else Published(given.project.rstrip("/"), given.registry.rstrip("/"))
    environment = {**os.environ, "CDC_NATIVE": "must"}
    folder = ROOT / "dist"
    packages = build(folder, environment)
    with tempfile.TemporaryDirectory(prefix="cdc-again-") as again:
        fresh = {**environment, "CDC_CACHE": str(Path(again, "cache"))}
        for first, second in zip(packages, build(Path(again, "dist"), fresh), strict=True):
            if first.read_bytes() != second.read_bytes():
                sys.exit(f"release: two builds of {first.name} differ")
    print(f"release: {', '.join(one.name for one in packages)}: two builds are identical")
    try:
        for chart in CHARTS:
            print(f"release: {package_chart(chart, folder, where).name}")
    except (ChartError, GoProgramError) as error:
        sys.exit(f"release: {error}")
    print(
        "release: NOT SHOWN: images (make image-check), bills of materials (make sbom), signatures (docs/releasing.md)"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
