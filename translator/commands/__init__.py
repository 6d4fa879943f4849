"""The command line: one file per command; wiring and exit codes only.

Exit codes: 0 fine, 1 failed while working, 2 bad usage or configuration.
"""

from __future__ import annotations

import sys

import click

from translator._native import way
from translator.commands.audit import audit
from translator.commands.capture import capture
from translator.commands.check import check
from translator.commands.diff import diff
from translator.commands.dlq import dlq
from translator.commands.explain import explain
from translator.commands.learn import learn
from translator.commands.retranslate import retranslate
from translator.commands.run import run
from translator.commands.schema import schema
from translator.commands.translate import translate
from translator.errors import CdcError, ConfigError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    package_name="cdc-translator", prog_name="translator", message=f"%(prog)s, version %(version)s, {way()}"
)
def cli() -> None:
    """Qlik, DTS Avro, SharePlex and Canal messages into one canonical change envelope."""


for command in (run, translate, check, explain, learn, dlq, audit, capture, retranslate, diff, schema):
    cli.add_command(command)


def main() -> None:
    """The console command `translator`."""
    try:
        cli()
    except ConfigError as error:
        click.echo(f"translator: {error}", err=True)
        sys.exit(2)
    except CdcError as error:
        click.echo(f"translator: {error}", err=True)
        sys.exit(1)
