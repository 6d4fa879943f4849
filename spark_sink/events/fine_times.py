"""Find columns with times finer than a microsecond, which lakehouse tables cannot store, and truncate these times."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.envelope import TableSchema
from spark_sink.events.event_columns import EventColumns
from spark_sink.events.image_table import HIDDEN_NAME
from spark_sink.model.event import GAP, Event
from spark_sink.schema.column_types import TIMES

_CLOCK = r"T[0-9]{2}:[0-9]{2}:[0-9]{2}\."
_FINE = rf"{_CLOCK}[0-9]{{6}}[0-9]*[1-9]"
_is_fine = re.compile(_FINE).search


def times_of(schemas: Sequence[TableSchema]) -> list[str]:
    """Return the names that the time columns have in the events."""
    found = (column.name for schema in schemas for column in schema.columns if column.type in TIMES)
    return list(dict.fromkeys(found))


def fine_columns(events: Sequence[Event], names: Collection[str]) -> frozenset[str]:
    """Return the columns that contain a value with more than six significant fraction digits."""
    if not names:
        return frozenset()
    images = [image for image in _images(events) if _is_fine(image.decode(errors="replace"))]
    found: set[str] = set()
    for image in images:
        try:
            sent = msgspec.json.decode(image, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue  # quarantined when the event's values are read
        values = ((name, sent.get(name)) for name in names if name not in found)
        found |= {name for name, value in values if isinstance(value, str) and _is_fine(value)}
    return frozenset(found)


def _images(events: Sequence[Event]) -> list[bytes]:
    """Return the after images that may contain such a value."""
    if isinstance(events, EventColumns):
        after = events.columns["after"]
        return list(after.filter(pc.fill_null(pc.match_substring_regex(after, _FINE), False)).to_pylist())
    return [event.after for event in events if event.after is not None and event.op != GAP]


class Truncated(NamedTuple):
    """Events whose times were truncated to the microsecond, and the number of truncated values."""

    events: Sequence[Event]
    values: int


def truncated(events: Sequence[Event], names: Collection[str]) -> Truncated:
    """Truncate the times in these columns to the microsecond by removing digits.

    If the name of a column cannot be searched for as text, the image stays unchanged, and the value is quarantined.
    """
    count = 0
    for name in names:
        if HIDDEN_NAME.search(name):
            continue
        pattern = rf'("{re.escape(name)}":"[0-9-]*{_CLOCK}[0-9]{{6}})([0-9]*[1-9][0-9]*)(Z?")'
        if isinstance(events, EventColumns):
            events, cut = _cut_columns(events, pattern)
        else:
            events, cut = _cut_events(events, re.compile(pattern.encode()))
        count += cut
    return Truncated(events, count)


def _cut_columns(events: EventColumns, pattern: str) -> tuple[EventColumns, int]:
    columns = events.columns
    after = columns["after"]
    fine = pc.fill_null(pc.match_substring_regex(after, pattern), False)
    count = pc.sum(fine, min_count=0).as_py()
    if not count:
        return events, 0
    cut = pc.replace_substring_regex(after, pattern, r"\1\3")
    place = columns.schema.get_field_index("after")
    return EventColumns(columns.set_column(place, pa.field("after", pa.binary()), cut)), count


def _cut_events(events: Sequence[Event], pattern: re.Pattern[bytes]) -> tuple[list[Event], int]:
    cut: list[Event] = []
    count = 0
    for event in events:
        after, found = (event.after, 0) if event.after is None else pattern.subn(rb"\1\3", event.after)
        cut.append(event if not found else msgspec.structs.replace(event, after=after))
        count += found
    return cut, count
