"""SIGTERM and SIGINT, which ask the sink to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ASKED = (signal.SIGTERM, signal.SIGINT)


def end_at_once() -> None:
    """End with exit code 0 when asked to, as long as no batch runs and nothing has to be put in order.

    To be called again when Spark has started: PySpark sets a handler of its own. Not by an exception, which would leave
    an answer of Java unread, and the next question would get it.
    """
    for number in ASKED:
        signal.signal(number, lambda *_: os._exit(0))


@contextmanager
def handled(on_signal: Callable[[str], None]) -> Iterator[None]:
    """Call the handler with the name of the signal instead, within the block."""

    def handler(number: int, frame: FrameType | None) -> None:
        on_signal(signal.Signals(number).name)

    previous = {number: signal.signal(number, handler) for number in ASKED}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
