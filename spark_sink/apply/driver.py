"""One micro-batch, on the driver: read the schemas, fold and write in the workers, change tables that ask for it."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple, Protocol

import msgspec
import structlog
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, expr

from spark_sink.apply.ddl_passes import Asked, merge_reports
from spark_sink.apply.worker import Task
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.batches import Books
from spark_sink.errors import ConfigError
from spark_sink.events.latency import NONE
from spark_sink.events.source import BUCKETS, decoded
from spark_sink.lag import Lag
from spark_sink.metrics import Metrics
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.evolution import AddColumns, Create, Widen
from spark_sink.schema.table_naming import TablePattern
from spark_sink.table_report import TableReport
from spark_sink.tables.protocols import TableDdl, Tables
from spark_sink.tables.spark_operations import OrderRunner

log = structlog.get_logger()

# Changing a table waits for storage most of its time.
DDL_THREADS = 8


class Schemas(Protocol):
    """Where the catalog comes from: in production the schemas topic."""

    def refresh(self) -> SchemaCatalog: ...


class Fulfilment(NamedTuple):
    """Which tables do not take what was ordered, and why; which are there under another spelling than they were to be
    created; and the seconds of both kinds of work."""

    refused: Mapping[str, str]
    spelled: Mapping[str, str]
    ddl: float
    spark: float


class Applier:
    """Applies micro-batches to tables, one after the other.

    Args:
        app: pipeline and checkpoint, for the markers of the commits.
        writer: of the tables that Spark writes.
        lag: of the topic that batches come from, where they come from one.
    """

    def __init__(
        self,
        schemas: Schemas,
        tables: Tables,
        ddl: TableDdl,
        pattern: TablePattern,
        app: str,
        rules: TableRules,
        books: Books,
        metrics: Metrics,
        writer: OrderRunner,
        lag: Lag | None = None,
    ) -> None:
        self._writer = writer
        self._engines: dict[str, str] = {}
        self._schemas = schemas
        self._tables = tables
        self._ddl = ddl
        self.pattern = pattern
        self.rules = rules
        self._app = app
        self._books = books
        self._metrics = metrics
        self._lag = lag
        self._weights: Counter[int] = Counter()
        # Whose records travel as they came: the tables that have asked since the start.
        self._carried: set[str] = set()
        self._spelled: dict[str, str] = {}

    def __call__(self, records: DataFrame, batch: int) -> list[TableReport]:
        """Apply a batch of the canonical topic; when it returns, all of it is in tables, in quarantine, or parked."""
        started = time.perf_counter()
        task = replace(self.task(batch), parking=self._books.begin(batch))
        schemas_read = time.perf_counter()
        runs, asked = [self._run(self._decoded(records), task)], Asked()
        seconds = {"ddl": 0.0, "spark": 0.0}
        while waiting := [report for report in runs[-1] if report.waits]:
            asked.take(waiting)
            done = self.fulfil_requests(waiting)
            seconds = {"ddl": seconds["ddl"] + done.ddl, "spark": seconds["spark"] + done.spark}
            task = replace(task, refused={**task.refused, **done.refused}, spelled=dict(self._spelled))
            self._carried |= {report.route for report in waiting if report.wants_records}
            routes = {report.route for report in waiting if report.goes_on or report.table in done.refused}
            runs.append(self._run(self._decoded(records).where(col("route").isin(*routes)), task) if routes else [])
        reports = merge_reports(runs)
        if any(report.orders for run in runs for report in run):
            self.discard()
        self._log_engines(reports)
        self._weights = sum((Counter({report.bucket: report.events}) for report in reports), Counter[int]())
        self._books.end(batch, reports)
        seconds |= {"schemas": schemas_read - started, "total": time.perf_counter() - started}
        lag = self._lag.after(batch) if self._lag is not None else None
        self._metrics.batch(reports, self._books.held(), seconds, lag)
        _log_batch(batch, reports, lag, **{f"{phase}_ms": value for phase, value in seconds.items()})
        return reports

    def task(self, batch: int) -> Task:
        """The work on a batch, with the schemas that are known now."""
        catalog, spelled = self._schemas.refresh(), dict(self._spelled)
        return Task(self._tables, self.pattern, catalog, self._app, batch, self.rules, spelled=spelled)

    def _decoded(self, records: DataFrame) -> DataFrame:
        return decoded(records, self.pattern.route_sql(), carried=self._carried)

    def _run(self, events: DataFrame, task: Task) -> list[TableReport]:
        """Each table in one task, tables spread by the events that they had in the batch before."""
        tasks = 2 * events.sparkSession.sparkContext.defaultParallelism
        bins = ",".join(map(str, _balanced(self._weights, tasks)))
        placed = events.repartitionById(tasks, expr(f"element_at(array({bins}), bucket + 1)"))
        ordered = placed.sortWithinPartitions("route", "partition", "offset")
        answers = ordered.mapInArrow(task, "report binary").collect()
        reports = [msgspec.msgpack.decode(row.report, type=TableReport) for row in answers]
        mistakes = [report.misconfigured for report in reports if report.misconfigured is not None]
        if mistakes:
            raise ConfigError("; ".join(sorted(mistakes)))
        return reports

    def _log_engines(self, reports: Iterable[TableReport]) -> None:
        """Who writes a table, when that is first known, and when it changes."""
        for report in reports:
            if report.engine and self._engines.get(report.table) != report.engine:
                self._engines[report.table] = report.engine
                log.info("engine chosen", table=report.table, engine=report.engine, reason=report.why)

    def fulfil_requests(self, waiting: Sequence[TableReport]) -> Fulfilment:
        """Do what reports ask for, and note in them what it came to."""
        started = time.perf_counter()
        with ThreadPoolExecutor(DDL_THREADS) as pool:
            changing = [report for report in waiting if report.step is not None]
            names = list(pool.map(self._change, changing))  # the list takes every result, and with it every exception
        spelled = {report.table: name for report, name in zip(changing, names, strict=True) if name != report.table}
        self._spelled |= spelled
        changed = time.perf_counter()
        ordering = [report for report in waiting if report.orders]
        refused = self._writer.carry_out({report.table: report.orders for report in ordering})
        for report in ordering:
            report.version = self._writer.version(report.table)
            if report.table in refused:
                report.commits = report.rows = report.deleted = 0
        return Fulfilment(refused, spelled, changed - started, time.perf_counter() - changed)

    def discard(self) -> None:
        """Remove what was staged: all of it was written, or is refused."""
        self._writer.discard()

    def _change(self, report: TableReport) -> str:
        """Do what a report asks for; the name under which the table is there."""
        started = time.perf_counter()
        match report.step:
            case Create(shape):
                name = self._ddl.create(report.table, shape)
                if name != report.table:
                    return name
                log.info("table created", table=report.table, columns=len(shape.columns), ms=_ms(started))
            case AddColumns(columns):
                self._ddl.add_columns(report.table, columns)
                names = [column.name for column in columns]
                log.info("columns added", table=report.table, columns=names, ms=_ms(started))
            case Widen(columns):
                self._ddl.widen(report.table, columns)
                types = {column.name: column.type for column in columns}
                log.info("columns widened", table=report.table, columns=types, ms=_ms(started))
        return report.table


def _balanced(weights: Counter[int], tasks: int) -> list[int]:
    """A task for every bucket: the heaviest first, each to the task that has least; buckets without events in turn."""
    load = [0] * tasks
    placed = [bucket % tasks for bucket in range(BUCKETS)]
    for bucket, weight in weights.most_common():
        lightest = load.index(min(load))
        placed[bucket] = lightest
        load[lightest] += weight
    return placed


def _log_batch(batch: int, reports: Sequence[TableReport], lag: int | None, **seconds: float) -> None:
    for report in reports:
        if report.refused is not None:
            then = f"spark-sink resume {shlex.quote(report.table)}"
            log.error("table parked", table=report.table, reason=report.refused, events=report.parked, then=then)
    rejected = sum((Counter(report.rejected) for report in reports), Counter[str]())
    stale = sum((Counter(report.stale) for report in reports), Counter[str]())
    ignored = sum((Counter(report.ignored) for report in reports), Counter[str]())
    latency = sum((report.latency for report in reports), NONE)
    log.info(
        "batch applied",
        batch=batch,
        events=sum(report.events for report in reports),
        tables=sum(1 for report in reports if report.events),
        commits=sum(report.commits for report in reports),
        commits_skipped=sum(report.skipped for report in reports),
        rows=sum(report.rows for report in reports),
        deleted=sum(report.deleted for report in reports),
        stale=dict(stale),
        late=sum(report.late for report in reports),
        scope_changes=sum(report.scope_changes for report in reports),
        quarantined=dict(rejected),
        parked=sum(report.parked for report in reports),
        ignored=dict(ignored),
        latency_mean_ms=round(1000 * latency.sum / max(latency.count, 1)),
        latency_max_ms=round(1000 * latency.greatest),
        lag=lag,
        worker_megabytes=max((report.megabytes for report in reports), default=0),
        fold_ms=round(sum(report.fold_ms for report in reports)),
        write_ms=round(sum(report.write_ms for report in reports)),
        **{name: round(value * 1000) for name, value in seconds.items()},
    )


def _ms(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)
