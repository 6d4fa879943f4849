"""`python -m dev.release.check` makes the files of a release in `dist`, and publishes nothing.

The packages are built twice and must be identical. They must contain the native path, so the build fails without cargo.
The second build compiles the native path again, because its cache is empty.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dev.go_program import GoProgramError
from dev.release.charts import CHARTS, FOLDER, HELM
from dev.release.package import ROOT, build


def main() -> None:
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
        helm = HELM.built()
    except GoProgramError as error:
        sys.exit(f"release: {error}")
    for chart in CHARTS:
        subprocess.run([helm, "package", FOLDER / chart, "--destination", folder], check=True)
    print(
        "release: NOT SHOWN: images (make image-check), bills of materials (make sbom), signatures (docs/releasing.md)"
    )


if __name__ == "__main__":
    main()
