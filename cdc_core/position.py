"""Define the position of an event (docs/design.md §4.4): its format, its parts, and whether a scope delivers events in
order.

A position is sortable text. Its parts are the epoch (4 digits), the native position (38), the raw topic's offset (19)
and the number of the event within its message (6). Dots separate them. Positions can be compared only within a scope.
"""

from __future__ import annotations

_EPOCH, _NATIVE, _NUMBER = slice(0, 4), slice(5, 43), slice(64, 70)
_NO_NATIVE = "0" * 38
_ARRIVAL = f"0000.{_NO_NATIVE}."
_NATIVE_SCOPE = "native:"


def position(offset: int, n: int, *, native: int = 0, epoch: int = 0) -> str:
    """Return the position of event number `n` in the message at `offset`."""
    prefix = f"{epoch:04d}.{native:038d}." if native or epoch else _ARRIVAL
    # Formatting with `%` takes half as long as an f-string here, and a precomputed prefix saves another third of the
    # remaining time. This code runs once per event and takes 0.37 us.
    return "%s%019d.%06d" % (prefix, offset, n)  # noqa: UP031


def epoch(pos: str) -> str:
    """Return the four-digit epoch."""
    return pos[_EPOCH]


def number(pos: str) -> int:
    """Return the event's number within its message."""
    return int(pos[_NUMBER])


def has_native(pos: str) -> bool:
    """Return whether the position has a native part. A snapshot row's position has no native part."""
    return pos[_NATIVE] != _NO_NATIVE


def native_scope(source: str, task: str) -> str:
    """Return the scope within which native positions are comparable."""
    return f"{_NATIVE_SCOPE}{source}/{task}"


def is_in_order(scope: str) -> bool:
    """Return whether a row's events arrive in the order of their positions. A native scope does not guarantee this
    order.
    """
    return not scope.startswith(_NATIVE_SCOPE)
