"""Reload a table without showing the load to readers. The load and all later changes replace the table's rows in one
commit.

From `begin` on, the table is parked, so its events wait. `end` copies the table to a shadow, applies the events to it,
and deletes the rows that they did not touch. The shadow's rows then replace those of the table. The replacing commit
has a marker. Until that commit, nothing but the shadow has changed, so an interrupted `end` can start again.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import structlog

from spark_sink.apply.ddl_passes import DriverWork
from spark_sink.apply.driver import Applier
from spark_sink.apply.existing_tables import check_state, copy_refusal
from spark_sink.apply.table_commits import commit_app
from spark_sink.control_tables.batches import ControlTables
from spark_sink.control_tables.requests import RequestAnswer
from spark_sink.errors import FatalError, Reason, unknown
from spark_sink.events.shared_tables import SEVERAL
from spark_sink.operations.copies import as_table
from spark_sink.operations.resume import resume
from spark_sink.operations.sweep import reached_positions, sweep_unchanged
from spark_sink.schema.table_naming import shadow_of
from spark_sink.table_report import Done, NeedsSpark, TableCounters, TableReport
from spark_sink.tables.changes import Marker
from spark_sink.tables.protocols import ChangelogTable, HistoryTable, MirrorTable, Tables

log = structlog.get_logger()

STEPS = ("begin", "end", "cancel")


class ShadowTables(Protocol):
    """The copies that are filled before they replace the tables; see `Shadows`."""

    def copy(self, name: str) -> None: ...

    def swap(self, name: str, marker: Marker) -> None: ...

    def drop(self, name: str) -> None: ...


class Reload:
    """Runs the command between batches.

    Args:
        replay: applies a table's waiting events to the table itself, possibly in several rounds.
        changed: called after a table was parked or resumed.
        limit: the approximate number of events to apply before the next batch.
    """

    def __init__(
        self,
        applier: Applier[Any],
        tables: Tables,
        control: ControlTables,
        shadows: ShadowTables,
        replay: Callable[[str], RequestAnswer],
        changed: Callable[[], None],
        limit: int,
    ) -> None:
        self._applier = applier
        self._tables = tables
        self._control = control
        self._shadows = shadows
        self._replay = replay
        self._changed = changed
        self._limit = limit
        # The last turn that this process has applied to a shadow, and the number of events.
        self._through: dict[str, int] = {}
        self._events: Counter[str] = Counter()
        # Reloads that have ended or were cancelled, while some events still have to be applied to their tables.
        self._over: dict[str, str] = {}

    def __call__(self, target: str, argument: str | None) -> RequestAnswer:
        if target in self._over:
            return self._resume(target, self._over[target])
        steps = dict(zip(STEPS, (self._begin, self._end, self._cancel), strict=True))
        if argument not in steps:
            raise FatalError(unknown("step", argument or "", steps))
        return steps[argument](target)

    def _begin(self, target: str) -> RequestAnswer:
        if self._control.parked.reload(target) is not None:
            return RequestAnswer("its reload has already begun")
        cause = self._control.held().get(target)
        if cause is not None:
            raise FatalError(f"it is parked ({cause.reason}); run `spark-sink resume {shlex.quote(target)}` first")
        shape = self._opened(target).shape
        if shape.table.source == SEVERAL:
            raise FatalError("several source tables share it, and a load of one lacks the rows of the others")
        if shape.is_copy:
            raise FatalError(copy_refusal(target))
        detail = "it is being reloaded; readers see its old rows until `spark-sink reload end`"
        self._control.parked.park(target, Reason.RELOAD, detail)
        self._changed()
        log.info("reload begun", table=target)
        return RequestAnswer("begun; its rows stay unchanged until the reload ends")

    def _end(self, target: str) -> RequestAnswer:
        turn = self._control.parked.reload(target)
        if turn is None:
            return self._resume_ended(target)
        done = self._swapped(target, turn)
        if done is not None:
            return self._finish(target, done)
        try:
            if target not in self._through:
                self._check_loaded(target)
                self._shadows.copy(target)
            left = self._apply_next(target)
            if left:
                return RequestAnswer(f"{self._events[target]} events applied aside", ended=False)
            missing = self._sweep(target)
            through = self._through[target]
            self._shadows.swap(target, Marker(self._app(target, self._opened(target)), through))
        except Exception:
            self._forget(target)
            self._shadows.drop(target)
            raise
        log.info("table reloaded", table=target, events=self._events[target], missing=missing)
        return self._finish(target, through, f"{self._events[target]} events applied, {missing} missing rows deleted")

    def _cancel(self, target: str) -> RequestAnswer:
        turn = self._control.parked.reload(target)
        if turn is None:
            return self._resume_ended(target)
        if self._swapped(target, turn) is not None:
            raise FatalError(f"its new rows are already in place; run `spark-sink reload {shlex.quote(target)} end`")
        self._shadows.drop(target)
        self._control.parked.end_reload(target, turn)
        self._changed()
        log.info("reload cancelled", table=target)
        return self._resume(target, "cancelled")

    def _resume_ended(self, target: str) -> RequestAnswer:
        """Apply the events that an interrupted or failed `end` or `cancel` left waiting."""
        cause = self._control.held().get(target)
        if cause is None or cause.reason != Reason.RELOAD_ENDED:
            return RequestAnswer("it is not being reloaded")
        return self._resume(target, "its reload had already ended")

    def _resume(self, target: str, result: str) -> RequestAnswer:
        """Apply the events that are still waiting to the table itself."""
        self._over[target] = result
        try:
            none = RequestAnswer("no events were waiting")
            answer = self._replay(target) if target in self._control.held() else none
        except Exception:
            del self._over[target]
            raise
        if answer.ended:
            del self._over[target]
        return RequestAnswer(f"{result}; {answer.result}", ended=answer.ended)

    def _check_loaded(self, target: str) -> None:
        """Make sure that the table has not been rolled back, and that a load is waiting.

        In a load that began after the reload, all positions are higher than those that the table had reached by then.

        Raises:
            Refused: the table was rolled back or removed.
            FatalError: no load is waiting, or the table would ignore it.
        """
        table = self._opened(target)
        check_state(target, table, self._control.batches.last_seen().get(target))
        reached, is_loaded = reached_positions(table), False
        for scope, pos in self._control.parked.loads(target):
            is_loaded = True
            if pos >= reached.get(scope, ""):
                return
        found = (
            (
                "all events of the load (operation r) have lower positions than the table's newest row; under native "
                "order, a load needs a new epoch"
            )
            if is_loaded
            else "no event of a load (operation r) is waiting"
        )
        raise FatalError(
            f"{found}. Ending the reload would delete every row that has not changed since. Wait for the load, or run "
            f"`spark-sink reload {shlex.quote(target)} cancel`"
        )

    def _apply_next(self, target: str) -> bool:
        """Apply the next waiting events to the shadow. Return whether more are waiting."""
        task, into = self._applier.task(0), shadow_of(target)
        # The new columns must suit the format of the table, although the shadow is a Delta table.
        formats = {**task.rules.formats, into: task.rules.form(target).format}
        task = replace(task, rules=replace(as_table(task.rules, target, into), formats=formats))
        resumed = resume(
            self._applier.runner,
            self._control.parked,
            target,
            task,
            self._applier.fulfil,
            self._limit,
            into=into,
            after=self._through.get(target, -1),
        )
        self._applier.discard()
        if resumed.refused is not None or resumed.through is None:
            raise FatalError(f"its rows are unchanged, and its events still wait: {resumed.refused}")
        self._through[target] = resumed.through
        self._events[target] += sum(report.counters.events for report in resumed.reports)
        return resumed.left

    def _sweep(self, target: str) -> int:
        """Delete the rows of the shadow that no event has touched since the reload began."""
        shadow = self._opened(shadow_of(target))
        count = sweep_unchanged(shadow, self._opened(target), soft=self._applier.rules.soft_deletes)
        if shadow.orders:
            outcome = NeedsSpark(tuple(shadow.orders))
            reports = [TableReport(shadow_of(target), shadow_of(target), 0, outcome, TableCounters())]
            refused = self._applier.fulfil(DriverWork.of(reports), reports).refused
            self._applier.discard()
            if refused:
                raise FatalError(f"its missing rows cannot be deleted: {refused[shadow_of(target)]}")
        return count

    def _swapped(self, target: str, turn: int) -> int | None:
        """If the new rows are in place, return the last turn whose events the table has."""
        table = self._tables.open(target)
        done = None if table is None else table.applied(self._app(target, table))
        return done if done is not None and done > turn else None

    def _finish(self, target: str, through: int, result: str = "the new rows are in place") -> RequestAnswer:
        # Write the manifest before the events are removed, so that anyone who reads the manifest finds each event in
        # the table or among the parked events.
        self._control.batches.write(None, self._as_it_is(target))
        self._shadows.drop(target)
        self._control.parked.remove(target, through)
        self._changed()
        self._forget(target)
        return self._resume(target, result) if target in self._control.held() else RequestAnswer(result)

    def _forget(self, target: str) -> None:
        self._through.pop(target, None)
        self._events.pop(target, None)

    def _as_it_is(self, target: str) -> Sequence[TableReport]:
        return [TableReport(target, target, 0, Done(), TableCounters(), version=self._opened(target).version)]

    def _app(self, target: str, table: MirrorTable | ChangelogTable | HistoryTable) -> str:
        return commit_app(self._control.parked.reload_app, target, table.shape)

    def _opened(self, name: str) -> MirrorTable | HistoryTable:
        table = self._tables.open(name)
        if table is None:
            raise FatalError(f"the table {name} does not exist")
        if isinstance(table, ChangelogTable):
            raise FatalError("it is a changelog, which keeps every event, so a load cannot replace its rows")
        return table
