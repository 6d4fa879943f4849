"""Run an S3 object store for tests (versitygw), backed by a folder on this machine.

`python -m dev.servers.object_store --build` builds the store once, from the Go module proxy into the user's cache. This
takes about ninety seconds of CPU time. Go verifies every module against its checksum database.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dev.go_program import GoProgram, GoProgramError
from dev.servers.broker import LOOPBACK, hold_port
from dev.servers.server import Server, ServerError, run_until_interrupted

PROGRAM = GoProgram(
    "the object store of the tests",
    "versitygw",
    "github.com/versity/versitygw/cmd/versitygw",
    "v1.8.0",
    ".venv/bin/python -m dev.servers.object_store --build",
)

# If this variable is `none`, the store could not be built on this machine, and the tests that need it are skipped.
VARIABLE = "CDC_OBJECT_STORE"

BUCKET = "lake"
ACCESS_KEY, SECRET_KEY = "cdc-access-key", "cdc-secret-key-of-the-tests"

START_SECONDS = 120.0

_HEALTH = "/health"


class ObjectStoreError(ServerError):
    """Raised if the object store was not built or is not running."""


class ObjectStore(Server):
    """A store with one empty bucket. It keeps its port and its content across restarts."""

    name: ClassVar[str] = "object_store"
    error = ObjectStoreError

    def __init__(self, port: int | None = None, directory: Path | None = None) -> None:
        super().__init__(port, directory)
        self._held: socket.socket | None = None

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.settled_port()}"

    @property
    def credentials(self) -> Mapping[str, str]:
        """Return the access keys as environment variables."""
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}

    def start(self) -> None:
        self._refuse_if_running("stop()")
        try:
            program = PROGRAM.built()
        except GoProgramError as error:
            raise ObjectStoreError(str(error)) from None
        if self.port is None:
            self._held = hold_port()
            self.port = self._held.getsockname()[1]
        objects = self.directory / "objects"
        (objects / BUCKET).mkdir(parents=True, exist_ok=True)
        keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        options = ("--port", f"{LOOPBACK}:{self.port}", "--health", _HEALTH, "--quiet", "--keep-alive")
        # Object attributes are stored in a separate folder, because not every file system has extended attributes.
        sidecar = self.directory / "attributes"
        sidecar.mkdir(exist_ok=True)
        command = [str(program), *options, "posix", "--sidecar", str(sidecar), str(objects)]
        self._launch(command, os.environ | keys)
        try:
            self._wait_until(self._answers, "the object store", START_SECONDS)
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """Kill the store immediately."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        super().close()
        if self._held is not None:
            self._held.close()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}{_HEALTH}", timeout=START_SECONDS):
                return True
        except urllib.error.URLError:
            return False


def main(arguments: Sequence[str]) -> int:
    if "--build" not in arguments:
        return run_until_interrupted(ObjectStore, "store with S3", lambda store: f"{store.endpoint} {BUCKET}")
    try:
        print(PROGRAM.build())
    except GoProgramError as error:
        print(f"object store: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
