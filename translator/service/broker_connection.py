"""Track the connection to the brokers. An outage produces two log lines, instead of one for each failed request."""

from __future__ import annotations

import time

import structlog

log = structlog.get_logger("translator")


class BrokerConnection:
    """The connection to the brokers, as of the last request."""

    def __init__(self) -> None:
        self._lost_at: float | None = None

    @property
    def is_lost(self) -> bool:
        return self._lost_at is not None

    def lose(self, error: str) -> None:
        """Note that no broker responds."""
        if self._lost_at is None:
            self._lost_at = time.monotonic()
            log.warning("broker connection lost", error=error)

    def restore(self) -> None:
        """Note that a broker responded."""
        if self._lost_at is not None:
            seconds = round(time.monotonic() - self._lost_at, 1)
            self._lost_at = None
            log.warning("broker connection restored", seconds=seconds)
