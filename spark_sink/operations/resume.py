"""Replay parked events with the usual algorithm, one turn at a time, before newer events of their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa
import structlog

from spark_sink.apply.ddl_passes import DriverWork, SeenRequests, merge_reports
from spark_sink.apply.destinations import Destination
from spark_sink.apply.driver import Fulfilment, TaskRunner
from spark_sink.apply.worker import Applied, Task
from spark_sink.events.grouping import routes
from spark_sink.events.parking import Parking
from spark_sink.table_report import Done, Parked, TableCounters, TableReport
from spark_sink.tables.delta.control_tables import ParkedTables

log = structlog.get_logger()

Fulfil = Callable[[DriverWork, Sequence[TableReport]], Fulfilment]


@dataclass(frozen=True)
class Replay(Task):
    """A task for the turns that are parked under one name. The number of the turn takes the place of the batch number.
    A turn that any process has replayed is therefore not replayed again.

    Args:
        into: the table that the events change instead of their own.
    """

    parking: Parking | None = None
    into: str = ""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process records sorted by turn, partition and offset. Stop after the first turn that fails."""
        for records in routes(batches):
            reports = list(replace(self, batch=int(records.column("route")[0].as_py())).route(records))
            encoded = [msgspec.msgpack.encode(report) for report in reports]
            yield pa.RecordBatch.from_pydict({"report": pa.array(encoded, pa.binary())})
            if not all(isinstance(report.outcome, Done) for report in reports):
                return

    def _applied(self, place: Destination, records: pa.Table, counters: TableCounters) -> Applied:
        return super()._applied(place._replace(name=self.into) if self.into else place, records, counters)


@dataclass(frozen=True)
class Resumed:
    """The progress of a replay. The table contains every turn up to and including `through`, so these turns can be
    removed.
    """

    reports: list[TableReport]
    through: int | None
    left: bool
    refused: str | None


def resume(
    runner: TaskRunner[Any],
    parked: ParkedTables,
    target: str,
    task: Task,
    fulfil: Fulfil,
    limit: int,
    *,
    into: str = "",
    after: int = -1,
) -> Resumed:
    """Replay the turns of a table, oldest first. Replay at least one turn, and about `limit` events.

    Args:
        task: the task that would apply the next batch.
        fulfil: does the work that the reports request.
        into: the table that the events change; by default, their own. Rows that were erased from the target are also
            left out of this table.
        after: the turn after which to begin.
    """
    turns = [one for one in parked.turns(target) if one[0] > after]
    taken, events = 0, 0
    while taken < len(turns) and (taken == 0 or events + turns[taken][1] <= limit):
        events += turns[taken][1]
        taken += 1
    left = taken < len(turns)
    first, last = turns[0][0], turns[taken - 1][0]
    replay = Replay(task.tables, task.pattern, task.catalog, parked.app, 0, task.rules)
    # Events of erased rows are parked again if the topic is read again.
    erased = {**task.erased, into: task.erased.get(target, {})} if into else task.erased
    replay = replace(replay, spelled=task.spelled, last_seen=task.last_seen, into=into, erased=erased)
    runs: list[list[TableReport]] = []
    seen = SeenRequests()
    while events:
        runs.append(runner.turns(parked, target, first, last, replay))
        # The reports for the last turn that was reached. Usually, the turn has a single table.
        ends = [report for report in runs[-1] if report.route == runs[-1][-1].route]
        first = int(ends[0].route)
        work = DriverWork.of(ends)
        refused = next((end.outcome.refusal for end in ends if isinstance(end.outcome, Parked)), None)
        if refused is not None:
            # All turns before this turn are done. This turn is repeated completely.
            reached = merge_reports(runs)
            through = max((int(report.route) for report in reached if int(report.route) < first), default=None)
            return Resumed(reached, through, True, refused)
        if not work:
            break
        done = fulfil(work.without(seen.repeated(ends)), ends)
        runs[-1][-len(ends) :] = done.reports
        replay = replace(replay, refused=done.refused, spelled={**replay.spelled, **done.spelled})
    return Resumed(merge_reports(runs), last, left, None)
