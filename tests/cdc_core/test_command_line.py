"""Both command lines show the summaries of the commands, and `--help` imports no command."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

import spark_sink.commands
import translator.commands

PROGRAMS = {"translator": translator.commands.cli, "spark_sink": spark_sink.commands.cli}


@pytest.mark.parametrize("program", PROGRAMS)
def test_summaries_are_those_of_the_commands(program: str) -> None:
    """The table behind `--help` repeats the first sentence of each command."""
    group = PROGRAMS[program]
    context = click.Context(group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    own = {name: command.get_short_help_str(1000) for name, command in commands.items() if command is not None}
    assert own == sys.modules[f"{program}.commands"].__dict__["_COMMANDS"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_imports_no_command(program: str) -> None:
    """`--help` needs neither the command modules nor the packages they import."""
    script = (
        f"import sys; from {program}.commands import cli; cli(['--help'], standalone_mode=False); print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = {*ran.stdout.split()}
    assert "run" in ran.stdout
    assert {f"{program}.commands.run", "pydantic", "sqlglot", "faust", "pyspark", "pyarrow"} & imported == set()


@pytest.mark.parametrize("arguments", [["run"], ["status"]])
def test_the_sink_without_its_packages(arguments: list[str]) -> None:
    """The error states the missing package and how to install it. `--help` works without it."""
    script = """
import sys
for name in ("pyspark", "deltalake", "pyiceberg", "pyarrow", "pandas"):
    sys.modules[name] = None
from spark_sink.commands import main
main()
"""
    command = [sys.executable, "-c", script]
    ran = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)
    assert ran.stderr.startswith("spark-sink: the Python package py")
    assert "is not installed; install the sink with its dependencies: pip install 'cdc-translator[sink]'" in ran.stderr
    assert subprocess.run([*command, "--help"], capture_output=True, check=False).returncode == 0
