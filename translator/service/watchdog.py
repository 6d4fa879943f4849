"""Stop a process that hangs, because a supervisor restarts only a process that has exited.

The watchdog is a separate thread, because a blocked event loop cannot watch itself. The watchdog counts its own
iterations, not seconds. A process that is suspended (SIGSTOP, a suspended machine) does not hang. Code that never
releases the interpreter also blocks this thread. A runaway regular expression is one example. A second timer therefore
runs in C.
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
    """A value that has to change from time to time.

    Args:
        seconds: maximum time without a change.
        state: returns None while no progress is expected, and otherwise a value that changes with progress.
        said: describes the problem if the value does not change.
    """

    seconds: float
    state: Callable[[], object | None]
    said: str


class Watchdog:
    """Checks the watched values every `turn` seconds, and exits with code 1 if a value stops changing.

    Args:
        hard: seconds after which the timer in C stops a process in which no other thread can run.
    """

    def __init__(self, watched: list[Watched], hard: float, turn: float = 1.0) -> None:
        self._watched = watched
        self._hard = hard
        self._turn = turn
        self._seen: list[tuple[object | None, float]] = [(None, 0.0)] * len(watched)
        self._ended = threading.Event()
        self._main = threading.get_ident()

    def start(self) -> None:
        """Start watching. Call this from the event loop's thread."""
        self._main = threading.get_ident()
        self._arm()
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def retire(self, seconds: float) -> None:
        """Record that the process is stopping and should end within `seconds`. If the shutdown also hangs, the timer in
        C ends the process.
        """
        self._ended.set()
        faulthandler.dump_traceback_later(seconds + _LAST_WORDS, exit=True)

    def _arm(self) -> None:
        """Reset the timer in C, which writes the stacks of all threads to standard error and exits with code 1."""
        faulthandler.dump_traceback_later(self._hard, exit=True)

    def _run(self) -> None:
        while not self._ended.wait(self._turn):
            self._arm()
            if (said := self.look()) and not self._ended.is_set():
                self._end(said)

    def look(self) -> str | None:
        """Run one check. Returns a description of the problem, or None."""
        for number, watched in enumerate(self._watched):
            state = watched.state()
            before, stood = self._seen[number]
            stood = stood + self._turn if state is not None and state == before else 0.0
            self._seen[number] = (state, stood)
            if stood >= watched.seconds:
                return f"{watched.said} for {watched.seconds:g} s"
        return None

    def _end(self, said: str) -> NoReturn:
        # Logging can hang, too, if the thread that holds its lock hangs.
        timer = threading.Timer(_LAST_WORDS, os._exit, (1,))
        timer.daemon = True
        timer.start()
        log.critical("stopping", error=f"{said}; event loop at {self._place()}", error_type="Stuck", exit_code=1)
        os._exit(1)

    def _place(self) -> str:
        """Return the event loop's current position: only code locations, no data."""
        frame = sys._current_frames().get(self._main)
        places: list[str] = []
        while frame is not None and len(places) < 3:
            places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}")
            frame = frame.f_back
        return " < ".join(places) or "an unknown position"
