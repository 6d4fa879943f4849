"""`translator send`: write one message to a raw topic and show how the running service translates it."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from cdc_core.command_line import json_option
from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.config import settings as settings_module
from translator.errors import FatalError


@click.command()
@config_option
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="Seconds to wait for an event or a dead letter to appear.",
)
@json_option
@click.argument("topic")
@click.argument("message", type=click.File("rb"))
def send(config: Path, timeout: float, as_json: bool, topic: str, message: BinaryIO) -> None:
    """Write a message from a file to a raw topic and show how the running service translates it.

    MESSAGE is the file, or `-` for standard input. The message is treated like any other. Consumers receive its events,
    and a lakehouse receives its rows. To test a service that has consumers, send a message without a row, such as one
    for a table in Canal's `heartbeat_tables`. The exit code is 1 if the message becomes a dead letter, or if no result
    arrives in time.
    """
    settings = settings_module.load(config)
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.operations.send import send as send_message

    sent = send_message(settings, topic, message.read(), timeout, say)
    if as_json:
        click.echo(msgspec.json.encode(sent))
    else:
        for event in sent.events:
            click.echo(f"event {event} after {sent.seconds:.1f} s")
    if sent.dead is not None:
        place = f"{sent.topic} {sent.partition} {sent.offset}"
        raise FatalError(
            f"the message became a dead letter, {sent.dead}; run `translator explain {place}` to see the reason"
        )
