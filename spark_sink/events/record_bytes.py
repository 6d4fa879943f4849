"""Records as they came. They are half of what would travel to the workers, and few tables need them: so they travel for
those tables only that have asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


class RawRecordMissing(Exception):
    """A table needs records that did not travel with their events: the driver runs its task again with them."""


def record_bytes(records: pa.Table, places: Sequence[int]) -> list[bytes | None]:
    """The records at these places; None for one without a value.

    Raises:
        NotCarried: they did not travel.
    """
    taken = records.select(["kind", "value"]).take(pa.array(places, pa.int64()))
    values = taken.column("value")
    # What does not decode always travels: its kind is null.
    if pc.any(pc.and_(pc.is_valid(taken.column("kind")), pc.is_null(values)), min_count=0).as_py():
        raise RawRecordMissing
    return list(values.to_pylist())
