"""The command line: one file per command; wiring and exit codes only.

Exit codes: 0 fine, 1 failed while working, 2 bad usage or configuration.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from cdc_core.command_line import CommandGroup
from translator._native import way
from translator.commands.remarks import say
from translator.errors import CdcError, ConfigError

_COMMANDS = (
    "audit",
    "capture",
    "check",
    "desk",
    "diff",
    "dlq",
    "explain",
    "init",
    "learn",
    "project",
    "retranslate",
    "run",
    "schema",
    "send",
    "status",
    "translate",
)


class _Commands(CommandGroup):
    """The commands, each in the module of its name, which is imported when it is asked for: all take a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"translator.commands.{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    package_name="cdc-translator", prog_name="translator", message=f"%(prog)s, version %(version)s, {way()}"
)
def cli() -> None:
    """Qlik, DTS Avro, SharePlex and Canal messages into one canonical change envelope."""


def main() -> None:
    """The console command `translator`."""
    try:
        cli()
    except ConfigError as error:
        say(str(error))
        sys.exit(2)
    except CdcError as error:
        say(str(error))
        sys.exit(1)
