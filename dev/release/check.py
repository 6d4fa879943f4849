"""`python -m dev.release.check` makes the files of a release in `dist`. It publishes nothing.

The packages are built twice and must be identical. They must contain the native path, so the build fails without cargo.
The second build compiles the native path again, because its cache is empty.

The charts contain neither a registry nor the project's page. With `--project` and `--registry`, the packaged charts
contain a publisher's page and registry, and install images from this registry.

All files are signed with a throwaway key and verified. The charts are also verified in a registry on this machine. With
`--images`, both images are built and get their bills of materials. They are signed and verified there, too.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dev.go_program import GoProgramError
from dev.native import NativeError
from dev.release import images, sbom
from dev.release.charts import CHARTS, ChartError, Published, package_chart
from dev.release.package import ROOT, build
from dev.release.signing import SigningError, rehearse


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m dev.release.check", allow_abbrev=False)
    parser.add_argument("--project", metavar="URL", help="The address of the project's page. The charts contain it.")
    parser.add_argument("--registry", metavar="NAME", help="The registry for the images, such as ghcr.io/owner.")
    parser.add_argument(
        "--images",
        action="store_true",
        help="Also build the images. This needs root on Debian and takes many minutes.",
    )
    given = parser.parse_args(arguments)
    if (given.project is None) != (given.registry is None):
        parser.error("--project and --registry must be used together")
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
        charts = [package_chart(chart, folder, where) for chart in CHARTS]
        print(f"release: {', '.join(chart.name for chart in charts)}")
        bills = {target: _image(target, folder) for target in images.TARGETS} if given.images else {}
        with tempfile.TemporaryDirectory(prefix="cdc-signing-") as keys:
            rehearse(Path(keys), [*packages, *bills.values()], charts, bills)
    except (ChartError, GoProgramError, SigningError, images.ImageError, NativeError) as error:
        sys.exit(f"release: {error}")
    print("release: all of these were signed with a throwaway key and verified, the charts also in an OCI layout")
    if not given.images:
        print("release: NOT SHOWN: images and their bills of materials (--images; Debian, root)")


def _image(target: str, folder: Path) -> Path:
    """Build an image, and return the file with its bill of materials."""
    image = images.build(target)
    print(f"release: image {target} {image.digest}")
    return sbom.write(target, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
