"""Wait at startup for a service that does not respond yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from translator.errors import RetryableError

Answer = TypeVar("Answer")

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 10.0


def retry_until(what: str, ask: Callable[[float], Answer], seconds: float, say: Callable[[str], None]) -> Answer:
    """Call `ask` again after each RetryableError, with growing pauses, and report the wait. With 0 seconds, call `ask`
    once.

    Args:
        what: the service, without an article.
        ask: called with the number of seconds left.

    Raises:
        RetryableError: the next attempt would be more than `seconds` from now.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            return ask(max(0.1, deadline - time.monotonic()))
        except RetryableError as error:
            if time.monotonic() + pause > deadline:
                raise RetryableError(f"no {what} available within {seconds:g} s: {error}") from None
            say(f"waiting for a {what}: {error}")
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
