"""The events and the newest commit time of each table, as metrics.

A batch can contain changes of thousands of tables. The totals are therefore kept in dictionaries, and the series are
created when Prometheus scrapes them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from translator.message import Counted

OTHER = "other"
"""Label for all tables beyond the limit."""

ALL = "all"
"""Label for all tables in a database or source, for a statement that affects them."""

_LONGEST = 256
"""Maximum length of a table name in a label. Longer names count as OTHER."""

_KNOWN = 16_384
"""Maximum number of tables and operations of a source whose series are remembered. Beyond it, all are forgotten."""


class _Totals(Struct):
    """The totals of one source."""

    series: dict[Counted, Counted | None] = {}
    events: dict[Counted, int] = {}
    committed_us: dict[Counted, int] = {}


class TableMetrics(Collector):
    """The totals of each table.

    Args:
        tables: how many tables get their own label. The first ones do.
    """

    def __init__(self, tables: int) -> None:
        self._room = tables
        self._tables: set[tuple[str, str]] = set()
        self._totals: defaultdict[str, _Totals] = defaultdict(_Totals)

    def add(self, source: str, changes: Mapping[Counted, int], committed_us: Mapping[Counted, int]) -> None:
        """Add the events of an acknowledged batch, and the time of each table's last commit."""
        totals = self._totals[source]
        for counted, count in changes.items():
            if (under := self._under(source, totals, counted)) is not None:
                totals.events[under] = totals.events.get(under, 0) + count
        for counted, time_us in committed_us.items():
            under = self._under(source, totals, counted)
            # The table's partitions may be acknowledged in any order.
            if under is not None and under.table != OTHER and time_us > totals.committed_us.get(under, -math.inf):
                totals.committed_us[under] = time_us

    def _under(self, source: str, totals: _Totals, counted: Counted) -> Counted | None:
        """Return the series to which an event belongs, or None for an event without a table."""
        if counted in totals.series:
            return totals.series[counted]
        label = self.label(source, counted)
        under = None if label is None else counted
        if label == OTHER:
            under = Counted(None, None, OTHER, counted.op)
        if len(totals.series) >= _KNOWN:
            totals.series.clear()
        totals.series[counted] = under
        return under

    def label(self, source: str, counted: Counted) -> str | None:
        """Return a table's label, or OTHER. Names come from messages, and each label creates a permanent series. For an
        event without a table, return None.
        """
        if counted.table is None:
            return None
        name = _name(counted)
        table = source, name
        if table not in self._tables:
            if len(self._tables) >= self._room or len(name) > _LONGEST:
                return OTHER
            self._tables.add(table)
        return name

    def collect(self) -> Iterator[Metric]:
        events: dict[tuple[str, str, str], int] = {}
        newest: dict[tuple[str, str], int] = {}
        # Another thread may add a batch in the meantime.
        for source, totals in list(self._totals.items()):
            for counted, count in totals.events.copy().items():
                series = source, _name(counted), counted.op
                events[series] = events.get(series, 0) + count
            for counted, time_us in totals.committed_us.copy().items():
                table = source, _name(counted)
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


def _name(counted: Counted) -> str:
    return ".".join(part for part in (counted.db, counted.schema, counted.table) if part)
