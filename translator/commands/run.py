"""`translator run`: run the service."""

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
@click.option(
    "--accept-gap",
    is_flag=True,
    help="Resume past records that were deleted before they were read, and record the gap.",
)
def run(config: Path, accept_gap: bool) -> None:
    """Translate raw topics into the canonical topic until stopped."""
    # A program without a signal handler cannot be stopped while it starts as process 1 of a container. Faust installs
    # its handlers once it runs. Before that, no work has to be finished in order. Raising SystemExit does not work:
    # Python replaces it with another error while a class body is being imported, and drops it in a finalizer.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    settings = settings_module.load(config)
    # Imported here so that `translator translate` starts without Kafka clients.
    from translator.service import app, log_setup

    log_setup.configure(settings.log_format, settings.log_level)
    sys.exit(app.run(settings, accept_gap=accept_gap))
