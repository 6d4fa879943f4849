"""Keep the valid events of one table as columns, so that most operations need no object per event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.transaction import SourceTransaction
from spark_sink.model.event import APART, GAP, STATEMENT, Event, Latest

# Up to this number of records on a route, handling events one by one costs less than handling them in columns.
FEW = 32


class EventColumns(Sequence[Event]):
    """Events in canonical order, without invalid events, gaps and statements. Indexing and iteration return `Event`
    objects.

    Args:
        columns: one row per event. The columns have the names and the order of the fields in `Event`. `index` and the
            times are int64, `after` is binary, `full` and `withholds` are booleans, and the others are text.
    """

    def __init__(self, columns: pa.Table) -> None:
        self.columns = columns

    @cached_property
    def _objects(self) -> list[Event]:
        return list(map(Event, *(column.to_pylist() for column in self.columns.columns)))

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._objects)

    @overload
    def __getitem__(self, place: int) -> Event: ...

    @overload
    def __getitem__(self, place: slice) -> EventColumns: ...

    def __getitem__(self, place: int | slice) -> Event | EventColumns:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step != 1:
                raise ValueError("events can be sliced only in order and without a step")
            return EventColumns(self.columns.slice(start, max(0, stop - start)))
        if place not in range(-len(self), len(self)):
            raise IndexError(place)
        return Event(*(column[place].as_py() for column in self.columns.columns))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(Event.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]  # as a list

    def where(self, mask: pa.Array) -> EventColumns:
        """Return the events that the mask selects."""
        return EventColumns(self.columns.filter(mask))


def operations(events: Sequence[Event]) -> set[str]:
    """Return the operations that occur in the events."""
    if isinstance(events, EventColumns):
        return set(pc.unique(events.columns["op"]).to_pylist())
    return {event.op for event in events}


def apart(events: Sequence[Event]) -> list[int]:
    """Return the indexes of the events that need a separate commit."""
    if isinstance(events, EventColumns):
        is_truncate = pc.equal(events.columns["op"], "t").combine_chunks()
        return list(pc.indices_nonzero(is_truncate).to_pylist())
    return [place for place, event in enumerate(events) if event.op in APART]


def schema_ids(events: Sequence[Event]) -> list[str]:
    """Return the events' schema ids, in order of appearance."""
    if isinstance(events, EventColumns):
        return [id for id in pc.unique(events.columns["schema_id"]).to_pylist() if id is not None]
    return list(dict.fromkeys(event.schema_id for event in events if event.schema_id is not None))


def newest(events: Sequence[Event]) -> int:
    """Return the latest record time among the events, in microseconds."""
    if isinstance(events, EventColumns):
        return int(pc.max(events.columns["ts"]).as_py())
    return max(event.ts for event in events)


def latest(events: Sequence[Event]) -> dict[str, Latest]:
    """Return the greatest position in each scope."""
    if isinstance(events, EventColumns):
        columns = events.columns.combine_chunks()
        found = {}
        for scope in pc.unique(columns["scope"]).to_pylist():
            ours = columns.filter(pc.equal(columns["scope"], scope))
            last = ours.slice(pc.index(ours["pos"], pc.max(ours["pos"])).as_py(), 1).to_pylist()[0]
            found[scope] = Latest(last["pos"], SourceTransaction.of(scope, last["tx"], last["committed"]))
        return found
    reached: dict[str, Event] = {}
    for event in events:
        if event.scope not in reached or event.pos > reached[event.scope].pos:
            reached[event.scope] = event
    return {scope: Latest(event.pos, event.transaction) for scope, event in reached.items()}


def without_schema(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events that have an image but no schema."""
    if isinstance(events, EventColumns):
        columns = events.columns
        return events.where(pc.and_(pc.is_null(columns["schema_id"]), pc.is_valid(columns["after"])))
    return [event for event in events if event.schema_id is None and event.after is not None and event.op != STATEMENT]


def without_key(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events whose row key is unknown."""
    if isinstance(events, EventColumns):
        return events.where(pc.equal(events.columns["key"], ""))
    return [event for event in events if not event.key]


def count_without_gaps(events: Sequence[Event]) -> int:
    """Return the number of events that are not gaps."""
    if isinstance(events, EventColumns):
        return len(events)
    return sum(1 for event in events if event.op != GAP)
