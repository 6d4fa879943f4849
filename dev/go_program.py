"""Programs that tests need and that are built here, once, from the Go module proxy into the user's cache.

Go holds every module against its checksum database.
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
    """The program is not there, and was not to be had."""


class GoProgram(NamedTuple):
    """A program by its package.

    Args:
        what: what it is to the tests, for messages.
        name: of the file that Go makes.
        package: the path of its command.
        version: of the module.
        build_command: how a contributor has it built.
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
        """Return the program.

        Raises:
            GoProgramError: nobody has built it.
        """
        if not self.place.is_file():
            raise GoProgramError(f"{self.what} was not built; it needs Go, and minutes: {self.build_command}")
        return self.place

    def build(self) -> Path:
        """Return the program, built if it is not there yet.

        Raises:
            GoProgramError: there is no Go, or it does not get the modules.
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
