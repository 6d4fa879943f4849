"""Report what a worker did with the events of one table in a batch. A report has an outcome and, separately,
counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from spark_sink.events.event_columns import FEW
from spark_sink.events.offset_span import NOWHERE, OffsetSpan
from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import Step
from spark_sink.tables.spark_operations import Order


class Done(Struct, frozen=True, tag=True):
    """All events are either in the table or in quarantine."""


class NeedsDdl(Struct, frozen=True, tag=True):
    """The driver must change the table before anything is written. Afterwards, the task runs again."""

    step: Step


class NeedsRecords(Struct, frozen=True, tag=True):
    """The task needs the raw records from Kafka before it can continue."""


class NeedsSpark(Struct, frozen=True, tag=True):
    """The driver executes the orders. Afterwards, the task runs again if there is `more` to write."""

    orders: tuple[Order, ...]
    more: bool = False


class Parked(Struct, frozen=True, tag=True):
    """The table cannot accept more events. `events` is the number of events that were parked, beginning with the one
    that was rejected. It is zero if the events were being replayed and were therefore parked already.
    """

    refusal: str
    events: int


class Deferred(Struct, frozen=True, tag=True):
    """The table was already parked before the batch. `events` is the number of additional events that were parked."""

    events: int


class Conflict(Struct, frozen=True, tag=True):
    """The table contradicts the configuration. The check at startup covers the sink's own tables. This must be another
    program's table, with a name that came from an event.
    """

    message: str


# Outcomes that require work by the driver.
Unfinished = NeedsDdl | NeedsRecords | NeedsSpark

Outcome = Done | Unfinished | Parked | Deferred | Conflict


# The upper bounds of the histogram buckets, in seconds. One more bucket is beyond the last bound.
LATENCY_BOUNDS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)


class Latency(Struct, frozen=True):
    """The latency of events in seconds: the number of events in each bucket of LATENCY_BOUNDS, the total number of
    events, and the sum of their latencies.

    If the latency exceeds the last bound, which is a day, the event is from the past and is being read again. `live` is
    the sum of all other latencies, and `greatest` is the greatest of them.
    """

    within: tuple[int, ...] = (0,) * len(LATENCY_BOUNDS)
    count: int = 0
    sum: float = 0.0
    live: float = 0.0
    greatest: float = 0.0

    @classmethod
    def of(cls, committed: pa.ChunkedArray, now: int) -> Latency:
        """Return the latency of events, from the commit at the source until they became visible (all in microseconds).

        The clocks of other machines may be ahead, so a negative latency counts as zero.
        """
        known = committed.drop_null()
        if not len(known):
            return cls()
        if len(known) <= FEW:
            return cls._of_few([max((now - time) / 1e6, 0.0) for time in known.to_pylist()])
        ages = pc.max_element_wise(pc.divide(pc.cast(pc.subtract(now, known), pa.float64(), safe=False), 1e6), 0.0)
        least, greatest = pc.min_max(ages).as_py().values()

        def count(bound: float) -> int:
            if not least <= bound < greatest:  # usually, a table's events have nearly the same age
                return 0 if bound < least else len(ages)
            return int(pc.sum(pc.less_equal(ages, bound)).as_py())

        live = ages.filter(pc.less_equal(ages, LATENCY_BOUNDS[-1])) if greatest > LATENCY_BOUNDS[-1] else ages
        live_sum, live_greatest = pc.sum(live).as_py() or 0.0, pc.max(live).as_py() or 0.0
        return cls(tuple(map(count, LATENCY_BOUNDS)), len(known), pc.sum(ages).as_py(), live_sum, live_greatest)

    @classmethod
    def _of_few(cls, ages: Sequence[float]) -> Latency:
        within = tuple(sum(age <= bound for age in ages) for bound in LATENCY_BOUNDS)
        live = [age for age in ages if age <= LATENCY_BOUNDS[-1]]
        return cls(within, len(ages), sum(ages), sum(live), max(live, default=0.0))

    @property
    def live_count(self) -> int:
        """Return the number of events with a latency of at most a day."""
        return self.within[-1]

    def __add__(self, other: Latency) -> Latency:
        if not self.count or not other.count:
            return other if not self.count else self
        within = tuple(map(int.__add__, self.within, other.within))
        greatest = max(self.greatest, other.greatest)
        return Latency(within, self.count + other.count, self.sum + other.sum, self.live + other.live, greatest)


NO_LATENCY = Latency()


class TableCounters(Struct, frozen=True):
    """Counters for one table in a batch, or for a part of the work on it. No decision depends on these counters.

    Args:
        skipped: the number of commits that an earlier attempt at the batch made.
        stale: the number of events that changed nothing, by reason. An event with the reason `late` only changed older
            versions in a history.
        undecided: the number of rows removed while two rows may have had the same key: see `fold.Folded`.
        truncated: the number of time values that were truncated to the microsecond.
        rejected: events in quarantine, by reason.
        ignored: ignored events, by kind.
        statements: the number of statements after which the table may differ from its source, by note.
        latency: the latency of the events that the task itself committed.
        fold_ms: milliseconds spent folding.
        write_ms: milliseconds spent writing.
        megabytes: the worker process's memory (MiB); 0 if unknown.
    """

    events: int = 0
    commits: int = 0
    skipped: int = 0
    rows: int = 0
    deleted: int = 0
    stale: dict[str, int] = {}
    late: int = 0
    scope_changes: int = 0
    undecided: int = 0
    truncated: int = 0
    rejected: dict[str, int] = {}
    ignored: dict[str, int] = {}
    statements: dict[str, int] = {}
    latency: Latency = NO_LATENCY
    fold_ms: float = 0
    write_ms: float = 0
    megabytes: int = 0

    def __add__(self, other: TableCounters) -> TableCounters:
        """Return the counters for both parts of the work. The memory is the larger of the two values."""
        sums: dict[str, object] = {}
        for name in self.__struct_fields__:
            one, two = getattr(self, name), getattr(other, name)
            if name == "megabytes":
                sums[name] = max(one, two)
            elif not one or not two:  # most parts of the work change few counters
                sums[name] = one or two
            else:
                sums[name] = dict(Counter(one) + Counter(two)) if isinstance(one, dict) else one + two
        return TableCounters(**sums)  # type: ignore[arg-type] # by name, from two of them


class WideStatement(Struct, frozen=True):
    """A statement that affects all tables in a database or, if `db` is null, all tables in a source. `note` is the note
    in the envelope.
    """

    source: str
    db: str | None
    note: str


class TableReport(Struct, frozen=True):
    """The outcome and counters for one table's events in a batch.

    Args:
        table: the table's name in the lakehouse. If another table has, or had, this name, it is the name under which
            the events are parked.
        source: the source table, which tells apart the tables on a route. "" if there is none.
        choice: the engine that writes the table, or None if the table does not exist yet.
        version: the table version afterwards. If the table has orders, the driver sets it.
        extent: the range that the whole route covers, set only in the route's first report.
        wide: the statements that name no table. The driver handles them when the batch ends.
    """

    table: str
    route: str
    bucket: int
    outcome: Outcome
    counters: TableCounters
    source: str = ""
    choice: Choice | None = None
    version: int | None = None
    extent: OffsetSpan = NOWHERE
    wide: tuple[WideStatement, ...] = ()

    @property
    def parked(self) -> int:
        """Return the number of events that the batch parked."""
        return self.outcome.events if isinstance(self.outcome, Parked | Deferred) else 0
