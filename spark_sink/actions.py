"""What the commands of operators do: between batches, in the job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import structlog
from pyspark.sql import SparkSession

from spark_sink.apply import Applier
from spark_sink.books import Books
from spark_sink.errors import FatalError
from spark_sink.metrics import Metrics
from spark_sink.replay import resume
from spark_sink.report import Report
from spark_sink.requests import Action, Answer
from spark_sink.sweep import sweep
from spark_sink.tables import Table, Tables

log = structlog.get_logger()


class Actions:
    """Each may be called again after a crash: what is done already is not done twice.

    Args:
        limit: about so many parked events are replayed before the next batch.
    """

    def __init__(
        self,
        spark: SparkSession,
        applier: Applier,
        tables: Tables,
        books: Books,
        metrics: Metrics,
        limit: int,
    ) -> None:
        self._spark = spark
        self._applier = applier
        self._tables = tables
        self._books = books
        self._metrics = metrics
        self._limit = limit
        self._replayed: Counter[str] = Counter()

    def by_name(self) -> Mapping[str, Action]:
        return {"park": self.park, "resume": self.resume, "sweep": self.sweep}

    def park(self, target: str, argument: str | None) -> Answer:
        """Let the events of a table wait from the next batch on."""
        self._known(target)
        if target in self._books.held():
            return Answer("it was parked already")
        self._books.parked.park(target)
        self._changed()
        return Answer("parked")

    def resume(self, target: str, argument: str | None) -> Answer:
        """Replay what waits; when nothing is left, the table is no longer parked."""
        self._known(target)
        if target not in self._books.held():
            return Answer("it was not parked")
        task = self._applier.task(0)
        came = resume(self._spark, self._books.parked, target, task, self._obey, self._limit)
        self._applier.discard()
        if came.reports:
            # Before the events go: whoever reads by the manifest must find them in one of the two.
            self._books.batches.write(None, came.reports)
        if came.through is not None:
            self._books.parked.remove(target, came.through)
        self._changed()
        self._replayed[target] += sum(report.events for report in came.reports)
        told = f"{self._replayed[target]} events replayed"
        if came.left and came.refused is None:
            return Answer(told, ended=False)
        self._replayed.pop(target)
        if came.refused is not None:
            raise FatalError(f"it stays parked: {came.refused}")
        return Answer(told)

    def sweep(self, target: str, argument: str | None) -> Answer:
        """Delete the rows that a reload did not bring again."""
        table = self._tables.open(target)
        if table is None:
            raise FatalError(f"there is no table {target!r}")
        if target in self._books.held():
            raise FatalError(f"{target} is parked: rows that it was sent may wait; resume it first")
        if not isinstance(table, Table):
            raise FatalError(f"{target} is kept in mode {table.shape.mode}; only rows of mode mirror are swept")
        count = sweep(table, argument or "", lambda moment: self._tables.as_of(target, moment))
        report = Report(target, target, 0, 0, orders=list(table.orders), version=table.version)
        if report.orders:
            refused = self._obey([report])
            self._applier.discard()
            if target in refused:
                raise FatalError(f"{target} does not take it: {refused[target]}")
        self._books.batches.write(None, [report])
        return Answer(f"{count} rows deleted")

    def _obey(self, reports: Sequence[Report]) -> Mapping[str, str]:
        return self._applier.obey(reports).refused

    def _changed(self) -> None:
        self._books.changed()
        self._metrics.parked(self._books.held())

    def _known(self, target: str) -> None:
        if target not in self._books.held() and self._tables.open(target) is None:
            raise FatalError(f"there is no table {target!r}")
