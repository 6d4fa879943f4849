"""Adds the native path to installations and wheels that are built from a checkout, if cargo is installed
(docs/native.md). All other build settings are in pyproject.toml.
"""

import os
import re
import shutil
import sys
from functools import cache
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


@cache
def extension() -> Path | None:
    """Return the built extension. None if it cannot be built, or if this is not a checkout.

    With CDC_NATIVE=must, the build fails instead.
    """
    must = os.environ.get("CDC_NATIVE") == "must"
    if not (ROOT / "dev" / "native.py").is_file():
        if must:
            sys.exit("CDC_NATIVE=must: dev/native.py is missing, so the native path cannot be built")
        return None
    sys.path.insert(0, str(ROOT))  # build backends do not add it
    from dev import native

    if native.main(["--must"] if must else []):
        sys.exit("CDC_NATIVE=must: the native path was not built")
    return native.BUILT if native.BUILT.is_file() else None


class BuildPython(build_py):
    """Copies the extension with its licenses, except into an editable installation, which uses the checkout's."""

    def run(self) -> None:
        super().run()
        built = extension()
        if built is not None and not self.editable_mode:
            for path in (built, built.with_name("LICENSES.txt")):
                shutil.copyfile(path, Path(self.build_lib, path.relative_to(ROOT)))


class NativeDistribution(Distribution):
    """A distribution that is specific to the platform if it contains the extension."""

    def has_ext_modules(self) -> bool:
        return extension() is not None


class Wheel(bdist_wheel):
    """Names a wheel with the extension. The stable ABI works with any newer Python."""

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()
        built = extension()
        if self.root_is_pure or built is None:
            return python, abi, platform
        return "cp311", "abi3", _with_glibc(platform, built.read_bytes())


def _with_glibc(platform: str, built: bytes) -> str:
    """Return the platform with the oldest glibc that has all symbols of the extension (PEP 600). Package indexes reject
    wheels for `linux_*`. The extension links only to libraries that every manylinux system has: glibc and libgcc_s.
    """
    versions = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", built)]
    return platform.replace("linux_", f"manylinux_2_{max(versions)}_", 1) if versions else platform


setup(distclass=NativeDistribution, cmdclass={"build_py": BuildPython, "bdist_wheel": Wheel})
