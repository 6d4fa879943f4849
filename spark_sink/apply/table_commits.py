"""Commit one table's events in a batch: its segments in order, each at most once."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spark_sink.apply.changelog import record
from spark_sink.apply.history import HistoryChanges, build_versions, end_versions
from spark_sink.apply.mirror import MirrorChanges, fold_into_changes
from spark_sink.apply.rejects import MAX_SEGMENTS, RejectedEvents
from spark_sink.apply.statements import answer
from spark_sink.apply.truncate import truncate
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import Reason, Refused
from spark_sink.events.envelope_fields import details
from spark_sink.events.event_columns import apart, newest
from spark_sink.events.grouping import typed_keys
from spark_sink.events.quarantine import Rejected
from spark_sink.events.wire_format import RawRecordMissing
from spark_sink.model.event import (
    APART,
    DUPLICATE,
    REFUSAL,
    STATEMENT,
    Event,
)
from spark_sink.schema.evolution import Plan, TableShape
from spark_sink.table_report import Done, NeedsRecords, NeedsSpark, Parked, TableCounters
from spark_sink.tables.changes import Marker
from spark_sink.tables.protocols import ChangelogTable, HistoryTable, MirrorTable, is_changelog, is_mirror
from spark_sink.tables.table_errors import as_refusal

# Marks the day up to which the table has dropped its tombstones. The mark does not depend on the checkpoint.
FORGOTTEN = "cdc.forgotten"

DAY = 24 * 60 * 60 * 1_000_000


@dataclass(frozen=True)
class Commits:
    """Writes one table, and counts what is written.

    Args:
        rejects: handles the events that the table rejects.
        now: the time of writing (microseconds, UTC).
        refused_by_spark: why Spark could not make the table's next commit in this batch.
        parks_errors: whether an unexpected error also parks the table, instead of being raised.
    """

    table: MirrorTable | ChangelogTable | HistoryTable
    plan: Plan
    rules: TableRules
    rejects: RejectedEvents
    now: int
    refused_by_spark: str | None
    parks_errors: bool = False

    def write(
        self, segments: Sequence[Sequence[Event]], rejected: Iterable[Rejected]
    ) -> tuple[Done | NeedsRecords | NeedsSpark | Parked, TableCounters]:
        """Continue after the table's last marker, until all segments are written or a step needs the driver. Count the
        results.
        """
        done = self.table.applied(self._marker(0).app)
        broken = _by_segment(rejected, segments)
        counters = TableCounters()
        try:
            if is_mirror(self.table):
                self.table.keep_deleted_rows(apart=not self.rules.soft_deletes)
                if self.table.orders:
                    return self._move(segments, broken), counters
            for number, segment in enumerate(segments):
                if done is not None and done >= self._marker(number).version:
                    counters += TableCounters(skipped=1)
                    continue
                if self.refused_by_spark is not None:
                    return self._refuse_ordered_commit(number, self.refused_by_spark, segments, broken), counters
                try:
                    # Apply one part at a time, so that the parts before an error are counted.
                    for part in self._commit(number, segment, broken[number], sum(counters.rejected.values())):
                        counters += part
                except Exception as error:
                    if not (self.parks_errors or isinstance(error, Refused)):
                        raise
                    refusal = as_refusal(error, self.rejects.name, self.rejects.tables)
                    rest = (event for later in segments[number:] for event in later)
                    unread = (one for later in broken[number:] for one in later)
                    return self.rejects.refuse(number, refusal, rest, unread), counters
                if self.table.orders:
                    return NeedsSpark(tuple(self.table.orders), more=number + 1 < len(segments)), counters
        except RawRecordMissing:
            return NeedsRecords(), counters
        return Done(), counters

    def _marker(self, number: int) -> Marker:
        """Return the commit marker for a segment. A rebuilt table has markers of its own, because it does not contain
        the commits from the table that it replaces.
        """
        return self.rejects.marker(number)._replace(
            app=commit_app(self.rejects.app, self.rejects.name, self.table.shape)
        )

    def _move(self, segments: Sequence[Sequence[Event]], broken: Sequence[Sequence[Rejected]]) -> NeedsSpark | Parked:
        """Request the move of the table's deleted rows, which comes before its events. If the driver's attempt failed,
        park the table with all events. None of them has been written to quarantine.
        """
        if self.refused_by_spark is None:
            return NeedsSpark(tuple(self.table.orders), more=True)
        refusal = Refused(Reason.TABLE_REFUSED, self.refused_by_spark)
        events = (event for segment in segments for event in segment)
        return self.rejects.refuse(0, refusal, events, (one for part in broken for one in part))

    def _refuse_ordered_commit(
        self, number: int, why: str, segments: Sequence[Sequence[Event]], broken: Sequence[Sequence[Rejected]]
    ) -> Parked:
        """Park the table after the driver failed to make this commit. The commit's invalid events are already in
        quarantine. Invalid events that leave a gap in their row are parked as well. Otherwise, the row would look
        complete after a resume.
        """
        segment = segments[number]
        keyless = typed_keys(segment, self.plan.shape)[1].keys() if segment and segment[0].op not in APART else set()
        rest = [event for event in segment if not keyless & {event.key, event.key_old}]
        rest += [event for later in segments[number + 1 :] for event in later]
        unread = (one for later in broken[number + 1 :] for one in later)
        return self.rejects.refuse(number, Refused(Reason.TABLE_REFUSED, why), rest, unread)

    def _commit(
        self, number: int, segment: Sequence[Event], rejected: Sequence[Rejected], before: int
    ) -> Iterator[TableCounters]:
        """Write one segment. Rejected events are quarantined first, so that a crash cannot lose them.

        Args:
            before: the number of events that earlier segments rejected.
        """
        table, truncates = self.table, bool(segment) and segment[0].op == "t"
        if segment and segment[0].op in (STATEMENT, REFUSAL):
            if not is_changelog(table):
                yield self._answer(number, segment[0], table)
        elif is_changelog(table):
            yield from self._append_events(segment, rejected, table, before)
        elif is_mirror(table):
            if truncates:
                yield self._truncate(number, segment[0], table)
            else:
                yield from self._mirror(number, segment, rejected, table, before)
        elif truncates:
            yield self._end_versions(number, segment[0], table)
        else:
            yield from self._write_versions(number, segment, rejected, table, before)

    def _mirror(
        self, number: int, segment: Sequence[Event], rejected: Sequence[Rejected], table: MirrorTable, before: int
    ) -> Iterator[TableCounters]:
        started = time.perf_counter()
        mirror = fold_into_changes(segment, table, self.plan, soft=self.rules.soft_deletes)
        yield TableCounters(fold_ms=_ms_since(started))
        yield self.rejects.reject(number, [*rejected, *mirror.rejected], before)
        yield _folded(mirror)
        if mirror.changes:
            started = time.perf_counter()
            changes = mirror.changes._replace(at=self.now)
            table.write(changes, self._marker(number), self._forgotten(segment, table))
            yield _written(mirror.changes.rows.num_rows, started) + TableCounters(deleted=mirror.deleted)

    def _truncate(self, number: int, event: Event, table: MirrorTable) -> TableCounters:
        started = time.perf_counter()
        scopes, soft = self.rules.all_scopes, self.rules.soft_deletes
        commits = truncate(event, table, self.plan, self._marker(number), self.now, all_scopes=scopes, soft=soft)
        return TableCounters(commits=commits, write_ms=_ms_since(started))

    def _append_events(
        self, events: Sequence[Event], rejected: Sequence[Rejected], log: ChangelogTable, before: int
    ) -> Iterator[TableCounters]:
        started = time.perf_counter()
        added = record(events, details(self.rejects.records, events), log, self.plan)
        yield TableCounters(fold_ms=_ms_since(started))
        yield self.rejects.reject(0, [*rejected, *added.rejected], before)
        yield TableCounters(stale={DUPLICATE: added.duplicates})
        if added.rows.num_rows:
            started = time.perf_counter()
            log.append(added.rows, added.greatest, self._marker(0))
            yield _written(added.rows.num_rows, started)

    def _write_versions(
        self, number: int, segment: Sequence[Event], rejected: Sequence[Rejected], table: HistoryTable, before: int
    ) -> Iterator[TableCounters]:
        started = time.perf_counter()
        history = build_versions(segment, table, self.plan)
        yield TableCounters(fold_ms=_ms_since(started))
        yield self.rejects.reject(number, [*rejected, *history.rejected], before)
        yield _folded(history)
        if history.rows.num_rows:
            started = time.perf_counter()
            table.write(history.rows, history.adds_only, self._marker(number))
            yield _written(history.rows.num_rows, started)

    def _end_versions(self, number: int, event: Event, table: HistoryTable) -> TableCounters:
        started = time.perf_counter()
        marker, scopes = self._marker(number), self.rules.all_scopes
        commits = end_versions(event, table, self.plan.shape, marker, all_scopes=scopes)
        return TableCounters(commits=commits, write_ms=_ms_since(started))

    def _answer(self, number: int, event: Event, table: MirrorTable | HistoryTable) -> TableCounters:
        """Apply a statement to the rows that existed before the statement."""
        started = time.perf_counter()
        rows = answer(event, table, self.plan, self.rejects.marker(number), self.now)
        return _written(rows, started) if rows else TableCounters()

    def _forgotten(self, segment: Sequence[Event], table: MirrorTable) -> Marker:
        """Once per day, drop the tombstones for rows that were deleted long ago, and return the marker for the next
        commit.

        The day comes from the event times, so a backlog keeps the tombstones it still needs. A single record with a
        time far in the future must not determine that day. The table therefore drops tombstones only up to the day that
        an earlier batch marked, and no batch marks a future day.
        """
        now = min(newest(segment), self.now)
        day, done = (now - self.rules.tombstone_days * DAY) // DAY, table.applied(FORGOTTEN)
        if done is not None and done < day and not self.rules.soft_deletes:
            table.forget(done * DAY)
        return Marker(FORGOTTEN, day if done is None else max(day, done))


def commit_app(app: str, name: str, shape: TableShape) -> str:
    """Return the app in the markers of a table's commits.

    Args:
        app: pipeline and checkpoint.
    """
    return f"{app}/{name}@{shape.built}" if shape.built else f"{app}/{name}"


def segmented(events: Sequence[Event]) -> list[Sequence[Event]]:
    """Split the events at truncates and statements. Each truncate or statement forms its own group. The first group may
    be empty.

    Raises:
        Refused: there are more groups than marker numbers.
    """
    segments, start = [], 0
    for place in apart(events):
        segments += [events[start:place], events[place : place + 1]]
        start = place + 1
    segments.append(events[start:])
    kept = segments[:1] + [segment for segment in segments[1:] if segment]
    if len(kept) > MAX_SEGMENTS:
        raise Refused(
            Reason.TABLE_REFUSED,
            f"one batch needs {len(kept)} commits, but at most {MAX_SEGMENTS} are possible; lower batches.max_offsets",
        )
    return kept


def _by_segment(rejected: Iterable[Rejected], segments: Sequence[Sequence[Event]]) -> list[list[Rejected]]:
    """Split the invalid events by segment. Each event belongs to the segment in which it arrived, or to the segment
    before a truncate.
    """
    parts: list[list[Rejected]] = [[] for _ in segments]
    numbers = [0] + [number for number, segment in enumerate(segments) if number and segment[0].op not in APART]
    starts = [segments[number][0].index for number in numbers[1:]]
    for one in rejected:
        parts[numbers[bisect_right(starts, one.event)]].append(one)
    return parts


def _folded(found: MirrorChanges | HistoryChanges) -> TableCounters:
    return TableCounters(
        stale=dict(found.stale), late=found.late, scope_changes=found.scope_changes, undecided=found.undecided
    )


def _written(rows: int, started: float) -> TableCounters:
    return TableCounters(commits=1, rows=rows, write_ms=_ms_since(started))


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
