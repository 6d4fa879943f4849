"""The command line. Each command has its own file, which contains only wiring and exit codes.

Exit codes: 0 for success, 1 for a failure during the work, 2 for invalid usage or configuration.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

from cdc_core.command_line import LazyGroup
from translator._native import way
from translator.commands.output import say
from translator.errors import CdcError, ConfigError

_COMMANDS = {
    "audit": "Report what happened to every raw record, based on the contents of topics rather than counters.",
    "capture": "Write records of a topic to standard output as a record file.",
    "check": "Check a configuration file: settings, dialects, codecs, their options, and declared tables.",
    "contract": "Write a data contract for each table, and check a schema or a DDL statement against contracts.",
    "desk": (
        "Serve the playground: paste a message to see which product wrote it, how it is interpreted, and its events."
    ),
    "dialect": "Create a dialect plug-in, and test whether a plug-in satisfies the dialect contract.",
    "diff": "Match the events of two topics by id, and report the fields that differ.",
    "dlq": "List, show, replay and discard dead letters, which are messages that could not be translated.",
    "explain": "Explain how one raw record is interpreted: its format, its events, and the decisions behind them.",
    "init": "Inspect topics, recognize which product wrote their messages, and propose a configuration.",
    "learn": "Copy the metadata messages of all raw topics, from the beginning until now, to the metadata topic.",
    "project": "Copy the events in the canonical topic to a projection that the service does not write yet.",
    "retranslate": "Translate a range of a raw topic just as the service would, and write the events to a separate "
    "topic.",
    "run": "Translate raw topics into the canonical topic until stopped.",
    "schema": "List and show table schemas and learned metadata.",
    "send": "Write a message from a file to a raw topic and show how the running service translates it.",
    "status": "Show positions, lag, stopped partitions, dead letters, held tables and the newest schemas.",
    "translate": "Translate files of messages.",
    "upgrade-check": "Translate the newest raw records with this release, and compare the results with those of the "
    "running release.",
}


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from translator.installed_plugins import find  # not needed by any other command's start

    click.echo(f"translator, version {version('cdc-translator')}, {way()}")
    try:
        for plugin in find():
            click.echo(f"dialect {plugin}")
    except ConfigError as error:
        click.echo(str(error))
    context.exit()


@click.group(
    cls=LazyGroup,
    commands=_COMMANDS,
    package=__name__,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and the installed dialect plug-ins, then exit.",
)
def cli() -> None:
    """Translate Qlik, DTS Avro, SharePlex and Canal messages into one canonical change envelope."""


def main() -> None:
    """Run the console command `translator`."""
    try:
        cli()
    except ConfigError as error:
        say(str(error))
        sys.exit(2)
    except CdcError as error:
        say(str(error))
        sys.exit(1)
