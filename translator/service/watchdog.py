"""Ends a process that hangs: a supervisor restarts what has ended, and nothing else.

The watch is a thread of its own, for a blocked event loop cannot watch itself. It counts its own turns, not seconds: a
process that was stopped as a whole (SIGSTOP, a suspended machine) has not hung. Code that never lets another thread
have its turn (a regular expression that runs away, say) stops the watch too; for that there is a second timer, in C.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import structlog
from msgspec import Struct

log = structlog.get_logger("translator")

_LAST_WORDS = 5.0


class Watched(Struct, frozen=True):
    """A number that must change from time to time.

    Args:
        seconds: how long it may stand.
        state: None while there is nothing to wait for; else a value that changes when it moves.
        said: what is wrong when it does not.
    """

    seconds: float
    state: Callable[[], object | None]
    said: str


class Watchdog:
    """Looks at what is watched, once per `turn` seconds, and ends the process with code 1 when something stands.

    Args:
        hard: seconds after which the timer in C ends a process in which no other thread has had its turn.
    """

    def __init__(self, watched: list[Watched], hard: float, turn: float = 1.0) -> None:
        self._watched = watched
        self._hard = hard
        self._turn = turn
        self._seen: list[tuple[object | None, float]] = [(None, 0.0)] * len(watched)
        self._ended = threading.Event()
        self._main = threading.get_ident()

    def start(self) -> None:
        """To be called from the thread of the event loop."""
        self._main = threading.get_ident()
        self._arm()
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def retire(self, seconds: float) -> None:
        """The process is ending, and something else sees to it that it does within `seconds`: if that hangs too, C."""
        self._ended.set()
        faulthandler.dump_traceback_later(seconds + _LAST_WORDS, exit=True)

    def _arm(self) -> None:
        """Wind the timer in C, which writes the stacks of all threads to standard error and ends with code 1."""
        faulthandler.dump_traceback_later(self._hard, exit=True)

    def _run(self) -> None:
        while not self._ended.wait(self._turn):
            self._arm()
            if (said := self.look()) and not self._ended.is_set():
                self._end(said)

    def look(self) -> str | None:
        """One turn: what is wrong, or None."""
        for number, watched in enumerate(self._watched):
            state = watched.state()
            before, stood = self._seen[number]
            stood = stood + self._turn if state is not None and state == before else 0.0
            self._seen[number] = (state, stood)
            if stood >= watched.seconds:
                return f"{watched.said} for {watched.seconds:g} s"
        return None

    def _end(self, said: str) -> NoReturn:
        # The log may hang as well: whoever holds its lock may be what hangs.
        timer = threading.Timer(_LAST_WORDS, os._exit, (1,))
        timer.daemon = True
        timer.start()
        log.critical("stopping", error=f"{said}; it was at {self._place()}", error_type="Stuck")
        os._exit(1)

    def _place(self) -> str:
        """Return the place of the event loop: code only, no data."""
        frame = sys._current_frames().get(self._main)
        places: list[str] = []
        while frame is not None and len(places) < 3:
            places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}")
            frame = frame.f_back
        return " < ".join(places) or "no known place"
