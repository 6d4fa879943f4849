"""The maximum number of records in the next batch: less after a batch that cost too much, more after one that cost
little.

A change costs a restart of the query, so the limit changes by factors, with a gap between "too much" and "little": a
halved cost is never "little", and a doubled one never "too much". So the limit settles when the cost is constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# The limit of the first batch, whatever `batches.max_offsets` is. A batch that is too large for the memory never gets
# smaller when it is repeated, because Spark has recorded its content. This number takes a few hundred MiB.
BEGIN = 50_000

# Fewer records hardly cost less: then the cost is that of beginning and committing a batch.
FLOOR = 1_000

# A batch with this share of the limit counts as cut off by it, because Spark divides a limit between partitions and
# rounds.
FULL = 0.9
_STALE = 1.1

# "Little" is less than this share of a bound: the next batch, twice as large, would reach half of it.
_LITTLE_TIME = 0.25
_LITTLE_MEMORY = 0.5

# If a halved batch costs more than this share of the previous cost, most of it is the fixed cost of a batch.
_HELPED = 0.75


class LimitChange(NamedTuple):
    """A change of the limit, with its reason for the log."""

    before: int
    after: int
    why: str


@dataclass
class _Bound:
    """The allowed cost of a batch, and the cost of the batch after which the limit was last reduced."""

    most: float
    last: float | None = None

    def exceeded(self, cost: float) -> bool:
        """Return whether smaller batches are needed. They are not if this was tried and the cost is about the same."""
        if self.last is not None and cost < _HELPED * self.last:
            self.last = None
        if cost <= self.most or (self.last is not None and cost <= self.last / _HELPED):
            return False
        self.last = cost
        return True


class Pace:
    """Computes the limit of the next batch from the cost of the last one.

    Args:
        most: the greatest limit; the smallest is 1 000, or this if it is less.
        seconds: if a batch takes longer, the following ones are smaller.
        megabytes: the same for the memory of a worker process after a table.
    """

    def __init__(self, most: int, seconds: float, megabytes: float) -> None:
        self.limit = min(BEGIN, most)
        self._most = most
        self._seconds = _Bound(seconds)
        self._megabytes = _Bound(megabytes)

    def after(self, taken: int, seconds: float, megabytes: float) -> LimitChange | None:
        """Return the change of the limit after a batch; None for no change.

        Args:
            taken: the number of records in the batch. The time only says something about the limit if the batch
                reached it; memory always does, before a larger batch comes.
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
