"""Times for people."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(ms: int) -> str:
    """A time (milliseconds since 1970) to the second, UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def duration(seconds: float) -> str:
    """A time in the largest unit of which it has two."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
