"""`translator project`: fill a projection with the history from the canonical topic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.config import settings as settings_module

if TYPE_CHECKING:
    from translator.errors import MessageError


@click.command()
@config_option
@click.option(
    "--from",
    "of",
    type=click.Choice(["canonical"]),
    required=True,
    help="Topic to read the events from. It must be the canonical topic.",
)
@click.option("--topic", required=True, help="The projection to write, named by its `topic` setting.")
def project(config: Path, of: str, topic: str) -> None:
    """Copy the events in the canonical topic to a projection that the service does not write yet.

    A run reads up to the topic's end offsets at the start of the run, and prints these offsets. The next run resumes
    from them. First, run the command while the service is running. Then stop the service, run the command once more,
    and start the service with the projection.
    """
    settings = settings_module.load(config)
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.operations.project import project as project_events

    def refused(message: str, error: MessageError) -> None:
        say(f"refused {error.code} {message}: {error.reason}")

    done = project_events(settings, topic, say, refused)
    for one in done.ranges:
        click.echo(f"{one.topic}/{one.partition}: offsets {one.first} to {one.end} (exclusive)")
    counts = " ".join(f"{name}={count}" for name, count in done.counts.items())
    click.echo(f"{counts} output={topic}")
