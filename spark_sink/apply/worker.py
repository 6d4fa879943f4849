"""The work of a Spark worker: fold each table's events and write them. docs/sink-design.md describes the steps.

All events for a table are in one task, so its segments are applied in order, and no other task writes the table.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.envelope import TableSchema
from cdc_core.table_contract import TableContract
from cdc_core.table_id import TableId
from spark_sink.apply.destinations import Destination, Destinations, clash
from spark_sink.apply.existing_tables import check_form, check_state, copy_refusal
from spark_sink.apply.rejects import RejectedEvents
from spark_sink.apply.statements import answered, refusal_without_rows, without_statements
from spark_sink.apply.table_commits import Commits, segmented
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import ConfigError, Reason, Refused
from spark_sink.events.contracts import check_contracts
from spark_sink.events.erased_keys import ErasedKeys, not_of_erased, without_erased
from spark_sink.events.event_columns import count_without_gaps, operations, schema_ids
from spark_sink.events.fine_times import fine_columns, times_of, truncated
from spark_sink.events.grouping import Intake, intake, key_columns, named_columns, routes
from spark_sink.events.offset_span import NOWHERE, OffsetSpan
from spark_sink.events.parking import NOTHING_PARKED, Parking
from spark_sink.events.quarantine import Rejected
from spark_sink.events.row_keys import with_keys
from spark_sink.events.shared_tables import SEVERAL, is_same, owner_of
from spark_sink.events.wire_format import RawRecordMissing
from spark_sink.model.event import (
    APART,
    GAP,
    STATEMENT,
    Event,
    gap,
)
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.engine_choice import Choice, Engine
from spark_sink.schema.evolution import Plan, evolve
from spark_sink.schema.statement_rules import CONCERN_NO_ROWS, ROWS_DIFFER
from spark_sink.schema.table_naming import TablePattern
from spark_sink.schema.table_spec import Mode, TableSpec
from spark_sink.table_report import (
    Conflict,
    Done,
    Latency,
    NeedsDdl,
    NeedsRecords,
    Outcome,
    TableCounters,
    TableReport,
    WideStatement,
)
from spark_sink.tables.changes import LastSeen
from spark_sink.tables.protocols import ChangelogTable, HistoryTable, MirrorTable, Tables
from spark_sink.tables.table_errors import as_refusal

# This process's memory, as Linux reports it.
_STATM = Path("/proc/self/statm")


class Applied(NamedTuple):
    """The result for one table's events. `name` is the table's name in reports, and `version` is the table version
    afterwards.
    """

    outcome: Outcome
    name: str
    counters: TableCounters
    choice: Choice | None = None
    version: int | None = None


@dataclass(frozen=True)
class Task:
    """The task that processes one batch. An instance is sent to the workers and called once per task.

    Args:
        app: the pipeline and the checkpoint, which mark the commits together with the table's name.
        parking: the parked tables, whose events are not examined, or None while parked events are being replayed.
        refused: the tables that rejected a commit by the driver in this batch, each with the reason.
        spelled: the tables that exist in a different spelling from the requested one.
        last_seen: each table's state in the manifest. The table must descend from this state.
        began: when the batch began (microseconds, UTC), by the driver's clock.
        last_attempt: whether an error that concerns one table parks that table at the failed commit.
        erased: the erased keys by table.
    """

    tables: Tables
    pattern: TablePattern
    catalog: SchemaCatalog
    app: str
    batch: int
    rules: TableRules
    parking: Parking | None = NOTHING_PARKED
    refused: Mapping[str, str] = field(default_factory=dict)
    spelled: Mapping[str, str] = field(default_factory=dict)
    last_seen: Mapping[str, LastSeen] = field(default_factory=dict)
    began: int = field(default_factory=lambda: time.time_ns() // 1000)
    last_attempt: bool = False
    erased: Mapping[str, ErasedKeys] = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process records sorted by route, partition and offset, and return one report per table.

        All reports are in one batch, because each batch costs as much as many reports.
        """
        encoded: list[bytes] = []
        for records in routes(batches):
            with _gc_paused():
                encoded += [msgspec.msgpack.encode(report) for report in self.route(records)]
        if encoded:
            yield pa.RecordBatch.from_pydict({"report": pa.array(encoded, pa.binary())})

    def route(self, records: pa.Table) -> Iterator[TableReport]:
        """Return the reports for the tables on one route, which usually has exactly one table."""
        places = Destinations(self.tables, self.pattern, self.rules, self.parking, self.spelled)
        found, catalog = places.of(intake(records), self.catalog)
        task = replace(self, catalog=catalog)
        route, bucket = records.column("route")[0].as_py(), records.column("bucket")[0].as_py()
        extent = OffsetSpan.of(records)
        for place in filter(self._takes, found):
            source = "" if place.table is None else str(place.table)
            counters = TableCounters(
                count_without_gaps(place.incoming.events),
                ignored=dict(place.incoming.ignored),
                # A parked table's events are not examined.
                statements={word: n for word, n in place.incoming.statements.items() if word in ROWS_DIFFER},
            )
            try:
                applied = task._applied(place, records, counters)
            except RawRecordMissing:
                applied = Applied(NeedsRecords(), place.name, counters)
            counters = msgspec.structs.replace(applied.counters, megabytes=_resident_megabytes())
            if counters.commits and isinstance(applied.outcome, Done):
                times = pc.coalesce(records.column("committed"), records.column("ts"))
                times = times.filter(pc.equal(records.column("kind"), "row"))
                counters = msgspec.structs.replace(counters, latency=Latency.of(times, time.time_ns() // 1000))
            wide = tuple(WideStatement(*one) for one in place.incoming.wide)
            yield TableReport(
                *(applied.name, route, bucket, applied.outcome, counters, source, applied.choice, applied.version),
                *(extent, wide),
            )
            extent = NOWHERE

    def _takes(self, place: Destination) -> bool:
        """Return whether the task includes the events for this destination."""
        return True

    def _applied(self, place: Destination, records: pa.Table, counters: TableCounters) -> Applied:
        """Bring the table up to date. If this fails twice although the storage responds, park the table.

        The second attempt covers storage that was briefly unavailable. It skips the commits that the first attempt
        made.
        """
        try:
            return self._apply(place, records, counters)
        except Exception as error:
            as_refusal(error, place.name, self.tables)
        try:
            return replace(self, last_attempt=True)._apply(place, records, counters)
        except Exception as error:
            rejects, incoming = self._rejects(place.name, place.table, records), place.incoming
            damaged = as_refusal(error, place.name, self.tables)
            return Applied(rejects.refuse(0, damaged, incoming.events, incoming.rejected), place.name, counters)

    def _apply(self, place: Destination, records: pa.Table, counters: TableCounters) -> Applied:
        """Bring the table up to date, or report why this is impossible."""
        table_id, incoming, name = place.table, place.incoming, place.name
        if table_id is not None and place.owner is not None and not is_same(place.owner, table_id):
            name = str(table_id)  # the other source table may also be parked under this name
        rejects = self._rejects(name, table_id, records)
        if rejects.was_parked_by_this_batch():
            return Applied(Done(), name, counters + TableCounters(skipped=1), version=self._version(name))
        deferred = rejects.defer_if_parked(incoming)
        if deferred is not None:
            return Applied(deferred, name, counters)
        if table_id is None or not incoming.events:
            outcome, done = rejects.reject_all(incoming)
            return Applied(outcome, name, counters + done)
        choice = None
        try:
            table = self._opened(place, table_id)
            seen = self.last_seen.get(place.name)
            if table is None and seen is not None:
                self.tables.check_format(place.name)
            check_state(place.name, table, seen)
            form = self.rules.form(place.name)._replace(shared=table_id.source == SEVERAL)
            if table is not None:
                choice = table.choice
                check_form(place.name, table.shape, form)
            if form.mode == Mode.CHANGELOG and incoming.statements:
                incoming = replace(incoming, events=without_statements(incoming.events))
                counters = msgspec.structs.replace(counters, events=len(incoming.events))
            incoming = self._with_known_schemas(table_id, with_keys(incoming, form, records, is_new=table is None))
            if self.rules.truncated_times:
                cut = truncated(incoming.events, times_of(self._schemas(table_id, incoming.events)))
                incoming = replace(incoming, events=cut.events)
                counters = msgspec.structs.replace(counters, truncated=cut.values)
            if self.rules.contracts:
                check_contracts(self._contracts(table_id), incoming.events, self.catalog)
            filled: Sequence[TableSchema] = ()
            if operations(incoming.events) & {STATEMENT}:
                replayed = self.parking is None
                found = answered(incoming.events, table_id, self.catalog, self.rules.statements, replayed=replayed)
                incoming, filled = replace(incoming, events=found.events), found.schemas
                counted = found.unaccounted.items()
                kept = {word: n for word, n in counted if table is not None or word in CONCERN_NO_ROWS}
                counters = msgspec.structs.replace(counters, statements=kept)
            segments = [incoming.events] if form.mode == Mode.CHANGELOG else segmented(incoming.events)
            plan = self._planned(table_id, table, incoming.events, form, filled)
        except ConfigError as error:
            if name not in self.refused:
                return Applied(Conflict(str(error)), name, counters, choice)
            parked = rejects.refuse(0, Refused(Reason.TABLE_REFUSED, str(error)), incoming.events, incoming.rejected)
            return Applied(parked, name, counters, choice)
        except Refused as refusal:
            if refusal.reason is Reason.TABLE_CLASH:
                rejects = replace(rejects, name=str(table_id))
            parked = rejects.refuse(0, refusal, incoming.events, incoming.rejected)
            return Applied(parked, rejects.name, counters, choice)
        if plan is not None and plan.step is not None:
            why = self.refused.get(name)
            if why is not None:
                parked = rejects.refuse(0, Refused(Reason.TABLE_REFUSED, why), incoming.events, incoming.rejected)
                return Applied(parked, name, counters, choice)
            return Applied(NeedsDdl(plan.step), name, counters, choice)
        if table is None or plan is None:  # no event creates the table, for example if they only truncate it
            refused = refusal_without_rows(incoming.events)
            if refused is not None:
                parked = rejects.refuse(0, refused, incoming.events, incoming.rejected)
                return Applied(parked, name, counters, choice)
            outcome, done = rejects.reject_all(incoming)
            return Applied(outcome, name, counters + done, choice)
        if erased := self.erased.get(place.name):
            segments = [without_erased(segment, records, erased, table.shape) for segment in segments]
            left = not_of_erased(incoming.rejected, records, erased, table.shape)
            incoming = replace(incoming, rejected=left)
        commits = Commits(
            *(table, plan, self.rules, rejects, self.began, self.refused.get(name)), parks_errors=self.last_attempt
        )
        written, done = commits.write(segments, incoming.rejected)
        return Applied(written, name, counters + done, choice, table.version)

    def _version(self, name: str) -> int | None:
        """Return the table version for the manifest, so that it includes commits from an earlier attempt at the
        batch.
        """
        with suppress(Exception):  # if the table cannot be opened, its newest version stays unknown
            table = self.tables.open(name)
            return table.version if table is not None else None
        return None

    def _rejects(self, name: str, table: TableId | None, records: pa.Table) -> RejectedEvents:
        return RejectedEvents(self.tables, self.rules, self.parking, self.app, self.batch, name, table, records)

    def _opened(self, place: Destination, table_id: TableId) -> MirrorTable | ChangelogTable | HistoryTable | None:
        """Return the table, or None if it does not exist.

        Raises:
            Refused: the table belongs to another source table, or cannot be written.
        """
        table = self.tables.open(place.name)
        self._check_owner(place, table_id, table)
        if table is not None and table.shape.is_copy:
            raise Refused(Reason.TABLE_REFUSED, copy_refusal(place.name))
        return table

    def _check_owner(
        self, place: Destination, table_id: TableId, table: MirrorTable | ChangelogTable | HistoryTable | None
    ) -> None:
        """Make sure that the table belongs to the events' source table.

        Raises:
            Refused: it belongs to another one.
        """
        owner = table.shape.table if table is not None else place.owner
        # A declaration that contradicts the table is not a name clash; check_form handles it.
        if owner is not None and not is_same(owner, table_id) and table_id.source != SEVERAL:
            raise clash(owner, table_id, place.name)

    def _contracts(self, table_id: TableId) -> list[TableContract]:
        """Return the contracts of the source tables whose rows are in the table."""
        contracts = self.rules.contracts
        if table_id.source != SEVERAL:
            return [contracts[table_id]] if table_id in contracts else []
        return [one for part, one in contracts.items() if owner_of(part, self.pattern, self.rules) == table_id]

    def _with_known_schemas(self, table_id: TableId, incoming: Intake) -> Intake:
        """Reject events whose schema is missing from the catalog. The translator announces each schema before the first
        row that uses it.
        """
        named = schema_ids(incoming.events)
        missing = {schema_id for schema_id in named if self.catalog.find(table_id, schema_id) is None}
        if not missing:
            return incoming
        rejected = [
            Rejected(event.index, Reason.SCHEMA_UNKNOWN, f"schema {event.schema_id} is not in the schemas topic")
            for event in incoming.events
            if event.schema_id in missing
        ]
        known = [gap(event) if event.schema_id in missing else event for event in incoming.events]
        return Intake(known, incoming.rejected + rejected, incoming.ignored)

    def _planned(
        self,
        table_id: TableId,
        table: MirrorTable | ChangelogTable | HistoryTable | None,
        events: Sequence[Event],
        form: TableSpec,
        filled: Sequence[TableSchema],
    ) -> Plan | None:
        if table is None and operations(events) <= {*APART, GAP}:
            return None
        schemas = [*self._schemas(table_id, events), *filled]
        current = table.shape if table is not None else None
        key = current.key_sent_as if current is not None else key_columns(events)
        latest = self.catalog.latest(table_id)
        in_place = table is not None and table.choice.engine is Engine.SPARK and table.choice.widens
        policies, named_here = self.rules.policies, named_columns(events)
        fine = None if self.rules.truncated_times else fine_columns(events, times_of(schemas))
        return evolve(current, table_id, schemas, latest, named_here, key, policies, form, in_place=in_place, fine=fine)

    def _schemas(self, table_id: TableId, events: Sequence[Event]) -> list[TableSchema]:
        return [schema for id in schema_ids(events) if (schema := self.catalog.find(table_id, id)) is not None]


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pause the garbage collector. Repeated scans took 30 % of the time and freed nothing, because events do not form
    reference cycles.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _resident_megabytes() -> int:
    """Return this process's memory in MiB; 0 if the system does not report it."""
    try:
        pages = int(_STATM.read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
