"""The command line as a whole: its commands, and what starting one imports."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.translator.commands import _program
from translator import commands
from translator.commands import cli

CONTEXT = click.Context(cli)


@pytest.mark.parametrize("name", cli.list_commands(CONTEXT))
def test_each_is_in_the_module_of_its_name(name: str) -> None:
    """A command is in the module of its name and calls itself by that name."""
    command = cli.get_command(CONTEXT, name)
    assert command is not None
    assert name == command.name


def test_none_is_forgotten() -> None:
    """Every module with a command of its name is on the command line."""
    modules = {path.stem: path.read_text(encoding="utf-8") for path in Path(commands.__path__[0]).glob("*.py")}
    assert [*cli.list_commands(CONTEXT)] == sorted(
        name.replace("_", "-") for name, text in modules.items() if f"def {name}(" in text
    )


def test_an_unknown_one() -> None:
    """An unknown command is rejected with exit code 2."""
    ran = _program.run("translat")
    assert (2, True) == (ran.returncode, "No such command 'translat'. Did you mean translate?" in ran.stderr)
    assert "Did you mean" not in _program.run("quux").stderr


def test_an_unknown_subcommand() -> None:
    ran = _program.run("dlq", "replya")
    assert (2, True) == (ran.returncode, "Did you mean replay?" in ran.stderr)


@pytest.mark.parametrize(("arguments", "seconds"), [([], None), (["--watch"], 2.0), (["--watch", "5"], 5.0)])
def test_watching_needs_no_number(arguments: list[str], seconds: float | None) -> None:
    command = cli.get_command(CONTEXT, "status")
    assert command is not None
    assert seconds == command.make_context("status", arguments).params["watch"]


@pytest.mark.parametrize(
    ("start", "spared"),
    [
        (
            "from translator.commands import cli; cli.get_command(None, 'run')",
            {"rich", "translator.dialects", "confluent_kafka"},
        ),
        ("import translator.service.app", {"confluent_kafka.schema_registry", "translator.conformance"}),
        (
            "from translator.commands import cli; cli(['--version'], standalone_mode=False)",
            {"translator.dialects", "rich"},
        ),
    ],
    ids=["a command", "the service", "the version"],
)
def test_what_is_not_imported(start: str, spared: set[str]) -> None:
    """Imports delay the start of a program, so it does not import other commands or a registry client."""
    script = f"import sys; {start}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert set() == spared & {*ran.stdout.split()}
