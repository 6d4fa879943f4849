"""The format of stored state.

Store everything that outlives a process with the number of its format and the release that wrote it. This applies to
records in the compacted topics, committed offsets, dead letters, checkpoints, tables and the files next to them. State
without a number predates release 0.1.0, and is read like format 1. Each release reads all earlier formats.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from cdc_core.errors import FatalError, quote

FORMAT = 1

# The number of digits that a format can have. A state can be damaged, and Python does not convert thousands of digits.
_DIGITS = 9


@cache
def release() -> str:
    """Return the number of the installed release."""
    return version("cdc-translator")


def check_format(found: str | None, where: str, writer: str | None = None) -> None:
    """Raise an error unless this release can read a state.

    Args:
        found: the stored format, or None for a state from before release 0.1.0.
        where: the location of the state, for the error.
        writer: the release that wrote the state, if it is known.

    Raises:
        FatalError: the format is from a later release.
    """
    if (refusal := refusal_of(found, writer)) is not None:
        raise FatalError(f"{where} {refusal}")


def refusal_of(found: str | None, writer: str | None = None) -> str | None:
    """Return why this release cannot read a stored format, or None if it can."""
    if found is None or (found.isascii() and found.isdecimal() and len(found) <= _DIGITS and int(found) <= FORMAT):
        return None
    by = f"release {quote(writer)}" if writer else "a later release"
    return (
        f"has the format {quote(found)} of {by}, but release {release()} only reads formats up to {FORMAT}. Start {by} "
        "again, or restore the state from before the upgrade (docs/operate/upgrades.md)"
    )
