"""Rehearse the signatures of a release. Sign its files, charts and images with a throwaway key, and verify them.

Charts and images go to a registry that only this process serves, so nothing is published. Keyless signatures and the
public log of signatures need the internet, and are not rehearsed.

`python -m dev.release.signing --build` builds cosign and the registry once, from the Go module proxy.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dev.go_program import GoProgram, GoProgramError
from dev.release.charts import HELM
from dev.release.images import push
from dev.servers.broker import LOOPBACK, hold_port
from dev.servers.server import Server, ServerError

_BUILD = ".venv/bin/python -m dev.release.signing --build"
COSIGN = GoProgram("cosign", "cosign", "github.com/sigstore/cosign/v3/cmd/cosign", "v3.1.3", _BUILD)
CRANE = GoProgram("crane", "crane", "github.com/google/go-containerregistry/cmd/crane", "v0.22.1", _BUILD)

START_SECONDS = 60.0

# Neither the log of signatures nor a signing service is used.
_SIGN = ("--yes", "--tlog-upload=false", "--use-signing-config=false")
_VERIFY = ("--insecure-ignore-tlog",)
_HTTP = ("--allow-http-registry",)


class SigningError(ServerError):
    """Raised if a program fails, or a signature is not what it should be. The message has the program's output."""


class ImageRegistry(Server):
    """A registry for charts and images that is empty at each start."""

    name: ClassVar[str] = "image_registry"
    error = SigningError

    def __init__(self, port: int | None = None, directory: Path | None = None) -> None:
        super().__init__(port, directory)
        self._held: socket.socket | None = None

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.settled_port()}"

    def start(self) -> None:
        self._refuse_if_running("stop()")
        program = CRANE.built()
        if self.port is None:
            self._held = hold_port()
            self.port = self._held.getsockname()[1]
        blobs = self.directory / "blobs"
        blobs.mkdir(exist_ok=True)
        self._launch([str(program), "registry", "serve", "--address", self.address, "--disk", str(blobs)])
        try:
            self._wait_until(self._answers, "the registry", START_SECONDS)
        except BaseException:
            self.stop()
            raise

    def close(self) -> None:
        super().close()
        if self._held is not None:
            self._held.close()

    def digest(self, reference: str) -> str:
        """Return the reference to the same content by digest."""
        name, _, _ = reference.rpartition(":")
        return f"{name}@{_run(CRANE, 'digest', '--insecure', reference).strip()}"

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/v2/", timeout=START_SECONDS):
                return True
        except urllib.error.URLError:
            return False


class Signer:
    """A key pair in a folder, and what it signs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._private, self.public = folder / "release.key", folder / "release.pub"
        _run(COSIGN, "generate-key-pair", f"--output-key-prefix={folder / 'release'}")

    def sign_file(self, file: Path) -> None:
        """Sign a file, and verify that the signature is valid for this content only."""
        bundle = self._folder / f"{file.name}.sigstore.json"
        _run(COSIGN, "sign-blob", *_SIGN, "--key", self._private, "--bundle", bundle, file)
        verify = ("verify-blob", *_VERIFY, "--key", self.public, "--bundle", bundle)
        _run(COSIGN, *verify, file)
        changed = self._folder / "changed"
        shutil.copyfile(file, changed)
        with changed.open("ab") as more:
            more.write(b"\0")
        _must_fail(f"a changed copy of {file.name}", *verify, changed)

    def sign_reference(self, reference: str, bill: Path | None = None) -> None:
        """Sign a chart or an image by digest, with its bill of materials, if it has one. Verify the signature in the
        registry and in an OCI layout. Such a layout is how images cross an air gap.
        """
        key = ("--key", self._private)
        _run(COSIGN, "sign", *_SIGN, *_HTTP, *key, reference)
        _run(COSIGN, "verify", *_VERIFY, *_HTTP, "--key", self.public, reference)
        if bill is not None:
            kind = ("--type", "cyclonedx")
            _run(COSIGN, "attest", *_SIGN, *_HTTP, *key, *kind, "--predicate", bill, reference)
            _run(COSIGN, "verify-attestation", *_VERIFY, *_HTTP, *kind, "--key", self.public, reference)
        layout = self._folder / "layout"
        shutil.rmtree(layout, ignore_errors=True)
        _run(COSIGN, "save", *_HTTP, "--dir", layout, reference)
        _run(COSIGN, "verify", *_VERIFY, "--key", self.public, "--local-image", layout)


def push_chart(registry: ImageRegistry, archive: Path) -> str:
    """Push a packaged chart, and return its reference by digest."""
    charts = f"{registry.address}/charts"
    _run(HELM, "push", archive, f"oci://{charts}", "--plain-http")
    name, _, version = archive.name.removesuffix(".tgz").rpartition("-")
    return registry.digest(f"{charts}/{name}:{version}")


def rehearse(folder: Path, files: Iterable[Path], charts: Sequence[Path], images: Mapping[str, Path]) -> None:
    """Sign and verify files, and charts and images in a registry.

    Args:
        folder: an empty folder for keys and signatures.
        images: the bill of materials of each built image, by target.

    Raises:
        GoProgramError: cosign, crane or Helm was not built.
        ImageError: an image was not built.
        SigningError: a program failed, or the verification accepted another key or other content.
    """
    signer, stranger = Signer(folder), folder / "stranger"
    stranger.mkdir()
    other = Signer(stranger)
    for file in (*files, *charts):
        signer.sign_file(file)
    with ImageRegistry(directory=folder / "registry") as registry:
        for chart in charts:
            reference = push_chart(registry, chart)
            signer.sign_reference(reference)
            _must_fail(f"{chart.name} with another key", "verify", *_VERIFY, *_HTTP, "--key", other.public, reference)
        for target, bill in images.items():
            name = f"{registry.address}/cdc-{target}:rehearsal"
            push(target, name)
            signer.sign_reference(registry.digest(name), bill)


def _must_fail(what: str, *arguments: str | Path) -> None:
    try:
        _run(COSIGN, *arguments)
    except SigningError:
        return
    raise SigningError(f"cosign accepted {what}")


def _run(program: GoProgram, *arguments: str | Path) -> str:
    # The key has no password. Without the variable, cosign would ask for one.
    environment = {**os.environ, "COSIGN_PASSWORD": ""}
    command = [program.built(), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SigningError(f"{program.what} {arguments[0]} failed: {done.stderr.strip()[-1000:]}")
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    if [*arguments] != ["--build"]:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for program in (COSIGN, CRANE):
            print(program.build())
    except GoProgramError as error:
        print(f"signing: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
