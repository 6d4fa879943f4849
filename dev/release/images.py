"""`python -m dev.release.images [TARGET ...]` builds the Dockerfile's images without a container engine.

Buildah runs each step in a chroot. The base is the Debian release that the Dockerfile names, and debootstrap creates
it. Packages and steps are the same, but Debian's Python replaces that of the official image. The base is built once,
and trusts the certificates that were added to this machine. Packages come from the indexes that apt and pip use on this
machine. Everything is stored in the user's cache. `dev.release.container` runs the result.

CDC_IMAGE_PLATFORM selects another platform. QEMU then runs its programs, many times more slowly.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dev.jars import cache, only_one
from dev.release.package import EPOCH

ROOT = Path(__file__).parents[2]
TARGETS = ("translator", "spark-sink")

RELEASE = "bookworm"
# The parts of the official Python image that the Dockerfile uses, including headers for compilation.
_BASE_PACKAGES: Mapping[str, str] = {
    "amd64": "python3,python3-venv,ca-certificates",
    "arm64": "python3,python3-venv,python3-dev,ca-certificates",
}

_VARIABLE = "CDC_IMAGE_PLATFORM"
_EMULATORS: Mapping[str, str] = {"amd64": "qemu-x86_64", "arm64": "qemu-aarch64"}
"""The Dockerfile's platforms, each with the name of its emulator in Linux."""

# The Debian packages. The last package runs the images that the first two packages build.
_PROGRAMS = ("buildah", "debootstrap", "runc")
_GET_PROGRAMS = f"apt-get install --no-install-recommends {' '.join(_PROGRAMS)}"

# Certificates that were added to the machine, for example for a proxy.
_CERTIFICATES = Path("/usr/local/share/ca-certificates")
_PIP_SETTINGS = Path("/etc/pip.conf")


class ImageError(Exception):
    """Raised if an image cannot be built or was not built. The message gives the reason."""


class BuiltImage(NamedTuple):
    """An image, unpacked into a folder.

    Args:
        digest: the digest of the image's manifest, which covers the entire image.
        settings: process settings from the Dockerfile: `User`, `Env`, `Entrypoint`, `WorkingDir`.
        root: the image's file system.
    """

    target: str
    digest: str
    settings: Mapping[str, Any]
    root: Path


def built(target: str) -> BuiltImage:
    """Return a built image.

    Raises:
        ImageError: the image was not built, or a program is missing.
    """
    _ask_for_programs()
    container = _name(target)
    try:
        root = Path(_buildah("mount", container).strip())
    except ImageError:
        raise ImageError(f"the image {target} was not built: .venv/bin/python -m dev.release.images {target}") from None
    found = json.loads(_buildah("inspect", "--type", "image", _name(target)))
    return BuiltImage(target, found["FromImageID"], found["OCIv1"]["config"], root)


def build(target: str) -> BuiltImage:
    """Build an image, including its base if necessary, and unpack the image in place of the earlier image.

    Raises:
        ImageError: a program or a permission is missing, or a step failed. The output of a failed step was printed.
    """
    _ask_for_programs()
    with only_one(_store()):
        base = f"localhost/cdc-base:{RELEASE}-{platform()}"
        if not _is_there(base):
            _make_base(base)
        container = _name(target)
        if _is_there(container, kind="container"):
            _buildah("rm", container)
        if _is_there(container):
            _buildah("rmi", container)
        settings = ("--volume", f"{_PIP_SETTINGS}:{_PIP_SETTINGS}:ro") if _PIP_SETTINGS.is_file() else ()
        # Docker also takes the files' timestamps from the build argument, but buildah needs an option.
        times = ("--timestamp", EPOCH, "--build-arg", f"SOURCE_DATE_EPOCH={EPOCH}")
        source = ("--arch", platform(), "--build-arg", f"PYTHON_IMAGE={base}")
        command = ("bud", "--quiet", "--target", target, *source, *times, *settings)
        _buildah(*command, "--tag", container, str(ROOT), loud=True)
        _buildah("from", "--arch", platform(), "--name", container, container)
    return built(target)


