"""The command line. Each command has its own file, which contains only wiring and exit codes.

Exit codes: 0 success, 1 failure while working, 2 invalid usage or configuration.
"""

from __future__ import annotations

import sys

import click

from cdc_core.command_line import LazyGroup
from translator._native import way
from translator.commands.remarks import say
from translator.errors import CdcError, ConfigError

_COMMANDS = {
    "audit": "Account for every raw record by reading the topics themselves.",
    "capture": "Write records of a topic to standard output as a record file, with row data unless they are masked.",
    "check": "Check a configuration file: settings, dialects, codecs, their options, and declared tables.",
    "desk": "Serve the playground: paste a message to see its dialect, its events and the decisions behind them.",
    "diff": "Pair the events of two topics by id and report the fields that differ.",
    "dlq": "List, show, replay and discard dead letters.",
    "explain": "Explain how one raw record is read: its form, its events, and the decisions behind them.",
    "init": "Look at topics, recognize their dialects, and propose a configuration with the evidence for it.",
    "learn": "Read the metadata messages of all raw topics into the metadata topic, from the beginning to now.",
    "project": "Write the contents of the canonical topic to a new projection.",
    "retranslate": "Translate a range of a raw topic again, into a topic of its own.",
    "run": "Translate raw topics into the canonical topic until stopped.",
    "schema": "Show and set table schemas: those of events, and learned metadata.",
    "send": "Send the message in a file to a raw topic, and show what the running service makes of it.",
    "status": "Show positions, lag, dead letters, held tables and the newest schemas.",
    "translate": "Translate files of messages: events to standard output, the rest to standard error.",
}


@click.group(
    cls=LazyGroup,
    commands=_COMMANDS,
    package=__name__,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(
    package_name="cdc-translator", prog_name="translator", message=f"%(prog)s, version %(version)s, {way()}"
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
