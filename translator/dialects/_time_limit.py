"""Limit the time of a call into a plug-in.

Python cannot end a thread. The limit is therefore an exception that a signal handler raises in the main thread, where
the service and the commands translate. It ends loops, regular expressions and sleeps, but not C code that never checks
for signals. In that case, the service's watchdog ends the process (service/watchdog.py). Other threads have no limit.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

SECONDS = 10
"""Maximum time for one call. Any message within the limits takes far less."""

CALLS_PER_MESSAGE = 3
"""Maximum number of calls for one message. The message is decoded and, with `on_error: hold_table`, decoded again and
asked for its tables. `timing.stuck`, after which the watchdog ends the process, must be longer than all of them.
"""

P = ParamSpec("P")
T = TypeVar("T")


class Overdue(BaseException):
    """The call exceeded its time. It is derived from BaseException, not from Exception, so that the plug-in does not
    catch it by accident.
    """


class _Ticks:
    """Measures a call's duration by counting timer signals. These do not add up while the process is suspended, so a
    suspension is not mistaken for a slow call.
    """

    def __init__(self, allowed: int) -> None:
        self._left = allowed

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        self._left -= 1
        if self._left <= 0:
            raise Overdue


def limited(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a call that may take at most SECONDS.

    Raises:
        Overdue: the call took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        return call(*args, **kwargs)
    started = time.monotonic()
    timer = signal.getitimer(signal.ITIMER_REAL)
    before = signal.signal(signal.SIGALRM, _Ticks(SECONDS))
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 1, 1)
            return call(*args, **kwargs)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Overdue:
        # The signal can also arrive just before the timer is stopped. The next one is a second away.
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise
    finally:
        signal.signal(signal.SIGALRM, before)
        _resume(timer, time.monotonic() - started)


def _resume(timer: tuple[float, float], passed: float) -> None:
    """Restart the timer that other code has set. If it expired during the call, its signal follows immediately."""
    left, interval = timer
    if left:
        signal.setitimer(signal.ITIMER_REAL, max(left - passed, 1e-6), interval)