def push(target: str, reference: str) -> None:
    """Push a built image to a registry without TLS.

    Raises:
        ImageError: the image was not built, or the registry rejects it.
    """
    _buildah("push", "--quiet", "--tls-verify=false", _name(target), f"docker://{reference}")


def _name(target: str) -> str:
    return f"cdc-{target}-{platform()}"


@functools.cache
def platform() -> str:
    """Return the images' platform: this machine's platform or the requested one.

    Raises:
        ImageError: the Dockerfile does not support the platform, or the platform has no emulator.
    """
    ours = _run("dpkg", "--print-architecture").strip()
    asked = os.environ.get(_VARIABLE) or ours
    if asked not in _EMULATORS:
        raise ImageError(f"{asked}: the Dockerfile supports {' and '.join(_EMULATORS)}")
    if asked != ours and not Path("/proc/sys/fs/binfmt_misc", _EMULATORS[asked]).exists():
        raise ImageError(f"no emulator for {asked} is installed; on Debian: apt-get install qemu-user-static")
    return asked


def _make_base(base: str) -> None:
    mirror = _mirror()
    print(f"images: building the base, Debian {RELEASE} from {mirror} (two minutes, once)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=_store(), prefix="base-") as folder:
        root = Path(folder, "root")
        variant = ("--variant=minbase", f"--include={_BASE_PACKAGES[platform()]}", f"--arch={platform()}")
        _run("debootstrap", *variant, RELEASE, str(root), mirror)
        for certificate in sorted(_CERTIFICATES.glob("*.crt")):
            shutil.copy(certificate, root / _CERTIFICATES.relative_to("/"))
        _run("chroot", str(root), "update-ca-certificates")
        for package in root.glob("var/cache/apt/archives/*.deb"):
            package.unlink()
        container = _buildah("from", "--arch", platform(), "scratch").strip()
        _buildah("copy", "--quiet", container, str(root), "/")
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        _buildah("config", "--env", path, container)
        _buildah("commit", "--quiet", "--rm", container, base)


def _mirror() -> str:
    """Return the mirror that this machine's apt downloads the release from."""
    chosen = ("Created-By: Packages", f"Codename: {RELEASE}", "Component: main")
    mirrors = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", *chosen).split()
    if not mirrors:
        raise ImageError(f"apt on this machine has no source for Debian {RELEASE}, which the base needs")
    return mirrors[0]


def _is_there(name: str, kind: str = "image") -> bool:
    try:
        _buildah("inspect", "--type", kind, name)
    except ImageError:
        return False
    return True


def _store() -> Path:
    folder = cache() / "images"
    folder.mkdir(exist_ok=True)
    return folder


def _buildah(*arguments: str, loud: bool = False) -> str:
    store = ("--root", str(_store() / "root"), "--runroot", str(_store() / "run"))
    return _run("buildah", *store, *arguments, loud=loud)


def _run(*command: str, loud: bool = False) -> str:
    """Run a command, and return its output. With `loud`, also print the output immediately, for steps that take
    minutes.
    """
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot", "DEBIAN_FRONTEND": "noninteractive"}
    output = sys.stderr if loud else subprocess.PIPE
    done = subprocess.run(command, env=environment, stdout=output, stderr=output, text=True, check=False)
    if done.returncode:
        said = "" if loud else f": {(done.stderr or done.stdout).strip()[-1000:]}"
        raise ImageError(f"{' '.join(command)} failed{said}")
    return done.stdout or ""


@functools.cache
def _ask_for_programs() -> None:
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        raise ImageError(f"{', '.join(missing)} not found; on Debian: {_GET_PROGRAMS}")
    if os.geteuid():
        raise ImageError("debootstrap and runc need root, for chroots and namespaces")


def main(arguments: Sequence[str]) -> int:
    unknown = set(arguments) - set(TARGETS)
    if unknown:
        print(f"images: {', '.join(sorted(unknown))}: the Dockerfile has {' and '.join(TARGETS)}", file=sys.stderr)
        return 2
    try:
        for target in arguments or TARGETS:
            image = build(target)
            print(f"images: {target} {image.digest}, unpacked in {image.root}")
    except ImageError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
