"""The actions behind the commands of operators: between batches, in the job."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from spark_sink.apply.ddl_passes import DriverWork
from spark_sink.apply.driver import Applier
from spark_sink.control_tables.batches import Books
from spark_sink.control_tables.requests import Action, RequestAnswer
from spark_sink.errors import FatalError
from spark_sink.metrics import Metrics
from spark_sink.operations.maintenance import ALL_TABLES, OWN_TABLES, Maintenance
from spark_sink.operations.registration import Registration
from spark_sink.operations.resume import resume
from spark_sink.operations.sweep import sweep
from spark_sink.table_report import Done, NeedsSpark, TableCounters, TableReport
from spark_sink.tables.protocols import MirrorTable, Tables

log = structlog.get_logger()


class Actions:
    """Each may be called again after a crash: what is done already is not done twice.

    Args:
        limit: about so many parked events are replayed before the next batch.
    """

    def __init__(
        self,
        applier: Applier[Any],
        tables: Tables,
        books: Books,
        metrics: Metrics,
        limit: int,
        maintenance: Maintenance,
        registration: Registration | None = None,
    ) -> None:
        self._registration = registration
        self._maintenance = maintenance
        self._left: dict[str, Sequence[str]] = {}
        self._applier = applier
        self._tables = tables
        self._rules = applier.rules
        self._pattern = applier.pattern
        self._books = books
        self._metrics = metrics
        self._limit = limit
        self._replayed: Counter[str] = Counter()

    def by_name(self) -> Mapping[str, Action]:
        return {
            "park": self.park,
            "resume": self.resume,
            "discard": self.discard,
            "sweep": self.sweep,
            "maintain": self.maintain,
            "register": self.register,
        }

    def park(self, target: str, argument: str | None) -> RequestAnswer:
        """Let the events of a table wait from the next batch on."""
        self._known(target)
        if target in self._books.held():
            return RequestAnswer("it was parked already")
        self._books.parked.park(target)
        self._changed()
        return RequestAnswer("parked")

    def resume(self, target: str, argument: str | None) -> RequestAnswer:
        """Replay what waits; when nothing is left, the table is no longer parked."""
        if target not in self._books.held():
            return self._not_parked(target)
        self._check_sources(target)
        task = self._applier.task(0)
        resumed = resume(self._applier.runner, self._books.parked, target, task, self._applier.fulfil, self._limit)
        self._applier.discard()
        if resumed.reports:
            # Before the events go: whoever reads by the manifest must find them in one of the two.
            self._books.batches.write(None, resumed.reports)
        if resumed.through is not None:
            self._books.parked.remove(target, resumed.through)
        self._changed()
        self._replayed[target] += sum(report.counters.events for report in resumed.reports)
        result = f"{self._replayed[target]} events replayed"
        if resumed.left and resumed.refused is None:
            return RequestAnswer(result, ended=False)
        self._replayed.pop(target)
        if resumed.refused is not None:
            raise FatalError(f"it stays parked: {resumed.refused}")
        return RequestAnswer(result)

    def _check_sources(self, target: str) -> None:
        """Make sure that what waits has somewhere to go."""
        for source in self._books.held()[target].sources:
            if self._rules.excludes(source):
                raise FatalError(
                    f"events of {source} wait, which tables.exclude leaves out: `spark-sink discard "
                    f"{shlex.quote(target)}` gives them up; or take it out of tables.exclude, and start the sink again"
                )
            name = self._pattern.target(source)
            if name != target and name in self._books.held():
                raise FatalError(f"events of {source} go to {name}, which is parked itself: resume that first")

    def discard(self, target: str, argument: str | None) -> RequestAnswer:
        """Give up what waits of source tables that are left out."""
        cause = self._books.held().get(target)
        if cause is None:
            return self._not_parked(target)
        excluded = [source for source in cause.sources if self._rules.excludes(source)]
        if not excluded:
            result = ", ".join(map(str, cause.sources)) or "none is known"
            raise FatalError(
                f"tables.exclude leaves none of its source tables out ({result}); no other events are given up"
            )
        self._books.parked.discard(target, excluded)
        self._changed()
        left = self._books.held().get(target)
        return RequestAnswer(f"{cause.events - (left.events if left is not None else 0)} events discarded")

    def sweep(self, target: str, argument: str | None) -> RequestAnswer:
        """Delete the rows that a reload did not bring again."""
        table = self._tables.open(target)
        if table is None:
            raise FatalError(f"there is no table {target!r}")
        if target in self._books.held():
            raise FatalError(f"{target} is parked: rows that it was sent may wait; resume it first")
        if not isinstance(table, MirrorTable):
            raise FatalError(f"{target} is kept in mode {table.shape.mode}; only rows of mode mirror are swept")
        count = sweep(table, argument or "", lambda moment: self._tables.as_of(target, moment))
        outcome = NeedsSpark(tuple(table.orders)) if table.orders else Done()
        reports = [TableReport(target, target, 0, outcome, TableCounters(), version=table.version)]
        if work := DriverWork.of(reports):
            done = self._applier.fulfil(work, reports)
            self._applier.discard()
            if target in done.refused:
                raise FatalError(f"{target} does not take it: {done.refused[target]}")
            reports = done.reports
        self._books.batches.write(None, reports)
        return RequestAnswer(f"{count} rows deleted")

    def maintain(self, target: str, argument: str | None) -> RequestAnswer:
        """Make the files of a table fewer, or of all of them; of many tables in several rounds."""
        if target != ALL_TABLES and target not in OWN_TABLES:
            self._known(target)
        names = self._left.get(target) or (self._maintenance.tables() if target == ALL_TABLES else [target])
        done, left = self._maintenance.by_hand(names)
        self._left[target] = left
        if left:
            return RequestAnswer(f"{len(left)} tables are left", ended=False)
        return RequestAnswer(", ".join(f"{one.step} {one.table}" for one in done) or "nothing to do")

    def register(self, target: str, argument: str | None) -> RequestAnswer:
        """Make a table known to the catalog, or all of them."""
        if self._registration is None:
            raise FatalError("the configuration has no catalog: no table is registered anywhere")
        if target != ALL_TABLES:
            self._known(target)
        names = self._books.batches.tables() if target == ALL_TABLES else {target}
        new, refused = self._registration.by_hand(names)
        if refused:
            raise FatalError("; ".join(f"{name}: {why}" for name, why in refused.items()))
        return RequestAnswer(f"{len(new)} registered, {len(names) - len(new)} were known")

    def _changed(self) -> None:
        self._books.changed()
        self._metrics.parked(self._books.held())

    def _not_parked(self, target: str) -> RequestAnswer:
        if not _is_source(target):
            self._known(target)
        return RequestAnswer("it was not parked")

    def _known(self, target: str) -> None:
        if target not in self._books.held() and (_is_source(target) or self._tables.open(target) is None):
            raise FatalError(f"there is no table {target!r}")


def _is_source(name: str) -> bool:
    """Tell whether it is the name of a source table, under which events wait where another one has its own."""
    return "/" in name
