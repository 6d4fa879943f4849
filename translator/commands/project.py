"""`translator project`: a projection from the first day, out of the canonical topic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from translator.commands.configuration import config_option
from translator.commands.remarks import say
from translator.config import settings as settings_module

if TYPE_CHECKING:
    from translator.errors import MessageError


@click.command()
@config_option
@click.option("--from", "of", type=click.Choice(["canonical"]), required=True, help="Where events are read.")
@click.option("--topic", required=True, help="The projection, by its setting `topic`.")
def project(config: Path, of: str, topic: str) -> None:
    """Write what the canonical topic holds to a projection that the service does not write yet.

    It reads up to the ends that the topic has when it begins, and prints them. The next run goes on there: run it while
    the service runs, stop the service, run it once more, and start the service with the projection.
    """
    settings = settings_module.load(config)
    # Here, not above: help and `translator translate` start without Kafka clients.
    from translator.operations.project import project as project_events

    def refused(message: str, error: MessageError) -> None:
        say(f"refused {error.code} {message}: {error.reason}")

    done = project_events(settings, topic, say, refused)
    for one in done.ranges:
        click.echo(f"{one.topic}/{one.partition}: offsets {one.first} to {one.end}, without the last")
    counts = " ".join(f"{name}={count}" for name, count in done.counts.items())
    click.echo(f"{counts} output={topic}")
