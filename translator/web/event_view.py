"""Show an event in readable form: what happened to which row, column by column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from cdc_core.envelope import ChangeEvent
from cdc_core.table_id import joined_name
from translator.codecs.json import JsonCodec

_OPERATIONS = {"c": "INSERT", "u": "UPDATE", "d": "DELETE", "r": "row of a full load", "t": "TRUNCATE"}


class ColumnView(Struct, frozen=True):
    """A column in a row. A value is None if the column is not in that image of the event."""

    name: str
    before: str | None
    after: str | None
    changed: bool
    issue: str | None


class EventView(Struct, frozen=True):
    """An event with its columns, and the whole event as JSON."""

    title: str
    key: str | None
    notes: Sequence[str]
    columns: Sequence[ColumnView]
    has_before: bool
    has_after: bool
    document: str


def view(event: ChangeEvent) -> EventView:
    """Return an event's view."""
    (record,) = JsonCodec().encode(event)
    table = joined_name(event.db, event.schema, event.table)
    what = _OPERATIONS.get(event.op or "", event.kind)
    return EventView(
        title=f"{what} of {table}" if table else what,
        key=event.key if event.key_old is None else f"{event.key_old} becomes {event.key}",
        notes=event.notes or (),
        columns=list(_columns(event)),
        has_before=event.before is not None,
        has_after=event.after is not None,
        document=msgspec.json.format(record.value or b"", indent=2).decode(),
    )


def _columns(event: ChangeEvent) -> Iterator[ColumnView]:
    before, after = _image(event.before), _image(event.after)
    issues = {issue.col: issue.code for issue in event.issues or ()}
    changed = frozenset(event.changed or ())
    changed |= {name for name in before.keys() & after.keys() if before[name] != after[name]}
    for name in {**before, **after, **issues, **dict.fromkeys(event.unavailable or ())}:
        yield ColumnView(name, before.get(name), after.get(name), name in changed, issues.get(name))


def _image(text: str | None) -> dict[str, str]:
    """Return each column's value as JSON. Strings keep their quotes, so null cannot be confused with text."""
    image: dict[str, Any] = {} if text is None else json.loads(text, parse_float=_Digits, parse_int=_Digits)
    return {name: _written(value) for name, value in image.items()}


def _written(value: Any) -> str:
    return value if isinstance(value, _Digits) else json.dumps(value, ensure_ascii=False)


class _Digits(str):
    """A number, exactly as it was written."""
