"""What happens in a worker: the events of each table are folded and written there. Reads like design section 7.

A table lies wholly in one task, so its segments are applied in order, and nobody else writes it.
"""

from __future__ import annotations

import gc
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from spark_sink import quarantine
from spark_sink.changelog import record
from spark_sink.details import details
from spark_sink.errors import ConfigError, Reason, Refused
from spark_sink.evolve import Plan, Step, evolve
from spark_sink.extent import NOWHERE, Extent
from spark_sink.form import Form, Mode, check_mode
from spark_sink.history import end_versions, write_down
from spark_sink.intake import Intake, intake, key_columns, named_columns, routes
from spark_sink.keys import with_keys
from spark_sink.latency import NONE, Latency
from spark_sink.names import TableId, TablePattern, clash
from spark_sink.parking import NOTHING_PARKED, Parking
from spark_sink.quarantine import Rejected
from spark_sink.row import DUPLICATE, GAP, Event
from spark_sink.rules import Rules
from spark_sink.schemas import Catalog
from spark_sink.segment import gap, settle
from spark_sink.shared import pooled, target_of
from spark_sink.tables import History, Log, Marker, Table, Tables
from spark_sink.truncate import truncate

# Commits that a table may make in one batch: versions of the next batch begin there.
MAX_SEGMENTS = 4096

# Marks up to which day a table has forgotten its deleted rows; it is the same under every checkpoint.
FORGOTTEN = "cdc.forgotten"

DAY = 24 * 60 * 60 * 1_000_000


class Report(Struct):
    """What became of one table's events in a batch. `step` set: nothing yet, the table must be changed first.

    `version` is the table's afterwards; `extent` is that of the whole route, told once.
    """

    table: str
    route: str
    bucket: int
    events: int
    step: Step | None = None
    refused: str | None = None
    parked: int = 0
    clash: str | None = None
    commits: int = 0
    skipped: int = 0
    version: int | None = None
    extent: Extent = NOWHERE
    rows: int = 0
    deleted: int = 0
    stale: dict[str, int] = {}
    late: int = 0
    scope_changes: int = 0
    rejected: dict[str, int] = {}
    ignored: dict[str, int] = {}
    latency: Latency = NONE
    fold_ms: float = 0
    write_ms: float = 0


