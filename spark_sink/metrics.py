"""Define all of the sink's metrics, with their labels and help.

Events are counted when their batch is applied. If a batch is applied again after a failure, it is counted again.
"""

from __future__ import annotations

import math
import time
from collections import Counter as Counted
from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import Counter, Gauge
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from cdc_core.metrics_registry import process_registry
from spark_sink.control_tables.verified import Standing
from spark_sink.errors import Reason
from spark_sink.events.grouping import EXCLUDED
from spark_sink.events.parking import Cause
from spark_sink.table_report import (
    LATENCY_BOUNDS,
    NO_LATENCY,
    Latency,
    TableReport,
)

# The label that all tables above the limit share.
OTHER = "other"


class Metrics:
    """The metrics of the process, in a registry of their own.

    Args:
        tables: the number of tables that have their own label. The first tables to appear get a label of their own.
    """

    def __init__(self, tables: int) -> None:
        self._room = tables
        self._tables: set[str] = set()
        self.registry = process_registry()
        self._events = self._counter("events", "Row events read, by table.", "table")
        self._commits = self._counter("commits", "Commits to tables.", "table")
        self._stale = self._counter("stale_events", "Events that changed nothing, by reason.", "reason")
        self._undecided = self._counter(
            "undecided_removals",
            (
                "Rows that were removed while two rows may have had the same key. The row that remains is marked as "
                "incomplete."
            ),
        )
        self._truncated = self._counter("truncated_times", "Times that were truncated to the microsecond.")
        self._rejected = self._counter("quarantined_events", "Events that went to quarantine, by reason.", "reason")
        self._statements = self._counter(
            "statements_unaccounted",
            "Statements after which a table differs from its source, or may differ, by table and note.",
            "table",
            "note",
        )
        self._parked = self._counter("parked_events", "Events that were parked instead of applied.")
        self._excluded = self._counter("excluded_events", "Events of tables that tables.exclude excludes.")
        self._batches = self._counter("batches", "Batches applied.")
        self._seconds = self._counter(
            "batch_seconds",
            "Duration of batches: the total, its phases, and the sums of folding and writing over all tasks.",
            "phase",
        )
        self._parked_tables = self._gauge("parked_tables", "Tables that are parked, except those being reloaded.")
        self._reloading = self._gauge("reloading_tables", "Tables that are being reloaded.")
        self._waiting = self._gauge("parked_events_waiting", "Parked events of tables that have not been resumed.")
        self._ended = self._gauge("last_batch_timestamp_seconds", "Time at which the newest batch was applied.")
        self._lag = self._gauge(
            "lag_records", "Number of records by which the sink lagged behind the topic at the end of a batch."
        )
        self._lag.set(math.nan)
        self._maintained = self._counter("maintenance_steps", "Maintenance steps that were completed.", "step")
        self._maintenance_seconds = self._counter("maintenance_seconds", "Duration of maintenance, by step.", "step")
        self._maintenance_failed = self._counter(
            "maintenance_failures", "Tables whose maintenance was postponed because a step failed."
        )
        self._beside = self._counter(
            "columns_beside",
            (
                "Columns that were added with a suffix, because the existing column cannot hold the new type at the "
                "source."
            ),
        )
        self._unregistered = self._counter("registration_failures", "Tables or views that the catalog rejected.")
        self._lineage_failures = self._counter(
            "lineage_failures", "Lineage events that their receiver did not accept (lineage.to)."
        )
        self._verified = self._gauge(
            "last_verified_timestamp_seconds",
            "Time at which `spark-sink verify` last verified all rows of a table.",
            "table",
            "against",
        )
        self._differing = self._gauge(
            "verify_differing_rows", "Rows that differed in the last conclusive verification.", "table", "against"
        )
        self._latency = _LatencyHistogram()
        self.registry.register(self._latency)

    def batch(
        self,
        reports: Sequence[TableReport],
        held: Mapping[str, Cause],
        seconds: Mapping[str, float],
        lag: int | None = None,
    ) -> None:
        """Count a batch, and set which tables are parked after it. If the lag is unknown, the lag metric keeps its
        value.
        """
        for report in reports:
            table = self._label(report.table)
            counters = report.counters
            self._events.labels(table).inc(counters.events)
            self._commits.labels(table).inc(counters.commits)
            self._parked.inc(report.parked)
            self._excluded.inc(counters.ignored.get(EXCLUDED, 0))
            for note, count in counters.statements.items():
                self._statements.labels(table, note).inc(count)
            for reason, count in counters.stale.items():
                self._stale.labels(reason).inc(count)
            self._undecided.inc(counters.undecided)
            self._truncated.inc(counters.truncated)
            for reason, count in counters.rejected.items():
                self._rejected.labels(reason).inc(count)
            self._latency.add(counters.latency)
        work = {
            "fold": sum(report.counters.fold_ms for report in reports) / 1000,
            "write": sum(report.counters.write_ms for report in reports) / 1000,
        }
        for phase, value in {**work, **seconds}.items():
            self._seconds.labels(phase).inc(value)
        self._batches.inc()
        self._ended.set(time.time())
        if lag is not None:
            self._lag.set(lag)
        self.parked(held)

    def parked(self, held: Mapping[str, Cause]) -> None:
        """Set the parked tables."""
        reloading = sum(cause.reason == Reason.RELOAD for cause in held.values())
        self._parked_tables.set(len(held) - reloading)
        self._reloading.set(reloading)
        self._waiting.set(sum(cause.events for cause in held.values()))

    def statement(self, table: str, note: str) -> None:
        """Count a statement that affects all tables in a database or source."""
        self._statements.labels(table, note).inc()

    def maintained(self, step: str, seconds: float) -> None:
        """Count a maintenance step."""
        self._maintained.labels(step).inc()
        self._maintenance_seconds.labels(step).inc(seconds)

    def verified(self, standings: Iterable[Standing]) -> None:
        """Set the results of verifications. Tables that share a label show the oldest of their times, and the total of
        their rows.
        """
        times: dict[tuple[str, str], float] = {}
        differing: Counted[tuple[str, str]] = Counted()
        for last, verified, conclusive in standings:
            labels = self._label(last.table), last.against
            if conclusive is not None:
                differing[labels] += conclusive.differing or 0
            if verified is not None:
                times[labels] = min(times.get(labels, math.inf), verified.at.timestamp())
        self._verified.clear()
        self._differing.clear()
        for labels, time_verified in times.items():
            self._verified.labels(*labels).set(time_verified)
        for labels, count in differing.items():
            self._differing.labels(*labels).set(count)

    def maintenance_failed(self) -> None:
        """Count a maintenance step that failed."""
        self._maintenance_failed.inc()

    def columns_beside(self, count: int) -> None:
        """Count columns that were added as another version of an existing column."""
        self._beside.inc(count)

    def registration_failed(self) -> None:
        """Count a table that the catalog rejected. Registration is retried later."""
        self._unregistered.inc()

    def lineage_failed(self) -> None:
        """Count a lineage event that was not delivered."""
        self._lineage_failures.inc()

    def _label(self, table: str) -> str:
        if table not in self._tables:
            if len(self._tables) >= self._room:
                return OTHER
            self._tables.add(table)
        return table

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"cdc_sink_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"cdc_sink_{name}", text, labels, registry=self.registry)


class _LatencyHistogram(Collector):
    """A histogram that is filled bucket by bucket. The Prometheus client's own histogram takes single values, but the
    workers send counts per bucket.
    """

    def __init__(self) -> None:
        self._total = NO_LATENCY

    def add(self, latency: Latency) -> None:
        self._total += latency

    def collect(self) -> Iterator[HistogramMetricFamily]:
        total = self._total
        buckets = [(str(bound), float(count)) for bound, count in zip(LATENCY_BOUNDS, total.within, strict=True)]
        text = "Time from the commit at the source to the commit of the table, for applied events."
        family = HistogramMetricFamily("cdc_sink_latency_seconds", text)
        family.add_metric([], [*buckets, ("+Inf", float(total.count))], total.sum)
        yield family
