"""The phases of a batch: each begins where another ends, so that together they are all of its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum


class Phase(StrEnum):
    """A part of a batch, by what the driver does then, or waits for."""

    SCHEMAS = "schemas"  # the schemas topic is read
    BOOKS = "books"  # the sink's own tables are read and written
    TASKS = "tasks"  # the workers read, fold and write
    DDL = "ddl"  # tables are created and changed
    SPARK = "spark"  # Spark merges what was staged
    LAG = "lag"  # the brokers tell where the topic ends


# The sum of the phases, beside them in metrics and log.
TOTAL = "total"


class Stopwatch:
    """Measures the phases of a batch, of which one is open at any time; the first from now on.

    Args:
        clock: tells seconds.
    """

    def __init__(self, phase: Phase, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._phase = phase
        self._started = self._since = clock()
        self._seconds: dict[str, float] = dict.fromkeys(Phase, 0.0)

    def enter(self, phase: Phase) -> None:
        """End the phase that is open, and begin another, which may have been there before."""
        now = self._clock()
        self._seconds[self._phase] += now - self._since
        self._phase, self._since = phase, now

    def stop(self) -> Mapping[str, float]:
        """End the phase that is open; return the seconds of each, and of all."""
        self.enter(self._phase)
        return {**self._seconds, TOTAL: self._since - self._started}
