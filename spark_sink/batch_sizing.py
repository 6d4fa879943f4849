"""The number of records that the next batch may take: fewer after one that cost too much, more after one that cost
little.

A change costs a restart of the query, so it is by factors, and between "too much" and "little" there is room: halved,
no cost that was too much is little; doubled, none that was little is too much. So for a constant cost it settles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# With more at once nothing is begun, whatever `batches.max_offsets` is: a batch that is too large for the memory is
# never smaller when it is tried again, because Spark has written down what is in it. This many take some hundred MiB.
BEGIN = 50_000

# Fewer records cost hardly less: then a batch is what it costs to begin and to commit.
FLOOR = 1_000

# Of a limit, so much is a batch that was cut by it. Spark shares a limit out to partitions, and rounds there.
FULL = 0.9
_STALE = 1.1

# "Little" is less than so much of a bound: the next batch, twice as large, would reach half of it.
_LITTLE_TIME = 0.25
_LITTLE_MEMORY = 0.5

# A halved batch that costs more than this of what it cost before is mostly made of what each batch costs.
_HELPED = 0.75


class LimitChange(NamedTuple):
    """A change of the limit, with its reason for the log."""

    before: int
    after: int
    why: str


@dataclass
class _Bound:
    """The cost that a batch may have, and that of the one for which batches were made smaller last."""

    most: float
    last: float | None = None

    def exceeded(self, cost: float) -> bool:
        """Tell whether smaller batches are called for. They are not if that was tried, and the cost is about the
        same."""
        if self.last is not None and cost < _HELPED * self.last:
            self.last = None
        if cost <= self.most or (self.last is not None and cost <= self.last / _HELPED):
            return False
        self.last = cost
        return True


class Pace:
    """Tells the limit of the next batch from what the last one cost.

    Args:
        most: the limit is never greater; 1 000 or this, whichever is less, is the smallest.
        seconds: a batch that takes longer is followed by smaller ones.
        megabytes: what a worker process may hold after a table, likewise.
    """

    def __init__(self, most: int, seconds: float, megabytes: float) -> None:
        self.limit = min(BEGIN, most)
        self._most = most
        self._seconds = _Bound(seconds)
        self._megabytes = _Bound(megabytes)

    def after(self, taken: int, seconds: float, megabytes: float) -> LimitChange | None:
        """Return the change of the limit after a batch; None for no change.

        Args:
            taken: how many records the batch took. Only the time of one that took all it might says something about
                the limit; what it held does in any case, before a larger one comes.
            megabytes: 0 where that is not known.
        """
        if taken > _STALE * self.limit:  # planned before the limit was changed
            return None
        full = taken >= FULL * self.limit
        long = full and self._seconds.exceeded(seconds)
        if self._megabytes.exceeded(megabytes):
            bound = f"batches.worker_megabytes: {self._megabytes.most:g}"
            return self._to(self.limit // 2, f"a worker held {megabytes:.0f} MiB ({bound})")
        if long:
            bound = f"batches.target_seconds: {self._seconds.most:g}"
            return self._to(self.limit // 2, f"{taken} records took {seconds:.0f} s ({bound})")
        cheap = seconds < _LITTLE_TIME * self._seconds.most and megabytes < _LITTLE_MEMORY * self._megabytes.most
        if full and cheap:
            return self._to(2 * self.limit, f"{taken} records took {seconds:.1f} s, and workers {megabytes:.0f} MiB")
        return None

    def _to(self, limit: int, why: str) -> LimitChange | None:
        before, self.limit = self.limit, min(self._most, max(FLOOR, limit))
        return LimitChange(before, self.limit, why) if self.limit != before else None
