"""`translator run`: run the service."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from translator.commands.configuration import config_option
from translator.config import settings as settings_module
from translator.errors import CdcError, ConfigError


@click.command()
@config_option
@click.option(
    "--accept-gap",
    is_flag=True,
    help="If records were deleted before they could be read, record the gap and resume after it.",
)
def run(config: Path, accept_gap: bool) -> None:
    """Translate raw topics into the canonical topic until stopped."""
    # A program without a signal handler cannot be stopped while it is starting as process 1 of a container. Faust
    # installs its handlers when it runs. Before that, no work has to be finished properly. Raising SystemExit does not
    # work: Python replaces it with another error while a class body is being imported, and drops it in a finalizer.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stopped_early)
    # Imported here so that `translator translate` starts without Kafka clients.
    from translator.service import log_setup

    # Until the file is read, the settings log_format and log_level are not known.
    in_console = log_setup.configure("auto", "info")
    try:
        settings = settings_module.load(config)
        in_console = log_setup.configure(settings.log_format, settings.log_level)
        from translator.service import app

        code = app.run(settings, accept_gap=accept_gap)
    except CdcError as error:
        if in_console:
            raise  # plain text is easier to read, and nothing collects it
        code = 2 if isinstance(error, ConfigError) else 1
        log_setup.log_end(error, code)
    except Exception as error:
        code = 1
        log_setup.log_end(error, code, with_traceback=True)
    sys.exit(code)


def _stopped_early(number: int, _: object) -> None:
    """End a process that is still starting. The handler may interrupt any code, so it does not use the logger."""
    line = {
        "event": "stopped",
        "exit_code": 0,
        "signal": signal.Signals(number).name,
        "level": "info",
        "logger": "translator",
        "timestamp": datetime.now(UTC).isoformat(),
    }
    if not os.isatty(2):
        os.write(2, json.dumps(line).encode() + b"\n")
    os._exit(0)
