"""Handle SIGTERM and SIGINT, which stop the sink."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ASKED = (signal.SIGTERM, signal.SIGINT)


def end_at_once() -> None:
    """Exit with code 0 on a signal. Use this function when no batch is running and nothing needs to be cleaned up.

    Call it again when Spark has started, because PySpark sets its own handler. This handler raises no exception. An
    exception would leave a response from Java unread, and the next request would get it.
    """
    for number in ASKED:
        signal.signal(number, lambda *_: os._exit(0))


@contextmanager
def handled(on_signal: Callable[[str], None]) -> Iterator[None]:
    """Within the block, a signal calls `on_signal` with its own name instead."""

    def handler(number: int, frame: FrameType | None) -> None:
        on_signal(signal.Signals(number).name)

    previous = {number: signal.signal(number, handler) for number in ASKED}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
