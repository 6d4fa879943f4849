"""Run one micro-batch on the driver: read the schemas, let the workers fold and write the events, and make the table
changes that tasks request.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Generic, NamedTuple, Protocol, TypeVar, assert_never

import msgspec
import structlog

from cdc_core.table_id import TableId
from spark_sink.apply.ddl_passes import DriverWork, SeenRequests, merge_reports
from spark_sink.apply.new_tables import forbidden_tables
from spark_sink.apply.phases import Phase, Stopwatch
from spark_sink.apply.rejects import MAX_SEGMENTS
from spark_sink.apply.worker import Task
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.batches import ControlTables
from spark_sink.errors import Refused
from spark_sink.events.shared_tables import SEVERAL, owner_of
from spark_sink.lag import Lag
from spark_sink.metrics import Metrics
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.engine_choice import Engine
from spark_sink.schema.evolution import AddColumns, Create, Step, Widen
from spark_sink.schema.table_naming import TablePattern
from spark_sink.table_report import (
    NO_LATENCY,
    Deferred,
    Done,
    Latency,
    NeedsSpark,
    Parked,
    TableReport,
    WideStatement,
)
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.control_tables import ParkedTables
from spark_sink.tables.protocols import ChangelogTable, TableDdl, Tables
from spark_sink.tables.spark_operations import OrderRunner
from spark_sink.tables.table_errors import as_refusal
from spark_sink.tables.table_properties import owner_properties

log = structlog.get_logger()

# The table label that metrics use for a statement that affects several tables.
_ALL = "all"

# Most of the time that a table change takes is spent waiting for storage.
DDL_THREADS = 8

Records = TypeVar("Records", contravariant=True)


class Schemas(Protocol):
    """Provides the catalog; in production it comes from the schemas topic."""

    def refresh(self) -> SchemaCatalog: ...


class TaskRunner(Protocol[Records]):
    """Runs each table's task in the workers. `Records` is the type of a batch."""

    def batch(
        self,
        records: Records,
        task: Task,
        carried: Collection[str],
        weights: Mapping[int, int],
        only: Collection[str] | None = None,
    ) -> list[TableReport]:
        """Run the task on a batch's records, grouped by table.

        Args:
            carried: the routes whose raw records are sent along with their events.
            weights: the number of events per bucket in the previous batch, which is used to distribute the tables.
            only: the routes to run, or None for all routes.
        """

    def turns(self, parked: ParkedTables, target: str, first: int, last: int, task: Task) -> list[TableReport]:
        """Run the task on the turns parked under a name, in order, and stop after the first turn that fails. Return the
        reports for the turns that ran.
        """


class Fulfilment(NamedTuple):
    """The reports after the driver has done the requested work.

    Args:
        reports: all reports from the run, with the new version for changed tables.
        again: the routes whose tasks must run again.
        refused: the tables that rejected the requested change, each with the reason.
        spelled: the tables that exist in a different spelling from the one to be created.
    """

    reports: list[TableReport]
    again: set[str]
    refused: Mapping[str, str]
    spelled: Mapping[str, str]