@dataclass(frozen=True)
class Task:
    """The work on one batch; an instance is shipped to the workers and called once per task.

    Args:
        app: pipeline and checkpoint; with the table's name it marks the commits.
        parking: the parked tables, whose events are not looked at.
    """

    tables: Tables
    pattern: TablePattern
    catalog: Catalog
    app: str
    batch: int
    rules: Rules
    parking: Parking = NOTHING_PARKED

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Records sorted by route, partition and offset in; one report per table out."""
        for records in routes(batches):
            with _uncollected():
                encoded = [msgspec.msgpack.encode(report) for report in self.route(records)]
            yield pa.RecordBatch.from_pydict({"report": pa.array(encoded, pa.binary())})

    def route(self, records: pa.Table) -> Iterator[Report]:
        """The tables of one route: nearly always one."""
        taken, catalog = pooled(intake(records), self.catalog, self.pattern, self.rules)
        route, bucket = records.column("route")[0].as_py(), records.column("bucket")[0].as_py()
        owners: dict[str, TableId] = {}
        extent = Extent.of(records)
        for table_id, came in taken.items():
            name = target_of(table_id, self.pattern) if table_id else "-"
            events = sum(1 for event in came.events if event.op != GAP)
            report = Report(name, route, bucket, events, ignored=dict(came.ignored), extent=extent)
            extent = NOWHERE
            owner = owners.setdefault(name.lower(), table_id) if table_id else None
            if table_id is not None and owner is not None and owner != table_id:
                report.clash = clash(owner, table_id, name)
            else:
                replace(self, catalog=catalog)._apply(report, table_id, came, records)
            if report.commits and not report.parked:
                rows = records.filter(pc.equal(records.column("kind"), "row"))
                report.latency = Latency.of(rows.column("committed"), time.time_ns() // 1000)
            yield report

    def _apply(self, report: Report, table_id: TableId | None, came: Intake, records: pa.Table) -> None:
        """Bring the table up to date, or say in the report why not."""
        if table_id is not None and self._is_parked(report, table_id, came, records):
            return
        if table_id is None or not came.events:
            self._reject_all(report, table_id, came, records)
            return
        try:
            table = self.tables.open(report.table)
            if table is not None and table.shape.table != table_id:
                report.clash = clash(table.shape.table, table_id, report.table)
                return
            form = self.rules.form(report.table)
            if table is not None:
                check_mode(report.table, table.shape.mode, form.mode)
            came = self._with_known_schemas(table_id, with_keys(came, form, records, is_new=table is None))
            segments = [came.events] if form.mode == Mode.CHANGELOG else _segments(came.events)
            plan = self._planned(table_id, table, came.events, form)
        except ConfigError as error:
            report.clash = str(error)
            return
        except Refused as refusal:
            self._refuse(report, 0, table_id, refusal, came.events, came.rejected, records)
            return
        report.step = plan.step if plan is not None else None
        if report.step is not None:
            return
        if table is None or plan is None:  # nothing that would make a table, such as a truncate of none
            self._reject_all(report, table_id, came, records)
        else:
            self._write(report, table, plan, segments, came.rejected, records)

    def _is_parked(self, report: Report, table_id: TableId, came: Intake, records: pa.Table) -> bool:
        """Whether the table takes none of these events; they wait with those that came before."""
        cause = self.parking.held.get(report.table)
        if cause is None and not self.parking.again:
            return False
        marker = self._marker(report, 0)
        done = self.tables.parked(marker.app)
        if done is not None and done >= marker.version:
            # This batch was begun before: what it brought until the table was parked is in the table, the rest waits.
            report.skipped += 1
            return True
        if cause is not None:
            self._park(report, 0, table_id, Reason(cause.reason), cause.detail, came.events, came.rejected, records)
        return cause is not None

    def _refuse(
        self,
        report: Report,
        number: int,
        table_id: TableId,
        refusal: Refused,
        events: Iterable[Event],
        rejected: Iterable[Rejected],
        records: pa.Table,
    ) -> None:
        """The table cannot go on: it is parked with its events from here on, the broken ones among them."""
        report.refused = str(refusal)
        self._park(report, number, table_id, refusal.reason, str(refusal), events, rejected, records)

    def _park(
        self,
        report: Report,
        number: int,
        table_id: TableId,
        reason: Reason,
        detail: str,
        events: Iterable[Event],
        rejected: Iterable[Rejected],
        records: pa.Table,
    ) -> None:
        places = sorted({event.index for event in events} | {one.event for one in rejected})
        if places:
            held = [Rejected(place, reason, detail) for place in places]
            rows = self.parking.rows(records, table_id, report.table, self.batch, held)
            self.tables.park(rows, self._marker(report, number))
            report.parked = len(places)

    def _write(
        self,
        report: Report,
        table: Table | Log | History,
        plan: Plan,
        segments: Sequence[Sequence[Event]],
        rejected: list[Rejected],
        records: pa.Table,
    ) -> None:
        done = table.applied(self._marker(report, 0).app)
        broken = _by_segment(rejected, segments)
        for number, segment in enumerate(segments):
            if done is not None and done >= self._marker(report, number).version:
                report.skipped += 1
                continue
            try:
                self._segment(report, number, segment, table, plan, broken[number], records)
            except Refused as refusal:
                rest = (event for later in segments[number:] for event in later)
                unread = (one for later in broken[number:] for one in later)
                self._refuse(report, number, plan.shape.table, refusal, rest, unread, records)
                break
        report.version = table.version

    def _with_known_schemas(self, table_id: TableId, came: Intake) -> Intake:
        """Events whose schema is not in the catalog are rejected: the translator announces it before its first row."""
        named = {event.schema_id for event in came.events if event.schema_id is not None}
        missing = {schema_id for schema_id in named if self.catalog.find(table_id, schema_id) is None}
        if not missing:
            return came
        rejected = [
            Rejected(event.index, Reason.SCHEMA_UNKNOWN, f"schema {event.schema_id} is not in the schemas topic")
            for event in came.events
            if event.schema_id in missing
        ]
        known = [gap(event) if event.schema_id in missing else event for event in came.events]
        return Intake(known, came.rejected + rejected, came.ignored)

    def _planned(
        self, table_id: TableId, table: Table | Log | History | None, events: Sequence[Event], form: Form
    ) -> Plan | None:
        if table is None and all(event.op in ("t", GAP) for event in events):
            return None
        named = dict.fromkeys(event.schema_id for event in events if event.schema_id is not None)
        schemas = [schema for id in named if (schema := self.catalog.find(table_id, id)) is not None]
        current = table.shape if table is not None else None
        key = current.key_sent_as if current is not None else key_columns(events)
        latest = self.catalog.latest(table_id)
        return evolve(current, table_id, schemas, latest, named_columns(events), key, self.rules.policies, form)

    def _segment(
        self,
        report: Report,
        number: int,
        segment: Sequence[Event],
        table: Table | Log | History,
        plan: Plan,
        rejected: list[Rejected],
        records: pa.Table,
    ) -> None:
        """One commit to the table. What is rejected is in quarantine before, so that no crash can lose it."""
        started = time.perf_counter()
        marker = self._marker(report, number)
        if isinstance(table, Log):
            self._record(report, marker, segment, table, plan, rejected, records)
            return
        if isinstance(table, History):
            self._write_down(report, number, segment, table, plan, rejected, records)
            return
        if segment and segment[0].op == "t":
            soft = self.rules.soft_deletes
            report.commits += truncate(segment[0], table, plan, marker, all_scopes=self.rules.all_scopes, soft=soft)
            report.write_ms += _ms_since(started)
            return
        settled = settle(segment, table, plan, soft=self.rules.soft_deletes)
        report.fold_ms += _ms_since(started)
        self._reject(report, number, plan.shape.table, rejected + settled.rejected, records)
        report.stale = dict(Counter(report.stale) + settled.folded.stale)
        report.late += settled.folded.late
        report.scope_changes += settled.folded.scope_changes
        if settled.changes:
            started = time.perf_counter()
            table.write(settled.changes, marker, self._forgotten(segment, table))
            report.commits += 1
            report.rows += settled.changes.rows.num_rows
            report.deleted += sum(1 for row in settled.folded.rows.values() if not row.exists)
            report.write_ms += _ms_since(started)

    def _record(
        self,
        report: Report,
        marker: Marker,
        events: Sequence[Event],
        log: Log,
        plan: Plan,
        rejected: list[Rejected],
        records: pa.Table,
    ) -> None:
        """One commit to a changelog."""
        started = time.perf_counter()
        recorded = record(events, details(records, events), log, plan)
        report.fold_ms += _ms_since(started)
        self._reject(report, 0, plan.shape.table, rejected + recorded.rejected, records)
        report.stale = dict(Counter(report.stale) + Counter({DUPLICATE: recorded.duplicates}))
        if recorded.rows.num_rows:
            started = time.perf_counter()
            log.append(recorded.rows, recorded.greatest, marker)
            report.commits += 1
            report.rows += recorded.rows.num_rows
            report.write_ms += _ms_since(started)

    def _write_down(
        self,
        report: Report,
        number: int,
        segment: Sequence[Event],
        table: History,
        plan: Plan,
        rejected: list[Rejected],
        records: pa.Table,
    ) -> None:
        """One commit to a history."""
        started = time.perf_counter()
        marker = self._marker(report, number)
        if segment and segment[0].op == "t":
            all_scopes = self.rules.all_scopes
            report.commits += end_versions(segment[0], table, plan.shape, marker, all_scopes=all_scopes)
            report.write_ms += _ms_since(started)
            return
        chapter = write_down(segment, table, plan)
        report.fold_ms += _ms_since(started)
        self._reject(report, number, plan.shape.table, rejected + chapter.rejected, records)
        report.stale = dict(Counter(report.stale) + chapter.stale)
        report.late += chapter.late
        report.scope_changes += chapter.scope_changes
        if chapter.rows.num_rows:
            started = time.perf_counter()
            table.write(chapter.rows, chapter.adds_only, marker)
            report.commits += 1
            report.rows += chapter.rows.num_rows
            report.write_ms += _ms_since(started)

    def _forgotten(self, segment: Sequence[Event], table: Table) -> Marker:
        """Once a day, drop what is remembered of rows deleted long ago; the mark of it, for the commit that follows.

        The day is that of the events, so that a backlog keeps what it still needs; never one that is still to come.
        """
        newest = min(max(event.ts for event in segment), time.time_ns() // 1000)
        before = newest - self.rules.tombstone_days * DAY
        day, done = before // DAY, table.applied(FORGOTTEN)
        if done is not None and done < day and not self.rules.soft_deletes:
            table.forget(before)
        return Marker(FORGOTTEN, day if done is None else max(day, done))

    def _reject_all(self, report: Report, table_id: TableId | None, came: Intake, records: pa.Table) -> None:
        """Where there is nothing to fold."""
        try:
            self._reject(report, 0, table_id, came.rejected, records)
        except Refused as refusal:
            if table_id is None:
                raise
            self._refuse(report, 0, table_id, refusal, came.events, came.rejected, records)

    def _reject(
        self, report: Report, number: int, table_id: TableId | None, rejected: Sequence[Rejected], records: pa.Table
    ) -> None:
        limit, count = self.rules.park_rejected, sum(report.rejected.values()) + len(rejected)
        if table_id is not None and limit is not None and count > limit:
            raise Refused(
                Reason.REJECTED_MANY,
                f"{count} of its events in one batch cannot be applied, tables.park_rejected is {limit}",
            )
        if rejected:
            ordered = sorted(rejected, key=lambda one: one.event)
            self.tables.quarantine(quarantine.rows(records, table_id, ordered), self._marker(report, number))
            report.rejected = dict(Counter(report.rejected) + Counter(one.reason.value for one in rejected))

    def _marker(self, report: Report, number: int) -> Marker:
        return Marker(f"{self.app}/{report.table}", self.batch * MAX_SEGMENTS + number)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector: it looked through all events again and again, for 30 % of the time, and found none
    to free, as they are in no circles."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _segments(events: Sequence[Event]) -> list[list[Event]]:
    """The events between truncates, and each truncate alone, in order; the first segment may be empty."""
    segments: list[list[Event]] = [[]]
    for event in events:
        if event.op == "t":
            segments += [[event], []]
        else:
            segments[-1].append(event)
    kept = segments[:1] + [segment for segment in segments[1:] if segment]
    if len(kept) > MAX_SEGMENTS:
        raise Refused(
            Reason.TABLE_REFUSED,
            f"{len(kept)} commits in one batch, at most {MAX_SEGMENTS} have a number; lower batches.max_offsets",
        )
    return kept


def _by_segment(rejected: Iterable[Rejected], segments: Sequence[Sequence[Event]]) -> list[list[Rejected]]:
    """What is broken goes to quarantine with the segment in which it came, or with the one before a truncate."""
    parts: list[list[Rejected]] = [[] for _ in segments]
    numbers = [0] + [number for number, segment in enumerate(segments) if number and segment[0].op != "t"]
    starts = [segments[number][0].index for number in numbers[1:]]
    for one in rejected:
        parts[numbers[bisect_right(starts, one.event)]].append(one)
    return parts


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
