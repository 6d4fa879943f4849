"""The command line: one file per command; wiring and exit codes only.

Exit codes: 0 fine, 1 failed while working, 2 bad usage or configuration.
"""

from __future__ import annotations

import sys

import click

from cdc_core.command_line import CommandGroup
from spark_sink.commands.ask import adopt, discard, maintain, park, rebuild, register, resume, sweep
from spark_sink.commands.check import check
from spark_sink.commands.health import health
from spark_sink.commands.look import batches, cut, quarantine, status, view
from spark_sink.commands.run import run
from spark_sink.errors import ConfigError, FatalError


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cdc-translator", prog_name="spark-sink")
def cli() -> None:
    """The canonical topic into lakehouse tables."""


for command in (
    run,
    check,
    health,
    status,
    batches,
    cut,
    view,
    quarantine,
    resume,
    discard,
    park,
    rebuild,
    adopt,
    sweep,
    maintain,
    register,
):
    cli.add_command(command)


def main() -> None:
    """The console command `spark-sink`."""
    try:
        cli()
    except ConfigError as error:
        click.echo(f"spark-sink: {error}", err=True)
        sys.exit(2)
    except FatalError as error:
        click.echo(f"spark-sink: {error}", err=True)
        sys.exit(1)
