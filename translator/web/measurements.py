"""Keep the desk's recent measurements as sparklines. They exist only in the memory of the desk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

WIDTH, HEIGHT = 120, 24
"""Size of a line's drawing."""

SAMPLES = 450
"""Maximum number of samples. This is 15 minutes for a page that refreshes itself every two seconds."""

SERIES = 200
"""Maximum number of names in a sample."""


class Sparkline(NamedTuple):
    """The course of one measurement.

    Args:
        points: the line, as the attribute `points` of an SVG polyline.
        words: the same for readers without pictures.
    """

    points: str
    words: str


class Measurements:
    """The newest samples, each with its time and values by name."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, Mapping[str, float]]] = deque(maxlen=SAMPLES)

    def add(self, at_ms: int, values: Mapping[str, float]) -> None:
        """Add a sample if it is newer than the last one. Several readers of the page share the samples."""
        if not self._samples or self._samples[-1][0] < at_ms:
            self._samples.append((at_ms, dict(list(values.items())[:SERIES])))

    def line(self, name: str, written: Callable[[float], str]) -> Sparkline | None:
        """Return a measurement as a sparkline, or None for fewer than two samples.

        Args:
            written: returns a value as text.
        """
        seen = [(at, values[name]) for at, values in self._samples if name in values]
        if len(seen) < 2:
            return None
        (first, begin), (last, end) = seen[0], seen[-1]
        highest = max(value for _, value in seen)
        across, up = WIDTH / (last - first), (HEIGHT - 4) / (highest or 1)
        points = " ".join(f"{(at - first) * across:.1f},{HEIGHT - 2 - value * up:.1f}" for at, value in seen)
        words = f"from {written(begin)} to {written(end)}, at most {written(highest)}"
        return Sparkline(points, words)
