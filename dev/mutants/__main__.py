"""`make mutants`: change one expression at a time in a copy of the checkout, and run the tests of its room.

It prints a table by room and the mutants that no test caught. It only reports and does not fail a build, because some
mutants change nothing that a test could observe.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import click

from dev.mutants.mutations import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
_UNIT = ("-m", "not integration and not faults", "--hypothesis-profile=ci")
_SECONDS = 900.0
"""Number of seconds after which a mutant counts as caught, because it hangs."""


_SHOWN = 4_000
"""Number of characters of output to show if the tests fail without a mutant."""


class TestedRoom(NamedTuple):
    """Source folders, and the folders and files with the tests that cover them.

    Args:
        without: the endings of files in the source folders that the tests do not cover.
    """

    sources: Sequence[str]
    tests: Sequence[str]
    without: tuple[str, ...] = ()


_DIALECT_TESTS = ("tests/translator/dialects", "tests/translator/native")

ROOMS: Mapping[str, TestedRoom] = {
    "envelope": TestedRoom(["cdc_core"], ["tests/cdc_core"]),
    "values": TestedRoom(["translator/values"], ["tests/translator/values", "tests/translator/native"]),
    **{
        name: TestedRoom([f"translator/dialects/{name}"], _DIALECT_TESTS)
        for name in ("canal", "dts_avro", "qlik", "shareplex")
    },
    # What `translator upgrade-check` would notice, because the test uses the same comparison.
    "upgrade_check": TestedRoom(
        ["translator/dialects"],
        ["tests/compat/test_translations.py"],
        ("recognise.py", "masked_copy.py", "_masked_json.py", "_masked_statement.py", "_masked_values.py"),
    ),
    "codecs": TestedRoom(["translator/codecs"], ["tests/translator/codecs", "tests/translator/dialects"]),
    "translation": TestedRoom(
        ["translator/translation", "translator/resolution", "translator/state"],
        [
            "tests/translator/translation",
            "tests/translator/state",
            "tests/translator/service",
            "tests/translator/native",
        ],
    ),
    "rust": TestedRoom(["translator/_native/src"], ["tests/translator/native"]),
    "model": TestedRoom(
        ["spark_sink/model", "spark_sink/events"],
        ["tests/spark_sink/model", "tests/spark_sink/events", "tests/spark_sink/apply"],
    ),
    "apply": TestedRoom(["spark_sink/apply"], ["tests/spark_sink/apply"]),
    "schema": TestedRoom(["spark_sink/schema"], ["tests/spark_sink/schema", "tests/spark_sink/apply"]),
    "delta": TestedRoom(
        ["spark_sink/tables/delta"],
        ["tests/spark_sink/tables", "tests/spark_sink/control_tables", "tests/spark_sink/apply"],
    ),
    "iceberg": TestedRoom(
        ["spark_sink/tables/iceberg"],
        ["tests/spark_sink/tables", "tests/spark_sink/apply/test_model_delta.py"],
    ),
}


@click.command()
@click.option("--seed", default=1, show_default=True, help="Seed for the sample.")
@click.option("--count", default=20, show_default=True, help="Number of mutants in each room.")
@click.option("--room", "rooms", multiple=True, type=click.Choice([*ROOMS]), help="Room to sample. Default: all.")
def main(seed: int, count: int, rooms: Sequence[str]) -> None:
    """Sample mutants, and report which ones the tests catch."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, copy], check=True)  # noqa: S607  the developer's git
        for extension in (ROOT / "translator" / "_native").glob("*.so"):
            shutil.copy(extension, copy / "translator" / "_native")
        click.echo("| room | mutants | caught | share |\n|---|---|---|---|")
        survivors: list[Mutant] = []
        for name in rooms or ROOMS:
            room = ROOMS[name]
            if failure := _failure(copy, room):
                sys.exit(f"the tests of {name} fail without a mutant:\n{failure}")
            sample = _sample(copy, room, Random(seed), count)
            left = [mutant for mutant in sample if not _catches(copy, room, mutant)]
            survivors += left
            caught = len(sample) - len(left)
            click.echo(f"| {name} | {len(sample)} | {caught} | {caught / max(len(sample), 1):.0%} |")
    for mutant in survivors:
        click.echo(f"- {mutant}")


def _sample(copy: Path, room: TestedRoom, chance: Random, count: int) -> list[Mutant]:
    folders = [copy / source for source in room.sources]
    files = sorted(file for folder in folders for end in ("py", "rs") for file in folder.rglob(f"*.{end}"))
    found = [
        mutant
        for file in files
        if not file.name.endswith(room.without)
        for mutant in mutants_of(str(file.relative_to(copy)), file.read_bytes())
    ]
    return chance.sample(found, min(count, len(found)))


def _catches(copy: Path, room: TestedRoom, mutant: Mutant) -> bool:
    """Return whether a test fails with a mutant. A mutant that does not compile, or that hangs, counts as caught."""
    file = copy / mutant.file
    before = file.read_bytes()
    file.write_bytes(mutant.apply(before))
    try:
        return not _builds(copy, mutant) or _failure(copy, room) is not None
    finally:
        file.write_bytes(before)
        if mutant.file.endswith(".rs"):
            _builds(copy, mutant)


def _builds(copy: Path, mutant: Mutant) -> bool:
    if not mutant.file.endswith(".rs"):
        return True
    return _run(copy, "-m", "dev.native", "--must") is None


def _failure(copy: Path, room: TestedRoom) -> str | None:
    """Return the end of the output from a room's tests if any of them fails."""
    return _run(copy, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *_UNIT, *room.tests)


def _run(copy: Path, *arguments: str) -> str | None:
    """Run Python in the copy, so that it imports the copy's packages and not the installed ones. If it fails, return
    the last output.
    """
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {_SECONDS:.0f} s"
    return None if done.returncode == 0 else done.stdout[-_SHOWN:]


if __name__ == "__main__":
    main()
