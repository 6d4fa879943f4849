"""The phases of a batch. Each begins where another ends, so together they are its whole duration."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum


class Phase(StrEnum):
    """A part of a batch, by what the driver does or waits for."""

    SCHEMAS = "schemas"  # read the schemas topic
    BOOKS = "books"  # read and write the sink's own tables
    TASKS = "tasks"  # workers read, fold and write
    DDL = "ddl"  # create and change tables
    SPARK = "spark"  # merge staged files with Spark
    LAG = "lag"  # ask brokers for the end of the topic


# The sum of the phases, listed with them in metrics and log.
TOTAL = "total"


class Stopwatch:
    """Measures the phases of a batch, with exactly one running at any time; the first one begins now.

    Args:
        clock: returns seconds.
    """

    def __init__(self, phase: Phase, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._phase = phase
        self._started = self._since = clock()
        self._seconds: dict[str, float] = dict.fromkeys(Phase, 0.0)

    def enter(self, phase: Phase) -> None:
        """End the running phase and begin another one, which may have run before."""
        now = self._clock()
        self._seconds[self._phase] += now - self._since
        self._phase, self._since = phase, now

    def stop(self) -> Mapping[str, float]:
        """End the running phase; return the seconds of each phase, and of all."""
        self.enter(self._phase)
        return {**self._seconds, TOTAL: self._since - self._started}
