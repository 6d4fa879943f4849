"""The command line, which contains only wiring and exit codes.

Exit codes: 0 for success, 1 if the work failed, 2 for a wrong command line or configuration. `verify` has more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from cdc_core.command_line import LazyGroup
from spark_sink.errors import ConfigError, FatalError

# The packages in the `sink` extra, by import name.
_EXTRA = frozenset({"pyspark", "py4j", "deltalake", "pyiceberg", "pandas", "pyarrow"})

_COMMANDS = {
    "run": "Write the canonical topic to tables until stopped.",
    "check": "Check a configuration file and, with --connect, everything else that `run` needs.",
    "health": "Check whether the sink that runs at URL (http://HOST:PORT, its `metrics.port`) is healthy.",
    "status": "Show all tables, the reason for each parked table, and the newest batch.",
    "batches": "List the newest batches, each with its end time, applied offsets and changed tables.",
    "cut": "Print a consistent cut as JSON, with the version of each table and the matching topic offsets.",
    "view": "Print the SQL for a view of TABLE that has only its source columns and its live rows.",
    "verify": "Compare the rows of TABLE, a mirror, with the changes in the canonical topic or with a source.",
    "checksums": "Print the SQL job that computes checksums of TABLE, a mirror, at its source.",
    "quarantine": "Show events that could not be applied.",
    "resume": "Replay the events of a parked TABLE, then resume it.",
    "discard": "Discard the events of a parked TABLE that tables.exclude now leaves out.",
    "park": "Park TABLE: store its events, and do not apply them until it is resumed.",
    "rebuild": "Rebuild TABLE from the canonical topic into a new, empty table, and resume it.",
    "relayout": "Rewrite TABLE in the layout that tables.layout configures.",
    "reload": "Reload TABLE without showing the load to readers before it is complete.",
    "erase": "Erase a row of TABLE, its earlier versions and its stored events.",
    "adopt": "Assign TABLE to another source table, whose rows replace existing rows with the same key.",
    "sweep": "Delete the rows of TABLE that a reload did not contain.",
    "maintain": "Compact, checkpoint and vacuum TABLE, or all tables.",
    "register": "Register TABLE, or all tables, in the configured catalog, and replace their views.",
}
_MODULES = {
    **dict.fromkeys(("resume", "discard", "park", "rebuild", "relayout", "reload"), "ask"),
    **dict.fromkeys(("erase", "adopt", "sweep", "maintain", "register"), "ask"),
    **dict.fromkeys(("status", "batches", "cut", "view", "quarantine"), "look"),
}


@click.group(
    cls=LazyGroup,
    commands=_COMMANDS,
    modules=_MODULES,
    package=__name__,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="cdc-translator", prog_name="spark-sink")
def cli() -> None:
    """Apply the canonical topic to lakehouse tables."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The console command `spark-sink`."""
    try:
        cli(arguments)
    except ConfigError as error:
        click.echo(f"spark-sink: {error}", err=True)
        sys.exit(2)
    except FatalError as error:
        click.echo(f"spark-sink: {error}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        click.echo(
            f"spark-sink: the Python package {error.name} is not installed; "
            "install the sink with its dependencies: pip install 'cdc-translator[sink]'",
            err=True,
        )
        sys.exit(2)
