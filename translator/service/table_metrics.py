"""The events and the newest commit time of each table, as metrics.

A batch can contain changes of thousands of tables. The totals are therefore kept in dictionaries, and the series are
created when Prometheus scrapes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

Counted: TypeAlias = tuple[str | None, str | None, str | None, str]
"""Database, schema and table. For rows, the operation follows, and for other events, the kind."""

OTHER = "other"
"""Label for all tables beyond the limit."""

ALL = "all"
"""Label for all tables in a database or source, for a statement that affects them."""

_LONGEST = 256
"""Maximum length of a table name in a label. Longer names count as OTHER."""


class TableMetrics(Collector):
    """The totals of each table.

    Args:
        tables: how many tables get their own label. The first ones do.
    """

    def __init__(self, tables: int) -> None:
        self._room = tables
        self._tables: set[tuple[str, str]] = set()
        self._events: dict[tuple[str, Counted], int] = {}
        self._committed_us: dict[tuple[str, Counted], int] = {}

    def add(self, source: str, changes: Mapping[Counted, int], committed_us: Mapping[Counted, int]) -> None:
        """Add the events of an acknowledged batch, and the time of each table's last commit."""
        events, newest = self._events, self._committed_us
        for counted, count in changes.items():
            key = source, counted
            if key in events:
                events[key] += count
            elif (name := self.label(source, counted)) is not None:
                if name == OTHER:
                    key = source, (None, None, OTHER, counted[-1])
                events[key] = events.get(key, 0) + count
        for counted, time_us in committed_us.items():
            key = source, counted
            known = newest.get(key)
            # The table's partitions may be acknowledged in any order.
            if known is None:
                if self.label(source, counted) not in (None, OTHER):
                    newest[key] = time_us
            elif time_us > known:
                newest[key] = time_us

    def label(self, source: str, counted: Counted) -> str | None:
        """Return a table's label, or OTHER. Names come from messages, and each label creates a permanent series. For an
        event without a table, return None.
        """
        db, schema, last, _ = counted
        if last is None:
            return None
        name = _name(db, schema, last)
        table = source, name
        if table not in self._tables:
            if len(self._tables) >= self._room or len(name) > _LONGEST:
                return OTHER
            self._tables.add(table)
        return name

    def collect(self) -> Iterator[Metric]:
        events: dict[tuple[str, str, str], int] = {}
        # The copies are complete even if another thread adds a batch.
        for (source, counted), count in self._events.copy().items():
            labels = source, _name(*counted[:-1]), counted[-1]
            events[labels] = events.get(labels, 0) + count
        newest: dict[tuple[str, str], int] = {}
        for (source, counted), time_us in self._committed_us.copy().items():
            table = source, _name(*counted[:-1])
            newest[table] = max(time_us, newest.get(table, time_us))
        total = CounterMetricFamily(
            "cdc_table_events",
            "Events translated, by table (db.schema.table). Limited by metrics.tables.",
            labels=("source", "table", "op"),
        )
        for labels, count in events.items():
            total.add_metric(labels, count)
        committed = GaugeMetricFamily(
            "cdc_table_commit_timestamp_seconds",
            "Source commit time of a table's newest acknowledged event, in seconds since 1970. Limited by "
            "metrics.tables.",
            labels=("source", "table"),
        )
        for table, time_us in newest.items():
            committed.add_metric(table, time_us / 1e6)
        yield total
        yield committed


def _name(*parts: str | None) -> str:
    return ".".join(part for part in parts if part)
