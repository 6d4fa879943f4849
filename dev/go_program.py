"""Build programs for tests. This happens once on a machine, from the Go module proxy into the user's cache.

Go verifies every module against its checksum database.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from dev.jars import cache, only_one


class GoProgramError(Exception):
    """Raised if the program does not exist and cannot be built."""


class GoProgram(NamedTuple):
    """A program from a Go package.

    Args:
        what: a description of what tests use the program for, for messages.
        name: the name of the file that Go creates.
        package: the path of the program's command in the module.
        version: module version.
        build_command: the command with which contributors build the program.
    """

    what: str
    name: str
    package: str
    version: str
    build_command: str

    @property
    def place(self) -> Path:
        return cache() / f"{self.name}-{self.version}"

    def built(self) -> Path:
        """Return the path to the program.

        Raises:
            GoProgramError: the program was not built.
        """
        if not self.place.is_file():
            raise GoProgramError(f"{self.what} was not built. It needs Go and a few minutes: {self.build_command}")
        return self.place

    def build(self) -> Path:
        """Build the program if necessary, and return its path.

        Raises:
            GoProgramError: Go is missing or cannot fetch the modules.
        """
        program = self.place
        with only_one(program):
            if not program.is_file():
                self._install(program)
        return program

    def _install(self, program: Path) -> None:
        go = shutil.which("go")
        if go is None:
            raise GoProgramError(f"{self.what} needs Go 1.26 or newer, and `go` was not found")
        module = f"{self.package}@{self.version}"
        with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
            environment = os.environ | {"GOBIN": scratch, "CGO_ENABLED": "0"}
            command = [go, "install", "-trimpath", "-ldflags=-s", module]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = done.stderr.strip().splitlines()[-5:]
                raise GoProgramError(f"go install {module} failed: {'; '.join(said)}")
            Path(scratch, self.name).rename(program)
