"""Limit the number of records in the next batch. An expensive batch lowers the limit, and a cheap one raises it.

Each change to the limit restarts the query. The limit therefore changes by a large factor, and the two thresholds are
far apart. Half of an excessive cost is never low, and twice a low cost is never excessive. If costs are constant, the
limit eventually stops changing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# The limit for the first batch, regardless of `batches.max_offsets`. A batch that exceeds the memory has the same size
# when it is repeated, because Spark has recorded its content. This number of records takes a few hundred MiB.
BEGIN = 50_000

# Below this number, a smaller batch hardly costs less, because most of the cost comes from beginning and committing a
# batch.
FLOOR = 1_000

# A batch that reaches this share of the limit counts as full, because Spark divides the limit among the partitions and
# rounds the results.
FULL = 0.9
_STALE = 1.1

# A cost below this share of a bound is "little". The next batch is then twice as large and would reach at most half of
# the bound.
_LITTLE_TIME = 0.25
_LITTLE_MEMORY = 0.5

# If a halved batch costs more than this share of the previous cost, most of the cost is fixed.
_HELPED = 0.75


class LimitChange(NamedTuple):
    """A change to the limit, with the reason that is logged."""

    before: int
    after: int
    why: str


@dataclass
class _Bound:
    """The maximum cost of a batch, and the cost of the batch that last lowered the limit."""

    most: float
    last: float | None = None

    def exceeded(self, cost: float) -> bool:
        """Return whether the limit must shrink. If lowering the limit hardly changed the cost last time, it need not
        shrink again.
        """
        if self.last is not None and cost < _HELPED * self.last:
            self.last = None
        if cost <= self.most or (self.last is not None and cost <= self.last / _HELPED):
            return False
        self.last = cost
        return True


class Pace:
    """Computes the limit for the next batch from the cost of the last batch.

    Args:
        most: the highest limit. The lowest limit is 1 000, or `most` if that is lower.
        seconds: if a batch takes longer than this, the following batches are smaller.
        megabytes: if a worker process uses more memory than this, the following batches are smaller.
    """

    def __init__(self, most: int, seconds: float, megabytes: float) -> None:
        self.limit = min(BEGIN, most)
        self._most = most
        self._seconds = _Bound(seconds)
        self._megabytes = _Bound(megabytes)

    def after(self, taken: int, seconds: float, megabytes: float) -> LimitChange | None:
        """Return how the limit changes after a batch, or None if it does not change.

        Args:
            taken: the number of records in the batch. The duration of a batch counts only if it reached the limit. Its
                memory always counts, so that the limit shrinks before a larger batch arrives.
            megabytes: 0 if unknown.
        """
        if taken > _STALE * self.limit:  # planned before the limit changed
            return None
        full = taken >= FULL * self.limit
        long = full and self._seconds.exceeded(seconds)
        if self._megabytes.exceeded(megabytes):
            bound = f"batches.worker_megabytes: {self._megabytes.most:g}"
            return self._to(self.limit // 2, f"a worker used {megabytes:.0f} MiB ({bound})")
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
