"""Run DuckDB with its Iceberg and Delta extensions in a separate environment. The extensions on PyPI require an older
DuckDB release than the tests do.

`python -m dev.iceberg.duckdb_reader --build` installs DuckDB if it is missing. The exit code is 1 if DuckDB is not
available.
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

# The program loads each of these extensions.
EXTENSIONS = ("httpfs", "avro", "iceberg", "delta")

PROGRAM = Path(__file__).with_name("duckdb_rows.py")

SECONDS = 120.0  # 2 s on a quiet machine


class DuckDbError(Exception):
    """Raised if DuckDB did not respond to a query."""


def python() -> Path:
    """Return the Python that has DuckDB. The first call installs DuckDB.

    Raises:
        NotInstalledError: DuckDB is not available.
    """
    packages = ("duckdb", "duckdb-extensions", *(f"duckdb-extension-{name}" for name in EXTENSIONS))
    return environment("duckdb", [f"{package}=={VERSION}" for package in packages])


def answer(url: str | None, token: str, query: str) -> list[list[Any]]:
    """Return a query's rows. In the query, tables in a REST catalog are `lake.NAMESPACE.TABLE`.

    Args:
        url: the catalog's address, or None if the query reads tables in folders.

    Raises:
        DuckDbError: the query failed.
        NotInstalledError: DuckDB is not available.
    """
    asked = json.dumps({"endpoint": url, "token": token, "extensions": EXTENSIONS, "query": query})
    # DuckDB installs extensions into the user's home directory.
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
        raise DuckDbError(f"DuckDB exited with code {ran.returncode}: {ran.stderr[-2000:]}")
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
