"""Limit the rate of log lines about events that may happen thousands of times a second. The first few lines of each
kind are written. All others are only counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any

from msgspec import Struct

SECONDS = 60.0
"""The period to which the limit on lines per kind applies."""


class _Kind(Struct):
    since: float
    written: int = 0
    left_out: int = 0


class BoundedLog:
    """Writes the first lines of each kind in a minute. The next line of the same kind reports how many lines were
    omitted.

    The number of kinds must be small, because each kind is remembered. A kind may consist of a source and a code, but
    must never contain a name from a message.

    Args:
        write: writes a line, as a logger's methods do.
        lines: maximum lines per kind and minute.
        clock: monotonic seconds.
    """

    def __init__(
        self, write: Callable[..., object], lines: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._lines = lines
        self._clock = clock
        self._kinds: dict[Hashable, _Kind] = {}

    def tell(self, text: str, *kind: Hashable, **fields: Any) -> None:
        """Write a line, unless its kind has reached the limit."""
        now = self._clock()
        of = self._kinds.setdefault((text, *kind), _Kind(now))
        if now - of.since >= SECONDS:
            of.since, of.written = now, 0
        if of.written >= self._lines:
            of.left_out += 1
            return
        if of.left_out:
            fields["left_out"] = of.left_out
        of.written, of.left_out = of.written + 1, 0
        self._write(text, **fields)
