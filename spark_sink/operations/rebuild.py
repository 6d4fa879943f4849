"""Rebuild one table from the canonical topic, slice by slice between batches, with the code that applies batches.

The table is parked during the rebuild. The new table is marked with the rebuild's number, and each slice has a marker,
as a batch does. Therefore, an interrupted rebuild resumes where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import msgspec

from cdc_core.envelope import TableSchema
from cdc_core.table_id import TableId
from spark_sink.apply.ddl_passes import DriverWork, SeenRequests, merge_reports
from spark_sink.apply.destinations import Destination
from spark_sink.apply.driver import Fulfilment, TaskRunner
from spark_sink.apply.rejects import MAX_SEGMENTS
from spark_sink.apply.table_commits import commit_app
from spark_sink.apply.worker import Task
from spark_sink.events.shared_tables import SEVERAL
from spark_sink.model.event import Event
from spark_sink.schema.evolution import Create, Plan
from spark_sink.schema.table_naming import CUT
from spark_sink.schema.table_spec import TableSpec
from spark_sink.table_report import Conflict, Parked, TableReport
from spark_sink.tables.protocols import ChangelogTable, HistoryTable, MirrorTable

Records = TypeVar("Records", covariant=True)

Fulfil = Callable[[DriverWork, Sequence[TableReport]], Fulfilment]

Offsets = Mapping[int, int]

# The escape sequence for a character that cannot occur in folder names: see TablePattern.
_ESCAPED = re.compile(r"~([0-9a-f]+)~")

# The approximate number of records per slice, over all partitions: twice as many as in a first batch.
SLICE = 100_000


class TopicAgain(Protocol[Records]):
    """Rereads ranges of the canonical topic."""

    def begins(self) -> Offsets:
        """Return the first available offset in each partition."""

    def read(self, begin: Offsets, end: Offsets) -> Records:
        """Return the records in each partition from `begin` up to but excluding `end`, in the same format as a
        batch.
        """


@dataclass(frozen=True)
class RebuildTask(Task):
    """The task that rebuilds one table. The table's first event creates it.

    Args:
        target: the table; records for other tables are ignored.
        built: the new table's marker. A table without this marker is the old table, and counts as missing.
    """

    target: str = ""
    built: str = ""

    def _takes(self, place: Destination) -> bool:
        return place.table is not None and place.name == self.target

    def _opened(self, place: Destination, table_id: TableId) -> MirrorTable | ChangelogTable | HistoryTable | None:
        before = self.tables.open(place.name)
        if before is None or before.shape.built == self.built:
            return super()._opened(place, table_id)
        if before.shape.table.source != SEVERAL:
            super()._opened(place, table_id)  # rejects a table that belongs to another source table
        return None

    def _planned(
        self,
        table_id: TableId,
        table: MirrorTable | ChangelogTable | HistoryTable | None,
        events: Sequence[Event],
        form: TableSpec,
        filled: Sequence[TableSchema],
    ) -> Plan | None:
        plan = super()._planned(table_id, table, events, form, filled)
        if plan is None or not isinstance(plan.step, Create):
            return plan
        return plan._replace(step=Create(msgspec.structs.replace(plan.step.shape, built=self.built)))


def slices(begin: Offsets, end: Offsets, size: int) -> Iterator[tuple[int, Offsets, Offsets]]:
    """Cut the offsets between `begin` and `end` at multiples of `size`. Return each slice's number, the offsets at
    which it begins, and the offsets at which it ends.

    The cuts do not depend on the end of the topic, so a slice's number can mark its commits.
    """
    open = {partition: last for partition, last in end.items() if last > begin.get(partition, 0)}
    first = min((begin.get(partition, 0) // size for partition in open), default=0)
    last = max((offset - 1 for offset in open.values()), default=-1) // size
    for number in range(first, last + 1):
        starts = {partition: max(begin.get(partition, 0), number * size) for partition in open}
        ends = {partition: min(offset, (number + 1) * size) for partition, offset in open.items()}
        some = [partition for partition in open if starts[partition] < ends[partition]]
        if some:
            yield number, {one: starts[one] for one in some}, {one: ends[one] for one in some}


def slices_done(table: MirrorTable | ChangelogTable | HistoryTable | None, task: RebuildTask) -> int:
    """Return the number of the last slice with a commit in the table, or 0. The slice may be incomplete."""
    if table is None or table.shape.built != task.built:
        return 0
    return (table.applied(commit_app(task.app, task.target, table.shape)) or 0) // MAX_SEGMENTS


class SliceDone(msgspec.Struct, frozen=True):
    """The reports for a slice, and the reason if the table rejected the slice."""

    reports: Sequence[TableReport]
    refused: str | None


def apply_slice(runner: TaskRunner[Any], records: Any, task: RebuildTask, fulfil: Fulfil) -> SliceDone:
    """Apply a slice's records to the table.

    Args:
        task: a task that has the slice number in place of a batch number.
        fulfil: does the work that the reports request.
    """
    route = _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), task.target).lower()
    # If the name was cut, its route is not known here.
    carried = set() if CUT in task.target else {route}
    # Java and Python convert some letters to lower case differently.
    only = carried if carried and route.isascii() else None
    runs = [runner.batch(records, task, carried, {}, only)]
    seen = SeenRequests()
    while True:
        # The configuration changed after this rebuild had created its table, so the table is created again.
        conflicts = [report.outcome.message for report in runs[-1] if isinstance(report.outcome, Conflict)]
        if conflicts:
            return SliceDone([], conflicts[0])
        work = DriverWork.of(runs[-1])
        if not work:
            break
        done = fulfil(work.without(seen.repeated(runs[-1])), runs[-1])
        task = replace(task, refused={**task.refused, **done.refused}, spelled={**task.spelled, **done.spelled})
        carried |= work.carried
        runs[-1] = done.reports
        runs.append(runner.batch(records, task, carried, {}, done.again) if done.again else [])
    reports = [report for report in merge_reports(runs) if report.table == task.target]
    refused = (report.outcome.refusal for report in reports if isinstance(report.outcome, Parked))
    return SliceDone(reports, next(refused, None))
