"""`translator dialect`: create a dialect plug-in, and test one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cdc_core.command_line import CommandGroup
from translator.commands.output import say


@click.group(cls=CommandGroup)
def dialect() -> None:
    """Create a dialect plug-in, and test whether a plug-in satisfies the dialect contract."""


@dialect.command()
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="Folder in which to create the plug-in's folder. The folder is created if it does not exist.",
)
@click.argument("name")
def new(into: Path, name: str) -> None:
    """Create a working plug-in as a starting point for your own.

    NAME is the value of `dialect` in the configuration. It begins with a lower-case letter, followed by up to 39
    lower-case letters, digits and underscores. It cannot end with an underscore. The folder is named cdc-dialect-NAME.
    It contains a dialect with options, a recognizer and masked copies. It also has golden cases, tests and a page.
    """
    from translator.conformance.new_package import create

    folder = create(name, into)
    click.echo(f"created {folder}; test it with `translator dialect test {folder}`")


@dialect.command()
@click.option(
    "--write",
    is_flag=True,
    help=(
        "First, write results for the cases that have no `expected` yet. Check these results: they show what the "
        "plug-in does, which is not necessarily correct."
    ),
)
@click.argument("package", type=click.Path(path_type=Path))
def test(write: bool, package: Path) -> None:
    """Test a plug-in and print its scorecard.

    PACKAGE is the folder with the plug-in's pyproject.toml and its golden cases (`cases/*.json`). The plug-in does not
    have to be installed. The scorecard has one line per property. The result is passed, failed (with the first example
    and some advice), or not applicable (with the reason). The exit code is 1 if any property fails.
    docs/dialects/your-own.md describes the properties.
    """
    from translator.conformance.battery import scores_of, write_results

    if write:
        for name in write_results(package):
            say(f"wrote the results of case {name}: check them")
    name, scores = scores_of(package)
    click.echo(name)
    passed = True
    for score in scores:
        click.echo(str(score))
        passed = passed and score.result != "failed"
    if not passed:
        sys.exit(1)
