"""Write the sink's log: one JSON object per line, or colored text on a terminal. The log never contains row data."""

from __future__ import annotations

import sys

import structlog


def configure(log_level: str) -> None:
    """Set up logging for the process.

    Args:
        log_level: `info`, `warning` or `error`. Less severe lines are not written.
    """
    console = sys.stdout.isatty()
    processors: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if console:
        processors.append(structlog.dev.ConsoleRenderer())
    else:
        processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(log_level),
        cache_logger_on_first_use=True,
    )
