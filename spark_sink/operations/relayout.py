"""Give a table the configured layout while other tables continue.

During the rewrite, which runs in its own thread, the table is parked. The table's property records when a change begins
and ends. An interrupted command can therefore be repeated safely, even with another configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol

import structlog

from spark_sink.control_tables.batches import ControlTables
from spark_sink.control_tables.requests import RequestAnswer
from spark_sink.errors import FatalError, Reason, Refused
from spark_sink.tables.table_errors import told

log = structlog.get_logger()

# How long a round of commands waits for a rewrite. A short rewrite then needs no second round.
_LOOK_SECONDS = 0.5


class LayoutChanges(Protocol):
    """Changes the layouts of tables."""

    def differences(self, name: str) -> Sequence[str]:
        """Return the settings in which a table differs from its configured layout."""

    def rewrite(self, name: str) -> None:
        """Give a table its configured layout."""


class Relayout:
    """Runs one rewrite at a time.

    Args:
        resume: replays a table's parked events, possibly in several rounds.
        changed: called after a table was parked.
    """

    def __init__(
        self,
        changes: LayoutChanges,
        control: ControlTables,
        resume: Callable[[str], RequestAnswer],
        changed: Callable[[], None],
    ) -> None:
        self._changes = changes
        self._control = control
        self._resume = resume
        self._changed = changed
        self._running: dict[str, Future[None]] = {}
        # The result of a rewrite whose table still has to be resumed; an error if the rewrite failed.
        self._results: dict[str, str | FatalError] = {}
        self._pool = ThreadPoolExecutor(1, "relayout")

    def rewriting(self) -> frozenset[str]:
        """Return the tables that nothing else may write at the moment."""
        return frozenset(self._running)

    def __call__(self, target: str, argument: str | None) -> RequestAnswer:
        if target in self._results:
            return self._end(target)
        if target not in self._running:
            try:
                found = self._changes.differences(target)
            except Exception as error:
                cause = self._control.held().get(target)
                if cause is None or cause.reason != Reason.RELAYOUT:
                    raise
                # An earlier attempt was interrupted, so the table must not stay parked.
                self._results[target] = FatalError(_why(error))
                return self._end(target)
            if found and self._running:
                return RequestAnswer(f"it waits for {', '.join(self._running)}, whose files are being rewritten", False)
            if not found:
                self._results[target] = "it has the configured layout"
                return self._end(target)
            self._begin(target, found)
        future = self._running[target]
        wait([future], _LOOK_SECONDS)
        if not future.done():
            return RequestAnswer("its files are being rewritten", ended=False)
        del self._running[target]
        self._results[target] = _result(future)
        return self._end(target)

    def _begin(self, target: str, found: Sequence[str]) -> None:
        if target not in self._control.held():
            detail = "its files are being rewritten in the configured layout; its events wait until then"
            self._control.parked.park(target, Reason.RELAYOUT, detail)
            self._changed()
        log.info("layout change started", table=target, differences=list(found))
        self._running[target] = self._pool.submit(self._changes.rewrite, target)

    def _end(self, target: str) -> RequestAnswer:
        """Resume the table, unless it was parked for another reason."""
        cause, result = self._control.held().get(target), self._results[target]
        answer = RequestAnswer("no event was parked" if cause is None else f"it stays parked ({cause.reason})")
        if cause is not None and cause.reason == Reason.RELAYOUT:
            try:
                answer = self._resume(target)
            except Exception as error:
                del self._results[target]
                if isinstance(error, FatalError):
                    raise FatalError(f"{result}; {error}") from None
                raise
        if answer.ended:
            del self._results[target]
            if isinstance(result, FatalError):
                raise result
        return RequestAnswer(f"{result}; {answer.result}", ended=answer.ended)


def _result(future: Future[None]) -> str | FatalError:
    error = future.exception()
    if error is None:
        return "rewritten in the configured layout"
    if isinstance(error, Refused):
        return FatalError(f"the layout was not changed: {error}")
    return FatalError(f"the layout may be partly changed; once the cause is fixed, run relayout again: {_why(error)}")


def _why(error: BaseException) -> str:
    if isinstance(error, Refused | FatalError):
        return str(error)
    return told(error) if isinstance(error, Exception) else type(error).__name__
