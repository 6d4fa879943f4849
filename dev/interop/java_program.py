"""Run the Java readers. They are single-file programs that run from source and need a JDK."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from dev.interop.jars import JARS
from dev.interop.results import SECONDS, Found, ReaderError, Rows
from dev.interop.tables import SourceTable
from dev.java import find_java

_HERE = Path(__file__).parent


def run_program(
    configurations: Sequence[str],
    program: str,
    tables: Sequence[SourceTable],
    lines: Iterable[str],
    options: Sequence[str] = (),
    arguments: Sequence[str] = (),
) -> Found:
    """Run a program and return its output.

    Args:
        configurations: the configurations in jars.xml that have the jars for the program.
        lines: the program's standard input.
        options: JVM options.

    Raises:
        ReaderError: it exited with an error.
    """
    class_path = ":".join(f"{JARS.folder() / configuration}/*" for configuration in configurations)
    command = [str(find_java().executable), *options, "-Xmx1g", "-cp", class_path]
    ran = subprocess.run(
        [*command, str(_HERE / f"{program}.java"), *arguments],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
    )
    if ran.returncode:
        raise ReaderError(f"{program} exited with code {ran.returncode}: {ran.stderr[-3000:]}")
    columns = {table.levels: [column.name for column in table.shape.columns] for table in tables}
    found: dict[str, Rows] = {levels: [] for levels in columns}
    for line in ran.stdout.splitlines():
        kind, _, rest = line.partition("\t")
        if kind == "row":
            levels, *cells = rest.split("\t")
            found[levels].append(dict(zip(columns[levels], map(_cell, cells), strict=True)))
    return found


def encoded(part: bytes | None) -> str:
    """Return a part of a record in the format that the programs read."""
    return "-" if part is None else base64.b64encode(part).decode()


def _cell(text: str) -> str | None:
    return None if text == "-" else base64.b64decode(text).decode()
