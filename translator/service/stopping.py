"""Stop the process, either gracefully within a time limit, or immediately after an error."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable

import faust
import structlog

from translator.service.delivery.base import Delivery
from translator.service.watchdog import Watchdog

log = structlog.get_logger("translator")

_FATAL_EXIT_SECONDS = 10


class BoundedStopApp(faust.App):
    """A Faust app that stops within `stop_seconds`, even if records are undelivered. A supervisor's grace period must
    be longer.
    """

    stop_seconds: float
    watchdog: Watchdog
    owned: Callable[[int], object]
    """Called with the number of assigned partitions once their positions are set."""
    ending = False  # after an error, less time is available than for a graceful stop
    placed = False  # the group has made an assignment, even if it is empty
    turns = 0  # iterations of the event loop that include our own work

    def on_rebalance_end(self) -> None:
        super().on_rebalance_end()
        self.placed = True
        self.owned(len(self.consumer.assignment()))

    async def stop(self) -> None:
        if not self.ending:
            self.watchdog.retire(self.stop_seconds)
            exit_within(self.stop_seconds, f"it did not stop within {self.stop_seconds:g} s")
        await super().stop()


class FailStop:
    """Handles a fatal error: nothing more is produced, acknowledged or committed, and the process exits with code 1."""

    def __init__(self, app: BoundedStopApp, delivery: Delivery) -> None:
        self._app = app
        self._delivery = delivery
        self.dead = False
        self._crash: asyncio.Task[None] | None = None  # kept here because the loop holds only a weak reference

    async def trigger(self, error: BaseException) -> None:
        """Stop the process; does not return."""
        self.stop_work(error)
        await asyncio.Event().wait()

    def stop_work(self, error: BaseException) -> None:
        """Stop all of the process's output, and exit within this many seconds.

        The process leaves the group first, unless records are in flight. In that case, the group must first notice that
        the process is gone, which takes a session timeout. By then, the records in flight have either arrived or been
        lost.
        """
        if self.dead:
            return
        self.dead = True
        log.critical("stopping", error=str(error), error_type=type(error).__name__, exit_code=1, exc_info=error)
        leaves = not self._delivery.may_still_write
        self._delivery.fail_stop()
        self._app.ending = True
        self._app.watchdog.retire(_FATAL_EXIT_SECONDS)
        exit_within(_FATAL_EXIT_SECONDS)
        if leaves:
            self._crash = asyncio.get_running_loop().create_task(self._app.crash(error))


def exit_within(seconds: float, error: str | None = None) -> None:
    """Exit with code 1 after this time, and log the error if one is given.

    Without brokers, Faust's own shutdown never ends, because its consumer thread hangs in LeaveGroup. A hard exit loses
    nothing, because the offsets of undelivered records are not committed.
    """

    def end() -> None:
        if error is not None:
            log.critical("stopping", error=error, error_type="Stuck", exit_code=1)
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
