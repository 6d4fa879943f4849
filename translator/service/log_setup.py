"""Write one log for our lines and those of Faust, mode and aiokafka: JSON in production, console on a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any

import structlog

# aiokafka repeats itself many times a second during a broker outage, and httpx2 logs every request to the registry.
_LEVELS: Mapping[str, int] = {
    "aiokafka": logging.ERROR,
    "faust": logging.WARNING,
    "httpx2": logging.WARNING,
    "mode": logging.WARNING,
    # Faust logs the start and the stop of its parts under the module of their class, such as `[^-BoundedStopApp]`.
    "translator.service": logging.WARNING,
}


_CRASH = "We experienced a crash! Reraising original exception..."


def configure(log_format: str, log_level: str) -> bool:
    """Set up logging for the process, and return whether the format is the console format.

    Args:
        log_format: json, console, or auto (console if stderr is a terminal).
        log_level: info, warning or error. Less severe lines are not written.

    The root logger stays at INFO, because at a higher level Faust would enable all debug lines.
    """
    console = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: Any = structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    if console:
        shared.pop()  # the console renders exceptions itself
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.setLevel(log_level.upper())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name, level in _LEVELS.items():
        logging.getLogger(name).setLevel(level)
    # Our last critical line contains the reason. The line that Faust logs when such a process ends does not contain it.
    logging.getLogger("faust.worker").addFilter(lambda record: not record.getMessage().endswith(_CRASH))
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return console


def log_end(error: Exception, code: int, *, with_traceback: bool = False) -> None:
    """If an error ends the process before Faust runs, log the last line."""
    log = structlog.get_logger("translator")
    fields = {"exc_info": error} if with_traceback else {}
    log.critical("stopping", error=str(error), error_type=type(error).__name__, exit_code=code, **fields)
