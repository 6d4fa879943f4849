"""All metrics, with their labels and help.

The accounting counters are incremented together when a batch is acknowledged. At every scrape, `records_in = translated
+ dead + skipped + learned` therefore holds for each partition.
"""

from __future__ import annotations

import time
from collections import Counter as Tallies
from collections.abc import Iterable
from typing import TypeVar, cast

from msgspec import Struct, field
from prometheus_client import Counter, Gauge, Histogram, Summary, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from cdc_core.envelope import ChangeEvent
from cdc_core.metrics_registry import process_registry, shown
from cdc_core.statement_notes import statement_notes
from translator._native.layout import OperationTotal
from translator.message import Counted
from translator.service.table_metrics import ALL, TableMetrics
from translator.state.partition_stops import PartitionStop

PARTITION = ("source", "topic", "partition")

# Latencies are mostly between 1 and 100 ms, so the buckets are narrow there.
_LATENCY_BOUNDS = (
    *(0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1),
    *(0.2, 0.5, 1.0, 5.0, 30.0),
)

M = TypeVar("M", bound=MetricWrapperBase)


class BatchAccount(Struct):
    """The account of one batch: its records by outcome. It is counted when the batch is acknowledged."""

    source: str
    topic: str
    partition: int
    records: int = 0
    translated: int = 0
    learned: int = 0
    dead: Tallies[str] = field(default_factory=Tallies)
    skipped: Tallies[str] = field(default_factory=Tallies)
    changes: Tallies[Counted] = field(default_factory=Tallies)
    committed_us: dict[Counted, int] = field(default_factory=dict)
    """The commit time of the last event of each table, as far as it is known, in microseconds since 1970."""
    newest_us: int | None = None
    """Commit time of the last event that has a commit time."""
    statements: Tallies[tuple[Counted, str]] = field(default_factory=Tallies)
    """Row changes that a statement announced but that no event contains, by table and note."""
    written: Tallies[str] = field(default_factory=Tallies)
    refused: Tallies[tuple[str, str]] = field(default_factory=Tallies)
    """Records that were translated but could not be written to a projection, by projection and code."""
    native: Tallies[str] = field(default_factory=Tallies)
    """Records by what the native path did: translated, or the reason why the plain path handled them."""
    next_offset: int | None = None
    """Offset of the raw record after the batch, or None if the batch is not part of a partition."""
    newest_record_ms: int | None = None
    """The last raw record's timestamp, in milliseconds since 1970, or None if the record has no timestamp."""
    middle_record_ms: int | None = None
    """The middle raw record's timestamp, in the same unit. It stands for the whole batch, whose records have waited for
    different times to be fetched.
    """
    fetched: float | None = None
    """Time at which the service got the batch from its consumer, on the monotonic clock in seconds, as for `begun` and
    `sent`. It is None outside the service, because no other program measures the stages.
    """
    begun: float = 0.0
    """Time at which translation began."""
    sent: float = 0.0
    """Time at which the last record was passed to the delivery."""

    def count(self, events: Iterable[ChangeEvent]) -> None:
        """Count a record's events."""
        for event in events:
            counted = Counted(event.db, event.schema, event.table, event.op or event.kind)
            self.changes[counted] += 1
            if event.kind == "schema":
                words = {note.word for note in statement_notes(event.notes)}
                self.statements.update((counted, word) for word in words)
            if event.ts_commit_us is not None:
                self.committed_us[counted] = self.newest_us = event.ts_commit_us

    def count_taken(self, totals: Iterable[OperationTotal]) -> None:
        """Count the rows of translated records."""
        for operation, _, rows, committed_us in totals:
            self.changes[operation.counted] += rows
            if committed_us is not None:
                self.committed_us[operation.counted] = self.newest_us = committed_us

    @property
    def events(self) -> Tallies[str]:
        """Return the events by operation or kind."""
        found: Tallies[str] = Tallies()
        for counted, count in self.changes.items():
            found[counted.op] += count
        return found