class Applier(Generic[Records]):
    """Applies micro-batches to tables, one batch after another.

    Args:
        app: the pipeline and the checkpoint, for the commit markers.
        runner: runs the tasks.
        writer: writes the tables whose engine is `spark`.
        lag: computes the lag behind the topic. None if the batches do not come from a topic.
    """

    def __init__(
        self,
        schemas: Schemas,
        tables: Tables,
        ddl: TableDdl,
        pattern: TablePattern,
        app: str,
        rules: TableRules,
        control: ControlTables,
        metrics: Metrics,
        runner: TaskRunner[Records],
        writer: OrderRunner,
        lag: Lag | None = None,
    ) -> None:
        self.runner = runner
        self._writer = writer
        self._engines: dict[str, Engine] = {}
        self._schemas = schemas
        self._tables = tables
        self._ddl = ddl
        self.pattern = pattern
        self.rules = rules
        self._app = app
        self._control = control
        self._metrics = metrics
        self._lag = lag
        self._weights: Counter[int] = Counter()
        # Routes whose raw records are sent along with their events, because a task has requested them since the sink
        # started.
        self._carried: set[str] = set()
        self._spelled: dict[str, str] = {}

    def __call__(self, records: Records, batch: int) -> list[TableReport]:
        """Apply a batch from the canonical topic. Afterwards, each event is in its table, in quarantine, or parked."""
        watch = Stopwatch(Phase.LAG)
        log.info("batch started", batch=batch, offsets=self._lag.taken(batch) if self._lag is not None else None)
        watch.enter(Phase.SCHEMAS)
        task = self.task(batch)
        watch.enter(Phase.BOOKS)
        task = replace(task, parking=self._control.begin(batch))
        watch.enter(Phase.TASKS)
        runs = [self.runner.batch(records, task, self._carried, self._weights)]
        seen, ordered = SeenRequests(), False
        while work := DriverWork.of(runs[-1]):
            work = work.without(seen.repeated(runs[-1]))
            done = self.fulfil(work, runs[-1], watch, parks_new=self.rules.parks_new)
            ordered = ordered or bool(work.orders)
            task = replace(task, refused={**task.refused, **done.refused}, spelled=dict(self._spelled))
            runs[-1] = done.reports
            again = done.again
            watch.enter(Phase.TASKS)
            runs.append(self.runner.batch(records, task, self._carried, self._weights, again) if again else [])
        reports = merge_reports(runs)
        if ordered:
            watch.enter(Phase.SPARK)
            self.discard()
        watch.enter(Phase.BOOKS)
        self._log_engines(reports)
        self._park_all(batch, reports)
        self._weights = sum((Counter({report.bucket: report.counters.events}) for report in reports), Counter[int]())
        self._control.end(batch, reports)
        held = self._control.held()
        watch.enter(Phase.LAG)
        lag = self._lag.after(batch) if self._lag is not None else None
        seconds = watch.stop()
        self._metrics.batch(reports, held, seconds, lag)
        _log_batch(batch, reports, lag, **{f"{phase}_ms": value for phase, value in seconds.items()})
        return reports

    def task(self, batch: int) -> Task:
        """Return the task for a batch, with all schemas known so far."""
        catalog, spelled = self._schemas.refresh(), dict(self._spelled)
        seen = dict(self._control.batches.last_seen())
        parts = (self._tables, self.pattern, catalog, self._app, batch, self.rules)
        return Task(*parts, spelled=spelled, last_seen=seen, erased=self._control.erased_keys())

    def _park_all(self, batch: int, reports: Sequence[TableReport]) -> None:
        """Park all tables affected by a statement on a whole database or source.

        At this point the batch's events are already in the tables. The marker for this step is the batch's last marker,
        so a repeated batch neither parks the tables twice nor applies its events again.
        """
        for report in reports:
            for wide in report.wide:
                self._metrics.statement(_ALL, wide.note)
                reason = self.rules.statements.parks_all(wide.note)
                if reason is None:
                    log.warning("statement affects all tables", source=wide.source, db=wide.db, note=wide.note)
                    continue
                detail = (
                    f"a statement ({wide.note}) affects all tables of {wide.db or wide.source}; reload the table "
                    "from the source, then resume it"
                )
                for name in self._tables_of(wide, reports):
                    marker = Marker(f"{self._app}/{name}", batch * MAX_SEGMENTS + MAX_SEGMENTS - 1)
                    if self._control.park(name, reason, detail, marker):
                        then = f"spark-sink resume {shlex.quote(name)}"
                        log.error("table parked", table=name, reason=detail, events=0, then=then)

    def _tables_of(self, wide: WideStatement, reports: Iterable[TableReport]) -> list[str]:
        """Return the existing tables in a database or source, except parked tables."""
        names = self._control.batches.tables() | {report.table for report in reports if report.version is not None}
        parked = {report.table for report in reports if isinstance(report.outcome, Parked | Deferred)}
        found = []
        for name in sorted(names - parked - self._control.held().keys()):
            with suppress(Exception):  # the table's next event parks the table, with the reason
                table = self._tables.open(name)
                if table is not None and not isinstance(table, ChangelogTable) and self._is_of(table.shape.table, wide):
                    found.append(name)
        return found

    def _is_of(self, table: TableId, wide: WideStatement) -> bool:
        parts = [table]
        if table.source == SEVERAL:
            known = self._schemas.refresh().tables()
            parts = [one for one in known if owner_of(one, self.pattern, self.rules) == table]
        return any(part.source == wide.source and wide.db in (None, part.db) for part in parts)

    def _log_engines(self, reports: Iterable[TableReport]) -> None:
        """Log a table's engine when it is first known, and whenever it changes."""
        for report in reports:
            if report.choice is not None and self._engines.get(report.table) != report.choice.engine:
                self._engines[report.table] = report.choice.engine
                log.info("engine chosen", table=report.table, engine=report.choice.engine, reason=report.choice.reason)

    def fulfil(
        self,
        work: DriverWork,
        reports: Sequence[TableReport],
        watch: Stopwatch | None = None,
        *,
        parks_new: bool = False,
    ) -> Fulfilment:
        """Do the work that a run's reports request, and time that work with the batch's stopwatch.

        Args:
            parks_new: whether new tables wait for an operator's command.
        """
        watch = watch or Stopwatch(Phase.DDL)
        self._carried |= work.carried
        watch.enter(Phase.DDL)
        existing = self._control.batches.tables()
        forbidden = forbidden_tables(work.steps, existing, self.rules.max_tables, parks=parks_new)
        steps = [(table, step) for table, step in work.steps if table not in forbidden]
        with ThreadPoolExecutor(DDL_THREADS) as pool:
            # The list waits for every result and re-raises exceptions.
            names = list(pool.map(self._changed, steps))
        refused = {**work.refused, **forbidden}
        spelled = {}
        for (table, _), name in zip(steps, names, strict=True):
            if isinstance(name, Refused):
                refused[table] = str(name)
            elif name != table:
                spelled[table] = name
        self._spelled |= spelled
        watch.enter(Phase.SPARK)
        refused |= self._writer.carry_out(work.orders)
        after = [self._after(report, refused) for report in reports]
        again = work.again | {report.route for report in reports if report.table in refused}
        return Fulfilment(after, again, refused, spelled)

    def _after(self, report: TableReport, refused: Mapping[str, str]) -> TableReport:
        """Return the table's report after the requested change was made or rejected."""
        if not isinstance(report.outcome, NeedsSpark):
            return report
        counters = report.counters
        if report.table in refused:
            counters = msgspec.structs.replace(counters, commits=0, rows=0, deleted=0)
        ends = not report.outcome.more and report.table not in refused
        outcome = Done() if ends else report.outcome
        version = self._writer.version(report.table)
        return msgspec.structs.replace(report, outcome=outcome, counters=counters, version=version)

    def give(self, name: str, source: TableId) -> None:
        """Assign a table to another source table."""
        self._ddl.set_properties(name, owner_properties(source))

    def discard(self) -> None:
        """Delete the staged files. By now, all of these events have been written or rejected."""
        self._writer.discard()

    def _changed(self, wanted: tuple[str, Step]) -> str | Refused:
        """Change a table, and return its actual name. If the change fails twice, return the reason.

        The second attempt covers storage that was briefly unavailable.
        """
        table, _ = wanted
        try:
            return self._change(wanted)
        except Exception as error:
            as_refusal(error, table, self._tables, is_statement=True)
        try:
            return self._change(wanted)
        except Exception as error:
            return as_refusal(error, table, self._tables, is_statement=True)

    def _change(self, wanted: tuple[str, Step]) -> str:
        """Change a table, and return its actual name."""
        table, step = wanted
        started = time.perf_counter()
        match step:
            case Create(shape):
                name = self._ddl.replace(table, shape) if shape.built else self._ddl.create(table, shape)
                if name != table:
                    return name
                done = "table replaced" if shape.built else "table created"
                log.info(done, table=table, columns=len(shape.columns), ms=_ms(started))
            case AddColumns(columns):
                self._ddl.add_columns(table, columns)
                names = [column.name for column in columns]
                log.info("columns added", table=table, columns=names, ms=_ms(started))
                beside = [column.name for column in columns if column.is_version]
                if beside:
                    then = "values that do not fit the old columns go to the new ones; spark-sink view reads both"
                    log.warning("columns added with a suffix", table=table, columns=beside, then=then)
                    self._metrics.columns_beside(len(beside))
            case Widen(columns, rewrites):
                self._ddl.widen(table, columns, rewrites=rewrites)
                types = {column.name: column.type for column in columns}
                log.info("columns widened", table=table, columns=types, rewritten=rewrites, ms=_ms(started))
            case _:
                assert_never(step)
        return table


