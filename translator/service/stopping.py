"""Ends of the process: within its time in order, and at once after an error."""

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
    """Ends within `stop_seconds`, delivered or not: a supervisor's grace period must be longer."""

    stop_seconds: float
    watchdog: Watchdog
    owned: Callable[[int], object]
    """Is told of how many partitions were assigned, when they are placed."""
    ending = False  # after an error: less time is left than for an end in order
    placed = False  # what the group has assigned, be it nothing, at least once
    turns = 0  # of the event loop, as far as our own work sees them

    def on_rebalance_end(self) -> None:
        super().on_rebalance_end()
        self.placed = True
        self.owned(len(self.consumer.assignment()))

    async def stop(self) -> None:
        if not self.ending:
            self.watchdog.retire(self.stop_seconds)
            exit_within(self.stop_seconds)
        await super().stop()


class FailStop:
    """After an error nothing is produced, acknowledged or committed, and the process ends with code 1."""

    def __init__(self, app: BoundedStopApp, delivery: Delivery) -> None:
        self._app = app
        self._delivery = delivery
        self.dead = False
        self._crash: asyncio.Task[None] | None = None  # kept: the loop alone would forget it

    async def trigger(self, error: BaseException) -> None:
        """Ends the process; does not return."""
        self.stop_work(error)
        await asyncio.Event().wait()

    def stop_work(self, error: BaseException) -> None:
        """From here on nothing leaves the process, and it ends within seconds.

        It leaves the group before, unless records are under way: the group has to miss it first, which takes a session,
        and by then they have arrived or never will.
        """
        if self.dead:
            return
        self.dead = True
        log.critical("stopping", error=str(error), error_type=type(error).__name__, exc_info=error)
        leaves = not self._delivery.may_still_write
        self._delivery.fail_stop()
        self._app.ending = True
        self._app.watchdog.retire(_FATAL_EXIT_SECONDS)
        exit_within(_FATAL_EXIT_SECONDS)
        if leaves:
            self._crash = asyncio.get_running_loop().create_task(self._app.crash(error))


def exit_within(seconds: float) -> None:
    """Ends the process with code 1 after that time.

    With the broker gone, Faust's own way out never ends (its consumer thread hangs in LeaveGroup). A hard exit loses
    nothing: what is not delivered is not committed.
    """
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()
