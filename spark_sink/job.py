"""Run the streaming query: start it, restart it, and stop it between batches."""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

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
from spark_sink.operations.verified_metrics import VerifiedMetrics
from spark_sink.probes import Health
from spark_sink.spark import session as spark_session
from spark_sink.spark.checkpoint import check_id
from spark_sink.spark.failures import SPARK_ERRORS, failure, is_metrics_fault, overtaken
from spark_sink.table_report import TableReport

log = structlog.get_logger()

# A start that replays a batch hits the metrics fault once. If the fault occurs more often, it has a different cause.
MAX_RESTARTS = 3

POLL_SECONDS = 1

# This logger writes a stack trace when a batch is rejected, and another stack trace when that batch begins again.
_NOISY_LOGGER = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"


class _TurnedAway(Exception):
    """Raised in place of applying a batch if the query is about to end."""


class _Order(enum.IntEnum):
    """The query's next step after the running batch."""

    CONTINUE = 0
    RESTART = 1
    """Restart the query. Only a restart can change the batch size or make use of executors that joined later."""
    STOP = 2


class _Orders:
    """The current order. It may come from the query's thread, the main thread or a signal handler. STOP is final."""

    def __init__(self) -> None:
        # Reentrant, because a signal handler can run in a thread that already holds the lock.
        self._lock = threading.RLock()
        self._order = _Order.CONTINUE

    @property
    def current(self) -> _Order:
        return self._order

    @property
    def stop(self) -> bool:
        return self._order is _Order.STOP

    def give(self, order: _Order) -> None:
        """Set an order, unless a stronger one applies."""
        with self._lock:
            self._order = max(self._order, order)

    def restarted(self) -> None:
        """Clear RESTART when the query starts, because this completes the order."""
        with self._lock:
            if self._order is _Order.RESTART:
                self._order = _Order.CONTINUE


@dataclass
class _Run:
    """One start of the query.

    Args:
        cores: the total number of executor cores when Spark planned the query.
        batches: the number of batches that began.
        ended_by: the exception that ended the last batch, if any.
    """

    cores: int
    batches: int = 0
    ended_by: Exception | None = None


def _unexpected(record: logging.LogRecord) -> bool:
    """Keep Py4J from logging two exceptions, because they are expected or reported elsewhere."""
    return record.exc_info is None or not isinstance(record.exc_info[1], _TurnedAway | FatalError)