def _log_batch(batch: int, reports: Sequence[TableReport], lag: int | None, **seconds: float) -> None:
    for report in reports:
        if isinstance(report.outcome, Parked):
            refusal, events = report.outcome.refusal, report.outcome.events
            then = f"spark-sink resume {shlex.quote(report.table)}"
            log.error("table parked", table=report.table, reason=refusal, events=events, then=then)
        elif report.counters.statements:
            notes = report.counters.statements
            log.warning("statement changed rows without events", table=report.table, source=report.source, notes=notes)
    counted = [report.counters for report in reports]
    rejected = sum((Counter(one.rejected) for one in counted), Counter[str]())
    stale = sum((Counter(one.stale) for one in counted), Counter[str]())
    ignored = sum((Counter(one.ignored) for one in counted), Counter[str]())
    latency = sum((one.latency for one in counted), NO_LATENCY)
    log.info(
        "batch applied",
        batch=batch,
        events=sum(one.events for one in counted),
        tables=sum(1 for one in counted if one.events),
        commits=sum(one.commits for one in counted),
        commits_skipped=sum(one.skipped for one in counted),
        rows=sum(one.rows for one in counted),
        deleted=sum(one.deleted for one in counted),
        stale=dict(stale),
        late=sum(one.late for one in counted),
        scope_changes=sum(one.scope_changes for one in counted),
        quarantined=dict(rejected),
        parked=sum(report.parked for report in reports),
        ignored=dict(ignored),
        **_latency(latency),
        lag=lag,
        worker_megabytes=max((one.megabytes for one in counted), default=0),
        fold_ms=round(sum(one.fold_ms for one in counted)),
        write_ms=round(sum(one.write_ms for one in counted)),
        **{name: round(value * 1000) for name, value in seconds.items()},
    )


def _latency(latency: Latency) -> dict[str, int]:
    """Return the latency for events from the last day. Older events do not reveal the sink's latency."""
    told = {}
    if latency.live_count:
        mean, greatest = latency.live / latency.live_count, latency.greatest
        told = {"latency_mean_ms": round(1000 * mean), "latency_max_ms": round(1000 * greatest)}
    old = latency.count - latency.live_count
    return {**told, "older_than_a_day": old} if old else told


def _ms(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)
