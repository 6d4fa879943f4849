"""The cluster's programs. Build two Kubernetes programs once on this machine, from the Go module proxy, and get etcd
from a Debian package.

Go verifies every module against its checksum database. No root is needed, because Debian's package is unpacked into the
user's cache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from dev.jars import cache, only_one
from dev.servers.server import ServerError

VERSION = "v1.36.3"

_MODULE = "k8s.io/kubernetes"
# Kubernetes' other modules have the same minor version, but a different major version.
_PARTS = VERSION.replace("v1.", "v0.", 1)
_MAIN = Path(__file__).with_name("main.go")
_VERSION_OF = "k8s.io/component-base/version"

BUILD_COMMAND = ".venv/bin/python -m dev.kubernetes --build"
MISSING = f"the API server was not built. It needs Go, Debian's apt-get, and up to an hour: {BUILD_COMMAND}"


class KubernetesError(ServerError):
    """Raised if the programs do not exist or the cluster is not running."""


def kubernetes() -> Path:
    """Return the path to the program that is both the API server and the controller manager."""
    return cache() / f"kubernetes-{VERSION}"


def etcd() -> Path | None:
    """Return the path to etcd: on the PATH, or downloaded."""
    found = shutil.which("etcd")
    if found:
        return Path(found)
    return _fetched_etcd() if _fetched_etcd().is_file() else None


def are_there() -> bool:
    """Return whether a cluster can be started."""
    return kubernetes().is_file() and etcd() is not None


def build() -> None:
    """Build and download missing programs.

    Raises:
        KubernetesError: Go is missing or cannot fetch the modules, or etcd is not available.
    """
    with only_one(kubernetes()):
        if etcd() is None:
            _fetch_etcd()
        if not kubernetes().is_file():
            _build_kubernetes()


def _fetched_etcd() -> Path:
    return cache() / "etcd-debian"


def _fetch_etcd() -> None:
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg")
    if apt is None or dpkg is None:
        raise KubernetesError("etcd was not found, and apt-get is missing to download it. Put etcd on the PATH")
    with tempfile.TemporaryDirectory(dir=cache(), prefix="etcd.new-") as folder:
        _run([apt, "-qq", "download", "etcd-server"], Path(folder))
        for package in Path(folder).glob("etcd-server_*.deb"):
            _run([dpkg, "-x", str(package), folder], Path(folder))
        Path(folder, "usr", "bin", "etcd").rename(_fetched_etcd())


def _build_kubernetes() -> None:
    go = shutil.which("go")
    if go is None:
        raise KubernetesError("Kubernetes needs Go 1.26 or newer, and `go` was not found")
    with tempfile.TemporaryDirectory(dir=cache(), prefix="kubernetes.new-") as folder:
        told = json.loads(_run([go, "mod", "download", "-json", f"{_MODULE}@{VERSION}"], Path(folder)))
        Path(folder, "go.mod").write_text(_go_mod(Path(told["GoMod"]).read_text(encoding="utf-8")), encoding="utf-8")
        shutil.copy(_MAIN, folder)
        minor = VERSION.split(".")[1]
        said = {"gitVersion": VERSION, "gitMajor": "1", "gitMinor": minor}
        linked = " ".join(["-s -w", *(f"-X {_VERSION_OF}.{name}={value}" for name, value in said.items())])
        _run([go, "build", "-trimpath", "-mod=mod", "-ldflags", linked, "-o", "kubernetes", "."], Path(folder))
        Path(folder, "kubernetes").rename(kubernetes())


def _go_mod(upstream: str) -> str:
    """Return Kubernetes' requirements, with the published modules in place of folders in its repository."""
    text = re.sub(r"(?m)^module .*$", "module kubernetes.invalid/cluster", upstream)
    text = re.sub(r"(?m)(k8s\.io/[a-z-]+) => \./staging/\S+", rf"\1 => \1 {_PARTS}", text)
    text = re.sub(r"(?m)(k8s\.io/[a-z-]+) v0\.0\.0(\s|$)", rf"\1 {_PARTS}\2", text)
    return text.replace("require (", f"require (\n\t{_MODULE} {VERSION}", 1)


def _run(command: list[str], folder: Path) -> str:
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KubernetesError(f"{' '.join(command[:3])} failed: {'; '.join(done.stderr.strip().splitlines()[-5:])}")
    return done.stdout
