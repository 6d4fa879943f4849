"""Packages from npm for the documentation site."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path


def packed(package: str) -> bytes:
    """Download a package, named with its version, and return its archive.

    Raises:
        OSError: npm is not installed.
        subprocess.CalledProcessError: npm cannot download the package.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = ("npm", "pack", "--silent", "--pack-destination", folder, package)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).iterdir()
        return archive.read_bytes()


def check(package: str, content: bytes, expected: str) -> None:
    """Exit if a package's content does not have the expected SHA-256."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        sys.exit(f"docs: {package} has checksum {found}, expected {expected}")
