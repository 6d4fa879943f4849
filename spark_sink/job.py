"""The running query: started, restarted after one known fault of Spark and to take batches of another size, stopped
between batches; nowhere else."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import structlog
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_sink import signals
from spark_sink.apply.driver import Applier
from spark_sink.batch_sizing import FULL, Pace
from spark_sink.config.settings import Settings
from spark_sink.control_tables.requests import Requests
from spark_sink.errors import FatalError
from spark_sink.events.offset_span import merge_spans
from spark_sink.events.source import stream
from spark_sink.operations.maintenance import Maintenance
from spark_sink.operations.registration import Registration
from spark_sink.probes import Health
from spark_sink.spark import session as spark_session
from spark_sink.spark.checkpoint import check_id
from spark_sink.spark.failures import SPARK_ERRORS, failure, overtaken
from spark_sink.table_report import TableReport

log = structlog.get_logger()

# A start that replays a batch meets the fault once; more is something else.
MAX_RESTARTS = 3

POLL_SECONDS = 1

# It writes a stack trace for a batch that shall not begin, and one for the fault that follows when it is begun again.
_NOISY_LOGGER = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"


class _Stopping(Exception):
    """Raised in place of a batch that shall not begin."""


def _unexpected(record: logging.LogRecord) -> bool:
    """Py4J logs what comes out of a batch."""
    return record.exc_info is None or not isinstance(record.exc_info[1], _Stopping | FatalError)


class Job:
    """One streaming query over its life, restarts included."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        apply: Applier[DataFrame],
        requests: Requests,
        maintenance: Maintenance,
        checkpoint: str,
        starting: str,
        registration: Registration | None = None,
        *,
        health: Health,
        available_now: bool,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._apply = apply
        self._requests = requests
        self._maintenance = maintenance
        self._registration = registration
        self._health = health
        # The last batch took all that it might: more waits, and maintenance does too.
        self._behind = False
        self._starting = starting
        # Its id, until the first batch has found it there still.
        self._unsure: str | None = checkpoint
        # Held by whoever writes tables: the query's thread in a batch, or this one for commands while no batch comes.
        self._writing = threading.Lock()
        self._requests_run_at = time.monotonic()
        self._available_now = available_now
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        batches = settings.batches
        self._pace = Pace(batches.max_offsets, batches.target_seconds, batches.worker_megabytes)
        # Between a change of the limit or the cores and the next start of the query, which alone can take it.
        self._resizing = threading.Event()
        # Of all executors, when the query was planned.
        self._cores = 0
        self._restarts = 0
        self._turned_away = False
        self._muted = False
        self._first = True

    def run(self) -> None:
        """Run until the end, a stop, or a failure."""
        logging.getLogger("py4j.clientserver").addFilter(_unexpected)
        with signals.handled(self._on_signal):
            # What was asked for while the sink was down. A run to the end of the topic may have no second occasion.
            with self._health.working():
                while self._requests.run() and self._available_now and not self._stopping.is_set():
                    pass
            while not self._finished(self._start()):
                pass
            if self._available_now and not self._stopping.is_set():
                self._maintenance.turn()
        log.info("stopped" if self._stopping.is_set() else "caught up")

    def stop(self) -> None:
        """Let the running batch end, and begin no other."""
        self._stopping.set()

    def _on_signal(self, name: str) -> None:
        log.info("stopping after the running batch", signal=name)
        self.stop()

    def _start(self) -> StreamingQuery:
        self._resizing.clear()
        self._mute_spark_log(self._turned_away)
        self._turned_away = False
        self._first = True
        self._cores = spark_session.follow_cores(self._spark)
        records = stream(self._spark, self._settings, self._starting, self._pace.limit)
        writer = records.writeStream.foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", self._settings.checkpoint)
        if self._available_now:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{self._settings.batches.trigger_seconds} seconds")
        try:
            return writer.start()
        except SPARK_ERRORS as error:
            raise overtaken(error, self._settings.checkpoint) or failure(error) from None

    def _batch(self, records: DataFrame, batch: int) -> None:
        if self._stopping.is_set() or self._resizing.is_set():
            self._turned_away = True
            self._mute_spark_log(True)
            raise _Stopping
        self._mute_spark_log(self._muted and self._first)
        self._first = False
        self._health.begin()
        try:
            with self._writing:
                self._check_checkpoint()
                self._run_requests()
                self._maintain()
                started = perf_counter()
                reports = self._apply(records, batch)
                self._maintenance.applied(reports)
                if self._registration is not None:
                    self._registration.applied(reports)
                self._resize(reports, perf_counter() - started)
                self._spread()
        except Exception as error:
            # Through Spark it would come back as text.
            self._failure = failure(error) if isinstance(error, SPARK_ERRORS) else error
            self._mute_spark_log(isinstance(self._failure, FatalError))  # which says it all, once, at the end
            raise self._failure from None

    def _check_checkpoint(self) -> None:
        """Spark has written what the first batch takes: from here on the checkpoint is ours, if it still is."""
        if self._unsure is not None:
            check_id(self._spark, self._settings.checkpoint, self._unsure)
            self._unsure = None

    def _resize(self, reports: Sequence[TableReport], seconds: float) -> None:
        """Let the query end if later batches shall be of another size. One that Spark has planned by then begins with
        the next start, and is of the old size."""
        if any(report.counters.skipped for report in reports):
            return  # in part it was done before a crash: what it costs as a whole is not known
        taken = merge_spans(report.extent for report in reports).offsets
        self._behind = taken >= FULL * self._pace.limit
        change = self._pace.after(taken, seconds, max((report.counters.megabytes for report in reports), default=0))
        if change is not None:
            log.info("batch size changed", **{"from": change.before, "to": change.after, "why": change.why})
            self._resizing.set()

    def _spread(self) -> None:
        """Let the query end if executors have come since it was planned: the next start reads with all of them."""
        cores: int = self._spark.sparkContext.defaultParallelism
        if cores > self._cores:
            log.info("more cores", **{"from": self._cores, "to": cores})
            self._resizing.set()

    def _mute_spark_log(self, muted: bool) -> None:
        """A batch was turned away: nobody has to hear of it, up to the end of its second beginning."""
        if muted != self._muted:
            spark_session.log_level(self._spark, _NOISY_LOGGER, "OFF" if muted else "ERROR")
            self._muted = muted

    def _run_requests(self) -> None:
        """Execute commands; between batches."""
        self._requests.run()
        self._requests_run_at = time.monotonic()

    def _maintain(self) -> None:
        """Take a turn of maintenance, if one is due and no events wait for it."""
        if not self._behind and self._maintenance.is_due():
            self._maintenance.turn()

    def _work_when_idle(self) -> None:
        """Maintain tables between two batches, and execute commands while none comes to a topic that is at rest."""
        if not self._writing.acquire(blocking=False):
            return
        try:
            if time.monotonic() - self._requests_run_at >= max(POLL_SECONDS, self._settings.batches.trigger_seconds):
                self._run_requests()
            self._maintain()
        finally:
            self._writing.release()

    def _finished(self, query: StreamingQuery) -> bool:
        """Wait for the query; whether it is done with, rather than to be started again."""
        stopped = False
        try:
            while not query.awaitTermination(POLL_SECONDS):
                self._health.beat()
                if self._health.missing() and query.lastProgress is not None:
                    self._health.begin()  # it was looked for a batch, and there may be none
                ending = self._stopping.is_set() or self._resizing.is_set()
                if ending and not query.status["isTriggerActive"]:
                    query.stop()
                    stopped = True
                elif not self._stopping.is_set():
                    with self._health.working():
                        self._work_when_idle()
        except StreamingQueryException as error:
            if self._turned_away:
                self._restarts = 0
                return self._stopping.is_set()
            if self._failure is None and _is_metrics_fault(query) and self._restarts < MAX_RESTARTS:
                self._restarts += 1
                fault = "NullPointerException in KafkaMicroBatchStream.metrics"
                log.warning("query restarted", fault=fault, count=self._restarts)
                return False
            if isinstance(self._failure, FatalError):
                raise self._failure from None
            if self._failure is None and (other := overtaken(error, self._settings.checkpoint)):
                raise other from None
            raise FatalError(f"the streaming query failed: {_first_line(self._failure or error)}") from error
        # One that ended by itself is at the end of the topic.
        return self._stopping.is_set() or not stopped


def _is_metrics_fault(query: StreamingQuery) -> bool:
    """Spark 4.1.1: a start that replays a batch dies after that batch was acknowledged (apache/spark PR 56526)."""
    failure: Any = query._jsq.exception()
    cause = failure.get().cause() if failure.isDefined() else None
    if cause is None or cause.getClass().getName() != "java.lang.NullPointerException":
        return False
    frames = cause.getStackTrace()
    where = [frame.getClassName() for frame in frames[:1] if frame.getMethodName() == "metrics"]
    return any("KafkaMicroBatchStream" in name for name in where)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
