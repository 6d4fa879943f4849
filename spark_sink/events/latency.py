"""From the commit at the source to the moment when readers of the table can see the event."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

# Upper bounds of the histogram's buckets, in seconds; beyond the last there is one more.
BOUNDS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)


class Latency(Struct, frozen=True):
    """Of some events: how many took at most each of BOUNDS, how many there were, their sum and greatest in seconds."""

    within: tuple[int, ...] = (0,) * len(BOUNDS)
    count: int = 0
    sum: float = 0.0
    greatest: float = 0.0

    @classmethod
    def of(cls, committed: pa.ChunkedArray, now: int) -> Latency:
        """Of events that the source committed then, visible now; both in microseconds.

        Clocks of other machines may be ahead: no event takes less than no time.
        """
        known = committed.drop_null()
        if not len(known):
            return cls()
        ages = pc.max_element_wise(pc.divide(pc.cast(pc.subtract(now, known), pa.float64()), 1e6), 0.0)
        within = tuple(pc.sum(pc.less_equal(ages, bound)).as_py() for bound in BOUNDS)
        return cls(within, len(known), pc.sum(ages).as_py(), pc.max(ages).as_py())

    def __add__(self, other: Latency) -> Latency:
        within = tuple(map(int.__add__, self.within, other.within))
        greatest = max(self.greatest, other.greatest)
        return Latency(within, self.count + other.count, self.sum + other.sum, greatest)


NONE = Latency()
