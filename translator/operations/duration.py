"""Times for people."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A time in the largest unit of which it has two."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
