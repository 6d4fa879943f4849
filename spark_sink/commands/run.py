"""`spark-sink run`: run the service, or read the topic up to its current end and exit."""

from __future__ import annotations

from pathlib import Path

import click

from spark_sink import logs, signals
from spark_sink.commands.configuration import config_option, configured


@click.command()
@config_option
@click.option("--available-now", is_flag=True, help="Stop once the sink has reached the current end of the topic.")
def run(config: Path, available_now: bool) -> None:
    """Write the canonical topic to tables until stopped."""
    # A container's process 1 ignores signals for which it has no handler. Without this handler, the sink could not be
    # stopped while Spark starts. The job sets its own handler once the query runs.
    signals.end_at_once()
    loaded = configured(config)
    # Imported here because help and configuration errors need no Spark.
    from spark_sink import assembly

    logs.configure(loaded.log_level)
    assembly.run(loaded, available_now=available_now)
