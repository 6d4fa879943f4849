"""The text of a rejection: limited in length, and without message content if some of the source's columns are
masked.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from translator.errors import ErrorCode, MessageError

_PACKAGE = Path(__file__).parents[1]

MAX_REASON = 1_000
"""Maximum length of a reason. Names in messages can be long, and a dead letter must fit into its topic."""

_OF_NO_MESSAGE = frozenset({ErrorCode.HELD, ErrorCode.INTERNAL, ErrorCode.TOO_LARGE})
"""Codes whose reasons contain only table names, sizes and line references to this package, but no other text from a
message.
"""

_LINES = 2
"""Files whose lines are shared by all dialects. In a reason, the line that called them is more useful."""


def bounded(reason: str) -> str:
    """Shorten a reason to fit into a dead letter."""
    return reason if len(reason) <= MAX_REASON else reason[:MAX_REASON] + "…"


def without_text(error: MessageError) -> str:
    """Return a rejection's reason without text from the message, which could contain a masked value."""
    if error.code in _OF_NO_MESSAGE:
        return error.reason
    lines = _our_lines(error)[-_LINES:]
    where = f"rejected in {', '.join(lines)}" if lines else "rejected"
    return f"{where}; the content is not shown because columns of the source are masked (masks.messages)"


def our_line(error: BaseException) -> str:
    """Return the innermost line from this package in a traceback: `dialects/canal/decode.py:120`."""
    return _our_lines(error)[-1]


def _our_lines(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    return [f"{Path(frame.filename).relative_to(_PACKAGE)}:{frame.lineno}" for frame in ours]
