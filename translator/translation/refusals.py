"""Write the text of a rejection. Its length is limited, and it contains nothing from the message if some columns of the
source are masked.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path

from translator.errors import ErrorCode, MessageError

_PACKAGE = Path(__file__).parents[1]

MAX_REASON = 1_000
"""Maximum length of a reason. Names in messages may be long, but a dead letter must fit into its topic."""

_OF_NO_MESSAGE = frozenset(
    {ErrorCode.HELD, ErrorCode.DIALECT_FAILED, ErrorCode.INTERNAL, ErrorCode.TOO_LARGE, ErrorCode.TOPIC_REFUSED}
)
"""The reasons for these codes contain only table names, sizes, types of exceptions and references to lines of code, and
no other text from a message.
"""

_FIXED_TEXTS: Mapping[ErrorCode, str] = {
    ErrorCode.FRAMING: "the first bytes match no known layout",
    ErrorCode.MALFORMED_JSON: "not JSON",
    ErrorCode.MALFORMED_AVRO: "the bytes are not Avro with the expected schema",
    ErrorCode.LIMIT_EXCEEDED: "the message is larger, deeper or wider than the limits allow",
    ErrorCode.UNKNOWN_TYPE: "the message type is unknown",
    ErrorCode.UNKNOWN_OPERATION: "unknown operation",
    ErrorCode.MISSING_FIELD: "a field is missing",
    ErrorCode.INVALID_FIELD: "a field has the wrong type or an invalid value",
    ErrorCode.TABLE_UNKNOWN: "the message does not identify its table",
    ErrorCode.ROW_NOT_SENT: "the writer did not send the row's values",
    ErrorCode.SCHEMA_MISSING: "the message refers to metadata or a schema that is unknown",
    ErrorCode.AMBIGUOUS_VARIANT: "the meaning depends on the writer, which must be declared (options)",
    ErrorCode.CONTRADICTION: "the message contradicts the source's options",
    ErrorCode.UNSUPPORTED_SHAPE: "the message was understood, but has no exact translation",
    ErrorCode.KEY_MISSING: "the row has no key",
    ErrorCode.KEY_CHANGE_INCOMPLETE: "a key change lacks some key columns",
}
"""The meaning of each code whose reasons may contain text from a message."""

_LINES = 2
"""Files with code that all dialects share. Instead, the reason shows the line that called this code, which is more
useful.
"""


def bounded(reason: str) -> str:
    """Shorten a reason to fit into a dead letter."""
    return reason if len(reason) <= MAX_REASON else reason[:MAX_REASON] + "…"


def without_text(error: MessageError, line: str | None = None) -> str:
    """Return the reason for a rejection without text from the message, because the text could contain a masked value.

    Args:
        line: the line that rejected the message, if it is not in this package.
    """
    if error.code in _OF_NO_MESSAGE:
        return error.reason
    lines = _our_lines(error)[-_LINES:] if line is None else [line]
    where = f"rejected in {', '.join(lines)}" if lines else "rejected"
    why = "the content is not shown because columns of the source are masked (masks.messages)"
    return f"{_FIXED_TEXTS[error.code]}; {where}; {why}"


def our_line(error: BaseException) -> str:
    """Return the innermost line from this package in a traceback: `dialects/canal/decode.py:120`."""
    return _our_lines(error)[-1]


def _our_lines(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    return [f"{Path(frame.filename).relative_to(_PACKAGE)}:{frame.lineno}" for frame in ours]
