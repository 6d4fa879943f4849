"""Format times and durations for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(ms: int) -> str:
    """Return a time (milliseconds since 1970) in UTC, to the second."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def instant(ms: int) -> str:
    """Return a time (milliseconds since 1970) in ISO 8601 with full precision, in UTC. Used to distinguish records.

    A producer may set any number as a timestamp. If the number is not a valid time, it is returned as it is.
    """
    try:
        time = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms since 1970"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration(seconds: float) -> str:
    """Return a duration in the largest unit that fits into it at least twice."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
