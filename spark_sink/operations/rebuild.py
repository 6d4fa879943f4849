"""Write one table from the canonical topic. Slices are written between batches, with the code that applies batches.

The new table is marked with the rebuild that created it. Like a batch, each slice has a marker. An interrupted rebuild
therefore resumes where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import structlog

from cdc_core.envelope import TableSchema
from cdc_core.table_id import TableId
from spark_sink.apply.ddl_passes import DriverWork, SeenRequests, merge_reports
from spark_sink.apply.destinations import Destination
from spark_sink.apply.driver import Applier, Fulfilment, TaskRunner
from spark_sink.apply.rejects import MAX_SEGMENTS
from spark_sink.apply.table_commits import commit_app
from spark_sink.apply.worker import Applied, Task
from spark_sink.config.table_rules import TableRules
from spark_sink.events.shared_tables import SEVERAL, is_same
from spark_sink.model.event import Event
from spark_sink.schema.evolution import Create, Plan
from spark_sink.schema.table_naming import CUT
from spark_sink.schema.table_spec import TableSpec
from spark_sink.table_report import Conflict, Parked, TableCounters, TableReport
from spark_sink.tables.protocols import ChangelogTable, HistoryTable, MirrorTable, Tables

log = structlog.get_logger()

Records = TypeVar("Records", covariant=True)

Fulfil = Callable[[DriverWork, Sequence[TableReport]], Fulfilment]

Offsets = Mapping[int, int]

# The escape sequence for a character that cannot occur in folder names: see TablePattern.
_ESCAPED = re.compile(r"~([0-9a-f]+)~")

# The approximate number of records per slice, over all partitions: twice as many as in a first batch.
SLICE = 100_000


class OffsetRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Consecutive records in one partition, including the last one."""

    partition: int
    first: int
    last: int


class TopicAgain(Protocol[Records]):
    """Rereads ranges of the canonical topic."""

    def begins(self) -> Offsets:
        """Return the first available offset in each partition."""

    def read(self, begin: Offsets, end: Offsets) -> Records:
        """Return the records of each partition from `begin` up to, but not including, `end`, in the format of a
        batch.
        """


@dataclass(frozen=True)
class RebuildTask(Task):
    """The task that rebuilds one table. The first event of the table creates it.

    Args:
        target: the table; records for other tables are ignored.
        built: the new table's marker. A table without this marker is the old one, and counts as missing.
        into: the name under which the new table is written. By default, it replaces the table.
        owner: the source table whose records are read. None stands for any source table that the name belongs to.
        without: the records to leave out.
    """

    target: str = ""
    built: str = ""
    into: str = ""
    owner: TableId | None = None
    without: Sequence[OffsetRange] = ()

    @property
    def name(self) -> str:
        """The new table's name."""
        return self.into or self.target

    def route(self, records: pa.Table) -> Iterator[TableReport]:
        kept = records.filter(pc.invert(_within(records, self.without))) if self.without else records
        if kept.num_rows:
            yield from super().route(kept)

    def _takes(self, place: Destination) -> bool:
        if place.table is None or place.name != self.target:
            return False
        return self.owner is None or is_same(place.table, self.owner)

    def _applied(self, place: Destination, records: pa.Table, counters: TableCounters) -> Applied:
        return super()._applied(place._replace(name=self.name, owner=self.owner or place.owner), records, counters)

    def _opened(self, place: Destination, table_id: TableId) -> MirrorTable | ChangelogTable | HistoryTable | None:
        table = self.tables.open(place.name)
        is_new = table is not None and table.shape.built == self.built
        if table is None or is_new or table.shape.table.source != SEVERAL:
            self._check_owner(place, table_id, table)
        return table if is_new else None

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


def _within(records: pa.Table, ranges: Sequence[OffsetRange]) -> pa.ChunkedArray:
    """Return, for each record, whether it is in one of the ranges."""
    partitions, offsets = records.column("partition"), records.column("offset")
    found = (
        pc.and_(
            pc.equal(partitions, one.partition),
            pc.and_(pc.greater_equal(offsets, one.first), pc.less_equal(offsets, one.last)),
        )
        for one in ranges
    )
    return reduce(pc.or_, found)


