"""Parse the compose file with the library that `docker compose` itself uses. No container engine is needed.

`python -m dev.release.compose --build` builds the validator once, from the Go module proxy into the user's cache. This
takes seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dev.go_program import GoProgram, GoProgramError

FILE = Path(__file__).parents[2] / "compose" / "compose.yaml"

VALIDATOR = GoProgram(
    "the validator of compose files",
    "cmd",
    "github.com/compose-spec/compose-go/v2/cmd",
    "v2.16.2",
    ".venv/bin/python -m dev.release.compose --build",
)


class ComposeError(Exception):
    """Raised if the file is invalid. The message comes from the library."""


def load(file: Path = FILE) -> dict[str, Any]:
    """Return the project that a file describes. All paths are absolute.

    Raises:
        ComposeError: the file is not a valid compose file.
    """
    command = [str(VALIDATOR.built()), "-format", "json", str(file)]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ComposeError(done.stderr.strip())
    project: dict[str, Any] = json.loads(done.stdout)
    return project


def main(arguments: Sequence[str]) -> int:
    if list(arguments) != ["--build"]:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(VALIDATOR.build())
    except GoProgramError as error:
        print(f"compose: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
