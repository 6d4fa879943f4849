"""Report the progress of a long-running command at a limited rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

EVERY_SECONDS = 5.0

T = TypeVar("T")


class Progress:
    """Counts offsets and reports progress every five seconds. A short run therefore reports nothing, and a log is not
    flooded.

    Args:
        total: number of offsets to read, including those that have no record.
        clock: seconds since any point in time.
    """

    def __init__(
        self, what: str, total: int, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._total = total
        self._say = say
        self._clock = clock
        self._done = 0
        self._said = clock()

    def through(
        self, place: str, first: int, end: int, records: Iterable[T], offset: Callable[[T], int]
    ) -> Iterator[T]:
        """Pass on the records in an offset range."""
        before = self._done
        for record in records:
            self._done = before + offset(record) - first
            now = self._clock()
            if now >= self._said + EVERY_SECONDS:
                self._said = now
                share = 100 * self._done // self._total
                self._say(f"{self._what}: {share} % of {self._total} offsets, now {place}")
            yield record
        self._done = before + end - first
