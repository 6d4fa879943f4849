"""The words of a refusal: bounded, and without what stood in the message where columns of its source are masked."""

from __future__ import annotations

import traceback
from pathlib import Path

from translator.errors import ErrorCode, MessageError

_PACKAGE = Path(__file__).parents[1]

MAX_REASON = 1_000
"""Characters of a reason: names out of a message have no bound, and a dead letter must fit its topic."""

_OF_NO_MESSAGE = frozenset({ErrorCode.HELD, ErrorCode.INTERNAL, ErrorCode.TOO_LARGE})
"""Codes whose reasons name tables, sizes and lines of this package, and no other text of a message."""

_LINES = 2
"""The line that refused a message may be one that all dialects share; the one that called it tells more."""


def bounded(reason: str) -> str:
    """Return a reason that fits a dead letter."""
    return reason if len(reason) <= MAX_REASON else reason[:MAX_REASON] + "…"


def without_text(error: MessageError) -> str:
    """Return the reason of a refusal without what it says of the message, where a masked value may stand anywhere."""
    if error.code in _OF_NO_MESSAGE:
        return error.reason
    lines = _our_lines(error)[-_LINES:]
    where = f"refused in {', '.join(lines)}" if lines else "refused"
    return f"{where}; what stood there is not told, as columns of the source are masked (masks.messages)"


def our_line(error: BaseException) -> str:
    """The innermost line of this package in a traceback: `dialects/canal/decode.py:120`."""
    return _our_lines(error)[-1]


def _our_lines(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    return [f"{Path(frame.filename).relative_to(_PACKAGE)}:{frame.lineno}" for frame in ours]