class Job:
    """A streaming query over its whole lifetime, including restarts."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        apply: Applier[DataFrame],
        requests: Requests,
        maintenance: Maintenance,
        verified: VerifiedMetrics,
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
        self._verified = verified
        self._registration = registration
        self._health = health
        # Whether the last batch reached the limit. If so, more events are waiting, and maintenance is postponed.
        self._behind = False
        self._starting = starting
        # The checkpoint's id, which is cleared once the first batch has verified it.
        self._unverified: str | None = checkpoint
        # Held while tables are written, either by the query's thread during a batch, or by the main thread for commands
        # and maintenance between batches.
        self._writing = threading.Lock()
        self._requests_run_at = time.monotonic()
        self._available_now = available_now
        batches = settings.batches
        self._pace = Pace(batches.max_offsets, batches.target_seconds, batches.worker_megabytes)
        self._orders = _Orders()
        self._run_of_query = _Run(cores=0)
        self._restarts = 0
        self._muted = False

    def run(self) -> bool:
        """Run until the topic ends, the job is stopped, or a failure occurs. Return whether the job was stopped."""
        logging.getLogger("py4j.clientserver").addFilter(_unexpected)
        with signals.handled(self._on_signal):
            # Execute the commands that were queued while the sink was down. With --available-now, there may be no later
            # opportunity.
            with self._health.working():
                while self._requests.run() and self._available_now and not self._orders.stop:
                    pass
            while not self._finished(self._start()):
                pass
            if self._available_now and not self._orders.stop:
                self._maintenance.turn()
        log.info("stopped" if self._orders.stop else "caught up")
        return self._orders.stop

    def stop(self) -> None:
        """Let the running batch finish, and do not start another batch."""
        self._orders.give(_Order.STOP)

    def _on_signal(self, name: str) -> None:
        log.info("stopping after the current batch", signal=name)
        self.stop()

    def _start(self) -> StreamingQuery:
        self._orders.restarted()
        self._mute_spark_log(isinstance(self._run_of_query.ended_by, _TurnedAway))
        self._run_of_query = _Run(spark_session.follow_cores(self._spark))
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
        run = self._run_of_query
        if self._orders.current is not _Order.CONTINUE:
            run.ended_by = _TurnedAway()
            self._mute_spark_log(True)
            raise run.ended_by
        self._mute_spark_log(self._muted and run.batches == 0)
        run.batches += 1
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
            # Store the exception here, because Spark reports it only as text.
            run.ended_by = failure(error) if isinstance(error, SPARK_ERRORS) else error
            # A FatalError is reported once, in full, when the sink ends.
            self._mute_spark_log(isinstance(run.ended_by, FatalError))
            raise run.ended_by from None

    def _check_checkpoint(self) -> None:
        """Check that no other sink has taken over the checkpoint. When the first batch runs, Spark has already written
        to the checkpoint.
        """
        if self._unverified is not None:
            check_id(self._spark, self._settings.checkpoint, self._unverified)
            self._unverified = None

    def _resize(self, reports: Sequence[TableReport], seconds: float) -> None:
        """Restart the query if later batches need a different size.

        If Spark has already planned a batch, this batch keeps the old size and runs after the restart.
        """
        if any(report.counters.skipped for report in reports):
            return  # Part of the batch was done before a crash, so its total time is unknown.
        taken = merge_spans(report.extent for report in reports).offsets
        self._behind = taken >= FULL * self._pace.limit
        change = self._pace.after(taken, seconds, max((report.counters.megabytes for report in reports), default=0))
        if change is not None:
            log.info("batch size changed", **{"from": change.before, "to": change.after, "why": change.why})
            self._orders.give(_Order.RESTART)

    def _spread(self) -> None:
        """If executors joined after the query was planned, restart it, so that they also read."""
        cores: int = self._spark.sparkContext.defaultParallelism
        planned = self._run_of_query.cores
        if cores > planned:
            log.info("cores added", **{"from": planned, "to": cores})
            self._orders.give(_Order.RESTART)

    def _mute_spark_log(self, muted: bool) -> None:
        """Mute Spark's log for a rejected batch until that batch begins again."""
        if muted != self._muted:
            spark_session.log_level(self._spark, _NOISY_LOGGER, "OFF" if muted else "ERROR")
            self._muted = muted

    def _run_requests(self) -> None:
        """Execute queued commands between batches."""
        self._requests.run()
        self._verified.refresh()
        self._requests_run_at = time.monotonic()

    def _maintain(self) -> None:
        """Maintain tables if a run is due and no events are waiting."""
        if not self._behind and self._maintenance.is_due():
            self._maintenance.turn()

    def _work_when_idle(self) -> None:
        """While the query waits for events, maintain tables and execute commands."""
        if not self._writing.acquire(blocking=False):
            return
        try:
            if time.monotonic() - self._requests_run_at >= max(POLL_SECONDS, self._settings.batches.trigger_seconds):
                self._run_requests()
            self._maintain()
        finally:
            self._writing.release()

    def _finished(self, query: StreamingQuery) -> bool:
        """Wait until the query ends. Return False if the query has to start again."""
        run, stopped = self._run_of_query, False
        try:
            while not query.awaitTermination(POLL_SECONDS):
                self._health.beat()
                if self._health.missing() and query.lastProgress is not None:
                    self._health.begin()  # Spark has looked for a batch, and may have found none.
                if self._orders.current is not _Order.CONTINUE and not query.status["isTriggerActive"]:
                    query.stop()
                    stopped = True
                elif not self._orders.stop:
                    with self._health.working():
                        self._work_when_idle()
        except StreamingQueryException as error:
            match run.ended_by:
                case _TurnedAway():
                    self._restarts = 0
                    return self._orders.stop
                case FatalError() as fatal:
                    raise fatal from None
                case None if is_metrics_fault(query) and self._restarts < MAX_RESTARTS:
                    self._restarts += 1
                    fault = "NullPointerException in KafkaMicroBatchStream.metrics"
                    log.warning("query restarted", fault=fault, count=self._restarts)
                    return False
                case None if (other := overtaken(error, self._settings.checkpoint)) is not None:
                    raise other from None
                case cause:
                    raise FatalError(f"the streaming query failed: {_first_line(cause or error)}") from error
        # If nobody stopped the query, it has reached the end of the topic.
        return self._orders.stop or not stopped


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
