"""Waiting at start for a service that does not answer yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from translator.errors import RetryableError

Answer = TypeVar("Answer")

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 10.0


def retry_until(what: str, ask: Callable[[float], Answer], seconds: float, say: Callable[[str], None]) -> Answer:
    """Asks until it is not answered by RetryableError, with growing pauses, and says so; with 0 seconds, once.

    Args:
        what: the service, without an article.
        ask: is told how many seconds are left.

    Raises:
        RetryableError: it would have to be asked again later than `seconds` from now.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            return ask(max(0.1, deadline - time.monotonic()))
        except RetryableError as error:
            if time.monotonic() + pause > deadline:
                raise RetryableError(f"no {what} answered within {seconds:g} s: {error}") from None
            say(f"waiting for a {what}: {error}")
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
