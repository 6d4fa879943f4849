"""`translator run`: the service."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import click

from translator.commands.configuration import config_option
from translator.config import settings as settings_module


@click.command()
@config_option
@click.option("--accept-gap", is_flag=True, help="Go on where records are gone that were not read yet, and record it.")
def run(config: Path, accept_gap: bool) -> None:
    """Translate raw topics into the canonical topic until told to stop."""
    # As process 1 of a container a program without a handler of its own cannot be stopped while it starts; Faust sets
    # its handlers when it runs. Until then nothing is under way that has to end in order, and SystemExit would not do:
    # Python makes another error of it in the body of a class that is being imported, and drops it in a finalizer.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    settings = settings_module.load(config)
    # Here, not above: `translator translate` starts without Kafka clients.
    from translator.service import app, log_setup

    log_setup.configure(settings.log_format, settings.log_level)
    sys.exit(app.run(settings, accept_gap=accept_gap))
