"""The phases of a batch. Each phase begins when the previous phase ends, so the phases together cover the whole
batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum


class Phase(StrEnum):
    """A part of a batch, named after what the driver does or waits for."""

    SCHEMAS = "schemas"  # read the schemas topic
    BOOKS = "books"  # read and write the sink's own tables
    TASKS = "tasks"  # workers read, fold and write
    DDL = "ddl"  # create and change tables
    SPARK = "spark"  # merge staged files with Spark
    LAG = "lag"  # ask the brokers where the topic ends


# The total for all phases. Metrics and logs list the total next to the phases.
TOTAL = "total"


class Stopwatch:
    """Measures the phases of a batch. Exactly one phase is running at any time. The first phase starts immediately.

    Args:
        clock: returns seconds.
    """

    def __init__(self, phase: Phase, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._phase = phase
        self._started = self._since = clock()
        self._seconds: dict[str, float] = dict.fromkeys(Phase, 0.0)

    def enter(self, phase: Phase) -> None:
        """End the running phase and begin another one. A phase can run several times."""
        now = self._clock()
        self._seconds[self._phase] += now - self._since
        self._phase, self._since = phase, now

    def stop(self) -> Mapping[str, float]:
        """End the running phase. Return the seconds per phase, and the total."""
        self.enter(self._phase)
        return {**self._seconds, TOTAL: self._since - self._started}
