"""Calls into a plug-in. If a call raises any exception, the message is rejected.

A plug-in runs in the translator's process and with its rights. This code therefore protects against mistakes, not
against malice. The reason for a failure names only the type of the exception and a line of code. The text of the
exception could contain row data.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from translator.dialects._time_limit import SECONDS, Overdue, limited
from translator.errors import ErrorCode, MessageError, Unmaskable

P = ParamSpec("P")
T = TypeVar("T")

CODES = frozenset(ErrorCode) - {
    *(ErrorCode.CONTRADICTION, ErrorCode.HELD, ErrorCode.TOO_LARGE, ErrorCode.TOPIC_REFUSED),
    *(ErrorCode.DIALECT_FAILED, ErrorCode.INTERNAL),
}
"""The codes with which a dialect can reject a message. With masks, the translator withholds the reasons of rejections
with these codes.
"""


class OverdueCall(MessageError):
    """A call took too long."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.DIALECT_FAILED, f"no result within {SECONDS} s")


class BrokenRule(Exception):
    """A plug-in returned something outside the interface. The text contains no row data."""


def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a plug-in. The function also checks and copies the result, because a result may be computed lazily.

    Raises:
        MessageError: the plug-in rejects the message or fails.
        Unmaskable: the plug-in cannot mask the message.
    """
    try:
        return limited(function, *args, **kwargs)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _can_be_interrupted():
            raise
        raise _rejection(error) from None


def line_of(error: BaseException) -> str:
    """Return the line that raised an exception, with its file's folder: `cdc_maxwell/decode.py:41`."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno}"


def _can_be_interrupted() -> bool:
    """Return whether Ctrl-C raises KeyboardInterrupt here. If it does not, the plug-in itself raised the exception.

    The service handles the signal without an exception.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    return in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _rejection(error: BaseException) -> MessageError | Unmaskable:
    if isinstance(error, Overdue):
        return OverdueCall()
    if isinstance(error, BrokenRule):
        return _failed(str(error))
    if isinstance(error, (MessageError, Unmaskable)):
        # A plug-in's subclass can run code of its own, and its text can be anything.
        try:
            return limited(_plain, error)
        except BaseException as second:
            return _failed(f"{type(second).__name__} in the {type(error).__name__} that the dialect raised")
    return _failed(f"{type(error).__name__} in {line_of(error)}")


def _plain(error: MessageError | Unmaskable) -> MessageError | Unmaskable:
    if isinstance(error, Unmaskable):
        return Unmaskable(_printable(str(error)))
    if error.code not in CODES:
        allowed = ", ".join(sorted(CODES))
        return _failed(f"the dialect raised MessageError with a code that is not for dialects; allowed: {allowed}")
    rejection = MessageError(ErrorCode(error.code), _printable(error.reason), path=_printable(error.path))
    return rejection.with_traceback(error.__traceback__)


def _printable(text: str) -> str:
    """Return a string that can be encoded, which a string with a surrogate cannot."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def _failed(reason: str) -> MessageError:
    return MessageError(ErrorCode.DIALECT_FAILED, _printable(reason))
