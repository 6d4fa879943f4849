"""The format of stored state.

Everything that outlives a process is stored with the number of its format and the release that wrote it: records in the
compacted topics, committed offsets, dead letters, tables and the files next to them, checkpoints. State without a
number is from before release 0.1.0, and is read like format 1. Each release reads all earlier formats.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from cdc_core.errors import FatalError, quote

FORMAT = 1


@cache
def release() -> str:
    """Return the number of the installed release."""
    return version("cdc-translator")


def check_format(found: str | None, where: str, writer: str | None = None) -> None:
    """Make sure that this release can read a state.

    Args:
        found: the stored format; None for a state from before release 0.1.0.
        where: the state's place, for the error.
        writer: the release that wrote the state, if it is known.

    Raises:
        FatalError: the format is from a later release.
    """
    if not is_readable(found):
        by = "a later release" if writer is None else f"release {writer}"
        raise FatalError(
            f"{where}: the state has the format {quote(found)} of {by}, but release {release()} only reads formats up "
            f"to {FORMAT}. Nothing was changed. Start {by} again, or restore the state from before the upgrade "
            "(docs/operate/upgrades.md)"
        )


def is_readable(found: str | None) -> bool:
    """Return whether this release can read a stored format."""
    return found is None or (found.isascii() and found.isdecimal() and int(found) <= FORMAT)
