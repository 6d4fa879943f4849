"""The answer of a worker to the driver about one table's events in a batch: an outcome, and counters apart from it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from spark_sink.events.offset_span import NOWHERE, OffsetSpan
from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import Step
from spark_sink.tables.spark_operations import Order


class Done(Struct, frozen=True, tag=True):
    """Every event is in the table or in quarantine."""


class NeedsDdl(Struct, frozen=True, tag=True):
    """The table must be changed by the driver before anything is written; then the task runs again."""

    step: Step


class NeedsRecords(Struct, frozen=True, tag=True):
    """The task goes on when it gets the records as they were read from Kafka."""


class NeedsSpark(Struct, frozen=True, tag=True):
    """The driver carries out the orders; then the task runs again where there is `more` to write."""

    orders: tuple[Order, ...]
    more: bool = False


class Parked(Struct, frozen=True, tag=True):
    """The table cannot go on: from the event on that it refused, so many events wait (none, where they waited before
    and were replayed)."""

    refusal: str
    events: int


class Deferred(Struct, frozen=True, tag=True):
    """The table was parked before the batch; so many further events wait."""

    events: int


class Conflict(Struct, frozen=True, tag=True):
    """The table contradicts the configuration: the operator must change one of them before the sink can go on."""

    message: str


# For these the driver must do something.
Unfinished = NeedsDdl | NeedsRecords | NeedsSpark

Outcome = Done | Unfinished | Parked | Deferred | Conflict


# Upper bounds of the histogram's buckets, in seconds; beyond the last there is one more.
LATENCY_BOUNDS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)


class Latency(Struct, frozen=True):
    """Seconds that events took: how many at most each of LATENCY_BOUNDS, how many there were, and their sum.

    What took longer than the last bound, a day, is history that is read again. `live` is the sum of the others, and
    `greatest` the greatest of them.
    """

    within: tuple[int, ...] = (0,) * len(LATENCY_BOUNDS)
    count: int = 0
    sum: float = 0.0
    live: float = 0.0
    greatest: float = 0.0

    @classmethod
    def of(cls, committed: pa.ChunkedArray, now: int) -> Latency:
        """Return the latency of events that the source committed then, visible now; both in microseconds.

        Clocks of other machines may be ahead: no event takes less than no time.
        """
        known = committed.drop_null()
        if not len(known):
            return cls()
        ages = pc.max_element_wise(pc.divide(pc.cast(pc.subtract(now, known), pa.float64(), safe=False), 1e6), 0.0)
        within = tuple(pc.sum(pc.less_equal(ages, bound)).as_py() for bound in LATENCY_BOUNDS)
        live = ages.filter(pc.less_equal(ages, LATENCY_BOUNDS[-1]))
        live_sum, greatest = pc.sum(live).as_py() or 0.0, pc.max(live).as_py() or 0.0
        return cls(within, len(known), pc.sum(ages).as_py(), live_sum, greatest)

    @property
    def live_count(self) -> int:
        """The number of events that took a day at most."""
        return self.within[-1]

    def __add__(self, other: Latency) -> Latency:
        within = tuple(map(int.__add__, self.within, other.within))
        greatest = max(self.greatest, other.greatest)
        return Latency(within, self.count + other.count, self.sum + other.sum, self.live + other.live, greatest)


NO_LATENCY = Latency()


class TableCounters(Struct):
    """Figures of one table in a batch; they decide nothing.

    Args:
        skipped: commits that an earlier try of the batch made.
        stale: events that changed nothing, by reason; `late` ones changed older versions of a history only.
        undecided: removals of a key that two rows may have had: see `fold.Folded`.
        truncated: values of times that were cut off at the microsecond.
        rejected: events in quarantine, by reason; `ignored` ones by kind.
        statements: notes of statements after which the table differs from its source, or may, by their words.
        latency: of the events that the task itself committed.
        fold_ms: milliseconds of folding; `write_ms` of writing.
        megabytes: memory of the worker's process (MiB); 0 where it is not known.
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


class WideStatement(Struct, frozen=True):
    """A statement that concerns all tables of a database, or of a source where `db` is null: `note` is its word."""

    source: str
    db: str | None
    note: str


class TableReport(Struct, frozen=True):
    """Outcome and counters of one table's events in a batch.

    Args:
        table: its name in the lakehouse; of one whose name another has, or had, the name under which its events wait.
        source: the table as its source names it, which tells the tables of a route apart; "" where nothing does.
        choice: the engine that writes the table; None where there is no table yet.
        version: of the table afterwards; after orders the driver fills it in.
        extent: of the whole route, in the first of its reports only.
        wide: statements that name no table, which the driver answers at the end of the batch.
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
        """The number of events that the batch added to those that wait."""
        return self.outcome.events if isinstance(self.outcome, Parked | Deferred) else 0
