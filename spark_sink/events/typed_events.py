"""Keep events as typed values, one row per event. Tables that store events or versions need them, not just the latest
row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from spark_sink.errors import Reason
from spark_sink.events.arrow_values import column, fits
from spark_sink.events.images import ImageReader, Unreadable
from spark_sink.events.quarantine import Rejected
from spark_sink.model.event import Event


class Entries(NamedTuple):
    """The `events` with their values. `columns` has a value or null for each event, and `sets` lists the columns that
    each event contains.
    """

    events: list[Event]
    columns: dict[str, pa.Array]
    sets: list[list[str]]
    rejected: list[Rejected]


def entries(events: Sequence[Event], reader: ImageReader, types: Mapping[str, str], *, partly: bool = False) -> Entries:
    """Return the events, with one column for each column of their after images.

    Args:
        partly: whether to apply an event without the values that do not fit, as if the source had not sent them. If
            false, the whole event is left out. In both cases, the event is also listed as rejected.
    """
    kept: list[tuple[Event, Mapping[str, Any]]] = []
    rejected: list[Rejected] = []
    for event in events:
        try:
            kept.append((event, reader(event) if event.after is not None else {}))
        except Unreadable as error:
            rejected.append(Rejected(event.index, error.reason, str(error)))
    columns: dict[str, pa.Array] = {}
    unfit: dict[int, str] = {}
    for name, sql in types.items():
        values = [values.get(name) for _, values in kept]
        try:
            columns[name] = column(values, sql)
        except ValueError:
            for number, value in enumerate(values):
                if not fits(value, sql):
                    unfit.setdefault(number, f"the value of {name} cannot be stored exactly as {sql}")
    if unfit:
        rejected += [Rejected(kept[number][0].index, Reason.VALUE_INVALID, why) for number, why in unfit.items()]
        examined = {number: reader.examined(kept[number][0]) if partly else None for number in unfit}
        left = [
            found.instead if (found := examined.get(number)) is not None else event
            for number, (event, _) in enumerate(kept)
            if partly or number not in unfit
        ]
        again = entries(left, reader, types)
        return again._replace(rejected=rejected + again.rejected)
    sets = [[name for name in values if name in types] for _, values in kept]
    return Entries([event for event, _ in kept], columns, sets, rejected)
