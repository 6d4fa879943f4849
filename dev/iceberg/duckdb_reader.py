"""DuckDB with its extension for Iceberg, in an environment of its own: PyPI has the extension for an older release than
that of the tests.

`python -m dev.iceberg.duckdb_reader --build` installs it where it is missing. Exit code 1: it is not to be had.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dev.environments import NotInstalledError, environment

VERSION = "1.5.5"

# The program loads each of them.
EXTENSIONS = ("httpfs", "avro", "iceberg")

PROGRAM = Path(__file__).with_name("duckdb_rows.py")

SECONDS = 120.0  # 2 s on a quiet machine


class DuckDbError(Exception):
    """DuckDB did not answer a query."""


def python() -> Path:
    """The Python with DuckDB, installed at the first call.

    Raises:
        NotInstalledError: it is not to be had.
    """
    packages = ("duckdb", "duckdb-extensions", *(f"duckdb-extension-{name}" for name in EXTENSIONS))
    return environment("duckdb", [f"{package}=={VERSION}" for package in packages])


def answer(url: str, token: str, query: str) -> list[list[Any]]:
    """Return the rows of a query, to which the tables of a REST catalog are `lake.NAMESPACE.TABLE`.

    Raises:
        DuckDbError: there are none.
        NotInstalledError: DuckDB is not to be had.
    """
    asked = json.dumps({"endpoint": url, "token": token, "extensions": EXTENSIONS, "query": query})
    # It puts extensions into the home of whoever runs it.
    with tempfile.TemporaryDirectory() as home:
        ran = subprocess.run(
            [python(), PROGRAM],
            input=asked,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            env={**os.environ, "HOME": home},
        )
    if ran.returncode:
        raise DuckDbError(f"DuckDB ended with exit code {ran.returncode}: {ran.stderr[-2000:]}")
    found: list[list[Any]] = json.loads(ran.stdout)
    return found


def main(arguments: Sequence[str]) -> int:
    if list(arguments) != ["--build"]:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        python()
    except NotInstalledError as error:
        print(f"duckdb: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
