"""`python -m dev.release.sbom` writes a CycloneDX bill of materials and the licenses of each image to build/sbom.

Syft lists the contents of the images from `dev.release.images`: Debian packages, Python packages and jars. The native
module is a single file that does not show its crates, so cargo lists the crates in dev/crates.sha256. With `--build`,
Syft is first built from the Go module proxy, once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from dev.go_program import GoProgram, GoProgramError
from dev.native import CHECKSUMS, NativeError, checksums, crate_packages, locked_crate
from dev.release.images import ROOT, TARGETS, BuiltImage, ImageError, built

SYFT = GoProgram(
    "Syft",
    "syft",
    "github.com/anchore/syft/cmd/syft",
    "v1.57.1",
    ".venv/bin/python -m dev.release.sbom --build",
)

Component: TypeAlias = Mapping[str, Any]

_NOT_STATED = "not stated"


def bill(image: BuiltImage) -> dict[str, Any]:
    """Return an image's bill of materials.

    Raises:
        GoProgramError: Syft was not built.
        ImageError: Syft cannot read the image.
        NativeError: cargo cannot list the crates.
    """
    name = ("--source-name", f"cdc-{image.target}", "--source-version", version("cdc-translator"))
    command = [str(SYFT.built()), "scan", f"dir:{image.root}", *name, "--output", "cyclonedx-json", "--quiet"]
    # Otherwise Syft checks for a newer version.
    environment = {**os.environ, "SYFT_CHECK_FOR_APP_UPDATE": "false"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImageError(f"Syft cannot read {image.root}: {done.stderr.strip()[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    found["metadata"]["component"]["type"] = "container"
    # An image has tens of thousands of files, but only the packages matter.
    packages = [one for one in found["components"] if one["type"] != "file"]
    found["components"] = [*packages, *crates()] if list(image.root.glob("opt/**/rows.abi3.so")) else packages
    return found


def crates() -> list[Component]:
    """Return the native path's crates."""
    with locked_crate() as crate:
        return [*components_of(crate_packages(crate), checksums(CHECKSUMS.read_text()))]


def components_of(packages: list[Any], known: Mapping[str, str]) -> Iterator[Component]:
    """Yield the packages from `cargo metadata` that are crates with a known checksum, as components."""
    for package in packages:
        checksum = known.get(f"{package['name']}-{package['version']}")
        if checksum is not None:
            yield {
                "type": "library",
                "name": package["name"],
                "version": package["version"],
                "purl": f"pkg:cargo/{package['name']}@{package['version']}",
                "hashes": [{"alg": "SHA-256", "content": checksum}],
                # Older crates use a slash for "or" instead of SPDX syntax.
                "licenses": [{"expression": package["license"].replace("/", " OR ")}],
            }


def licences(components: list[Component]) -> str:
    """Return a table of the components by license. Components without a license come first."""
    rows = sorted((licence_of(one), one["name"], one.get("version", "")) for one in components)
    rows.sort(key=lambda row: row[0] != _NOT_STATED)
    return "".join(f"{licence}\t{name}\t{number}\n" for licence, name, number in rows)


def licence_of(component: Component) -> str:
    """Return a component's licenses in one line."""
    stated = [
        one.get("expression") or one["license"].get("id") or one["license"].get("name") or ""
        for one in component.get("licenses", [])
    ]
    return " AND ".join(" ".join(text.split()) for text in stated if text) or _NOT_STATED


def write(target: str, folder: Path) -> Path:
    """Write the bill of materials and the licenses of a built image, and return the bill's file."""
    found = bill(built(target))
    file = folder / f"{target}.cdx.json"
    file.write_text(json.dumps(found, indent=2) + "\n")
    (folder / f"{target}.licences.tsv").write_text(licences(found["components"]))
    silent = sum(licence_of(one) == _NOT_STATED for one in found["components"])
    print(f"sbom: {file}: {len(found['components'])} components, {silent} say no licence")
    return file


def main() -> None:
    """Write the files, or print a message about what is missing."""
    folder = ROOT / "build" / "sbom"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if "--build" in sys.argv[1:]:
            SYFT.build()
        for target in TARGETS:
            write(target, folder)
    except (GoProgramError, ImageError, NativeError) as error:
        sys.exit(f"sbom: {error}")


if __name__ == "__main__":
    main()