def slices(begin: Offsets, end: Offsets, size: int) -> Iterator[tuple[int, Offsets, Offsets]]:
    """Cut the offsets between `begin` and `end` at multiples of `size`. Return each slice's number, start offsets and
    end offsets.

    The cuts do not depend on the end of the topic, so the number of a slice can mark its commits.
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
    return (table.applied(commit_app(task.app, task.name, table.shape)) or 0) // MAX_SEGMENTS


class SliceDone(msgspec.Struct, frozen=True):
    """The reports of a slice, the reason if the table rejected the slice, and the number of slices that remain."""

    reports: Sequence[TableReport]
    refused: str | None
    left: int = 0


class TopicSlices:
    """Applies the topic's slices to new tables, one slice per call.

    Args:
        topic: the topic from which tables are rebuilt.
    """

    def __init__(self, applier: Applier[Any], tables: Tables, topic: TopicAgain[Any]) -> None:
        self._applier = applier
        self._tables = tables
        self._topic = topic
        # The last slice that this process has applied, by the app of its commits.
        self._done: dict[str, int] = {}

    def begins(self) -> Offsets:
        """Return the first available offset in each partition."""
        return self._topic.begins()

    def task(self, target: str, pipeline: str, built: str, partitions: int) -> tuple[RebuildTask, int]:
        """Return the task that rebuilds a table, and the number of offsets per slice.

        Args:
            pipeline: the pipeline, which marks the commits together with `built`.
            partitions: the number of partitions to read.
        """
        size = max(1, SLICE // max(1, partitions))
        task = self._applier.task(0)
        rebuild = RebuildTask(
            *(
                task.tables,
                task.pattern,
                task.catalog,
                f"{pipeline}/rebuild:{built}:{size}",
                0,
                emptied_by_drops(task.rules),
            ),
            parking=None,
            spelled=task.spelled,
            erased=task.erased,
            target=target,
            built=built,
        )
        return rebuild, size

    def apply_next(self, task: RebuildTask, ends: Offsets, size: int) -> SliceDone:
        """Apply the next slice, if there is one."""
        begins, done = self._topic.begins(), self._done.get(task.app)
        done = slices_done(self._tables.open(task.name), task) - 1 if done is None else done
        left = [one for one in slices(begins, ends, size) if one[0] > done]
        found = SliceDone([], None)
        if left:
            number, begin, end = left[0]
            records = self._topic.read(begin, end)
            found = apply_slice(self._applier.runner, records, replace(task, batch=number), self._applier.fulfil)
            self._applier.discard()
            self._done[task.app] = number
        if len(left) < 2 or found.refused is not None:
            self._done.pop(task.app, None)
        return msgspec.structs.replace(found, left=max(0, len(left) - 1))


def missing_beginning(target: str, begins: Offsets) -> str:
    """If the beginning of the topic has been deleted, log a warning, and return it for the command's result."""
    late = {partition: offset for partition, offset in sorted(begins.items()) if offset > 0}
    if not late:
        return ""
    log.warning("rebuilt table may be missing rows", table=target, begins=late)
    first = ", ".join(f"{partition}: {offset}" for partition, offset in late.items())
    return (
        f"; THE BEGINNING OF THE TOPIC HAS BEEN DELETED (first offsets by partition: {first}): rows that no later "
        "event changed are missing, and others may be incomplete. Also reload the table from the source"
    )


def unaccounted(count: int) -> str:
    """If statements in the topic changed rows without sending events, return a warning for the command's result."""
    if not count:
        return ""
    return (
        f"; statements changed rows without sending events: {count}. Unless a later load included those rows, the "
        "table differs from its source; reload it from the source"
    )


def emptied_by_drops(rules: TableRules) -> TableRules:
    """Return the rules for a table that is rebuilt from the topic, in which rows from before a drop stay deleted."""
    keeps = rules.statements.drops == "keep"
    return rules if keeps else replace(rules, statements=replace(rules.statements, drops="empty"))


def apply_slice(runner: TaskRunner[Any], records: Any, task: RebuildTask, fulfil: Fulfil) -> SliceDone:
    """Apply a slice's records to the table.

    Args:
        task: a task that has the number of the slice in place of a batch number.
        fulfil: does the work that the reports request.
    """
    route = _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), task.target).lower().lstrip(".")
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
    reports = [report for report in merge_reports(runs) if report.table == task.name]
    refused = (report.outcome.refusal for report in reports if isinstance(report.outcome, Parked))
    return SliceDone(reports, next(refused, None))