class Metrics:
    """The process's metrics, in a separate registry.

    Args:
        tables: how many tables get their own label. The first ones do.
        configuration: the configuration digest.
    """

    def __init__(self, version: str, tables: int = 0, configuration: str = "", plugins: str = "") -> None:
        self._tables = TableMetrics(tables)
        self.registry = process_registry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, (*PARTITION, *labels), registry=self.registry)

        self._in = counter("cdc_records_in_total", "Raw records read and accounted for.")
        self._translated = counter("cdc_records_translated_total", "Raw records that became events.")
        self._learned = counter("cdc_records_learned_total", "Raw records that contained metadata for the catalog.")
        self._dead = counter("cdc_records_dead_total", "Raw records that became dead letters.", "code")
        self._skipped = counter(
            "cdc_records_skipped_total", "Raw records without a change, such as tombstones.", "reason"
        )
        self._events = counter("cdc_events_out_total", "Events translated, by operation (rows) or kind.", "op")
        self.registry.register(self._tables)
        self._statements = Counter(
            "cdc_statements_not_applied_total",
            "Statements that changed existing rows without row events, by table and note. Limited by metrics.tables.",
            ("source", "table", "note"),
            registry=self.registry,
        )
        self._series: dict[tuple[MetricWrapperBase, tuple[str, ...]], MetricWrapperBase] = {}
        self._lag = Gauge(
            "cdc_source_lag_seconds",
            (
                "Time from the commit of the last event at the source to its acknowledgement. Absent without commit "
                "times."
            ),
            ("source",),
            registry=self.registry,
        )
        self._latency = Histogram(
            "cdc_latency_seconds",
            "Time that a batch of raw records spent in each stage: fetch (since the middle record's timestamp), queue, "
            "translate, deliver. Each acknowledged batch counts once.",
            ("source", "stage"),
            buckets=_LATENCY_BOUNDS,
            registry=self.registry,
        )
        self._lag_records = Gauge(
            "cdc_partition_lag_records",
            "Unacknowledged offsets of an owned partition. Some have no record.",
            PARTITION,
            registry=self.registry,
        )
        self._lag_seconds = Gauge(
            "cdc_partition_lag_seconds",
            "Age of the oldest unacknowledged record of an owned partition, by its timestamp. It is 0 when idle.",
            PARTITION,
            registry=self.registry,
        )
        self.lag_seen = Gauge(
            "cdc_lag_seen_timestamp_seconds",
            "Time of the last query for end offsets, in seconds since 1970.",
            registry=self.registry,
        )
        self.given_up = Counter(
            "cdc_rebalances_total", "Number of times this process handed over its partitions.", registry=self.registry
        )
        self._written = counter("cdc_records_out_total", "Event records written, by topic.", "output")
        self._refused = counter(
            "cdc_records_refused_total",
            "Raw records that were translated but became dead letters of a projection.",
            "output",
            "code",
        )
        self._native = counter(
            "cdc_native_messages_total",
            (
                "Raw records of sources with a native path, by outcome: translated on that path, or the reason why "
                "they were not."
            ),
            "outcome",
        )
        self.native_disabled = Gauge(
            "cdc_native_path_disabled",
            "1 if the self-check has found a difference between the native and the plain path since the process "
            "started. Otherwise 0.",
            ("source",),
            registry=self.registry,
        )
        self.gaps = counter("cdc_gaps_accepted_total", "Accepted gaps (--accept-gap).")
        self.missing = counter(
            "cdc_offsets_missing_total", "Offsets in accepted gaps, as far as their number is known."
        )
        self.transactions = Summary(
            "cdc_transaction_seconds",
            "Seconds that it took to end a transaction (delivery: exactly_once).",
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "cdc_batches_in_flight", "Batches that were read but are not acknowledged yet.", registry=self.registry
        )
        self.events_in_flight = Gauge(
            "cdc_events_in_flight",
            "Records that were passed to the producer and have no delivery report yet.",
            registry=self.registry,
        )
        self.bytes_waiting = Gauge(
            "cdc_bytes_waiting",
            "Bytes of raw records that were read but are not translated yet.",
            registry=self.registry,
        )
        self.waiting = Gauge(
            "cdc_partitions_waiting", "Partitions whose next record is waiting for metadata.", registry=self.registry
        )
        self.held = Gauge(
            "cdc_tables_held",
            "Tables of raw partitions that are held until a dead letter is replayed (on_error: hold_table).",
            registry=self.registry,
        )
        self._stopped = Gauge(
            "cdc_partition_stopped",
            "1 if a partition has stopped before its next record, by error code (on_error: stop, contradictions).",
            (*PARTITION, "code"),
            registry=self.registry,
        )
        self.conflicts = Counter(
            "cdc_metadata_conflicts_total",
            "Metadata documents that contradict another one with the same id.",
            ("source",),
            registry=self.registry,
        )
        self.lineage_failures = Counter(
            "cdc_lineage_failures_total",
            "Lineage events that their receiver did not accept (lineage.to).",
            registry=self.registry,
        )
        self.topics = Gauge("cdc_topics_subscribed", "Raw topics that this process reads.", registry=self.registry)
        self.assigned = Gauge("cdc_partitions_assigned", "Partitions that this process owns.", registry=self.registry)
        info = Gauge(
            "cdc_build_info",
            "Always 1. The labels contain the version, and the dialect plug-ins in use with their versions.",
            ("version", "plugins"),
            registry=self.registry,
        )
        info.labels(version, plugins).set(1)
        config = Gauge("cdc_config_info", "Always 1; the label is a digest.", ("hash",), registry=self.registry)
        config.labels(configuration).set(1)

    def account(self, account: BatchAccount) -> None:
        """Add an acknowledged batch."""
        where = (account.source, account.topic, str(account.partition))
        self._of(self._in, *where).inc(account.records)
        self._of(self._translated, *where).inc(account.translated)
        self._of(self._learned, *where).inc(account.learned)
        for family, tallies in (
            (self._dead, account.dead),
            (self._skipped, account.skipped),
            (self._events, account.events),
            (self._written, account.written),
            (self._native, account.native),
        ):
            for label, count in tallies.items():
                self._of(family, *where, label).inc(count)
        for labels, count in account.refused.items():
            self._of(self._refused, *where, *labels).inc(count)
        self._tables.add(account.source, account.changes, account.committed_us)
        for (counted, note), count in account.statements.items():
            name = self._tables.label(account.source, counted) or ALL
            self._of(self._statements, account.source, name, note).inc(count)
        if account.newest_us is not None:
            self._of(self._lag, account.source).set(time.time() - account.newest_us / 1e6)
        if account.fetched is not None:
            self._observe_stages(account, account.fetched, time.monotonic())

    def _observe_stages(self, account: BatchAccount, fetched: float, acknowledged: float) -> None:
        """Observe how long each stage of a batch took."""
        seconds = {
            "queue": account.begun - fetched,
            "translate": account.sent - account.begun,
            "deliver": acknowledged - account.sent,
        }
        if account.middle_record_ms is not None:
            # Records have timestamps from another computer. If its clock is fast, the difference can be negative.
            # Negative values would make the histogram's sum decrease, which Prometheus takes for a restart.
            fetched_at = time.time() - (acknowledged - fetched)
            seconds["fetch"] = max(0.0, fetched_at - account.middle_record_ms / 1000)
        for stage, took in seconds.items():
            self._of(self._latency, account.source, stage).observe(took)

    def tell_lag(self, source: str, topic: str, partition: int, records: int, seconds: float) -> None:
        """Set a partition's lag."""
        where = (source, topic, str(partition))
        self._lag_records.labels(*where).set(records)
        self._lag_seconds.labels(*where).set(seconds)

    def forget_lag(self) -> None:
        """Remove the metrics for partitions that were handed over, because another process reports them."""
        self._lag_records.clear()
        self._lag_seconds.clear()

    def tell_stop(self, stop: PartitionStop) -> None:
        """Show that a partition is stopped."""
        self._stopped.labels(stop.source, stop.topic, str(stop.partition), stop.code).set(1)

    def forget_stops(self) -> None:
        """Remove the stops of partitions that were handed over. The next owner finds them again."""
        self._stopped.clear()

    def _of(self, metric: M, *labels: str) -> M:
        """Return a metric's series. The library takes 3 us to find one, so they are stored. Only for metrics whose
        series are never removed.
        """
        found = self._series.get((metric, labels))
        if found is None:
            found = self._series[metric, labels] = metric.labels(*labels)
        return cast(M, found)

    def exposition(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(shown(self.registry))
