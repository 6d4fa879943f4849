"""`spark-sink run`: the service, or one run to the end of the topic."""

from __future__ import annotations

from pathlib import Path

import click

from spark_sink import logs, signals
from spark_sink.commands.configuration import config_option, configured


@click.command()
@config_option
@click.option("--available-now", is_flag=True, help="Stop at what is the end of the topic now.")
def run(config: Path, available_now: bool) -> None:
    """Write the canonical topic to tables until stopped."""
    # As process 1 of a container a program without a handler of its own cannot be stopped while Spark starts; the job
    # sets its own when the query runs.
    signals.end_at_once()
    loaded = configured(config)
    # Here, not above: help and mistakes in the file need no Spark.
    from spark_sink import assembly

    logs.configure(loaded.log_level)
    assembly.run(loaded, available_now=available_now)
