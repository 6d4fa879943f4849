"""Determine the row key of each event. It is the event's own key, or the columns that `tables.keys` declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from spark_sink.errors import Reason
from spark_sink.events.envelope_fields import details, image_columns, with_full_after_image
from spark_sink.events.event_columns import without_key
from spark_sink.events.grouping import Intake
from spark_sink.events.quarantine import Rejected
from spark_sink.model.event import (
    APART,
    GAP,
    STATEMENT,
    Event,
)
from spark_sink.schema.evolution import KEY_ADVICE, no_key
from spark_sink.schema.table_spec import SOURCE, Mode, TableSpec

_NULL = msgspec.Raw(b"null")


def with_keys(incoming: Intake, form: TableSpec, records: pa.Table, *, is_new: bool) -> Intake:
    """Return the events of a table with the row key that this table requires. Events for unknown rows are rejected.

    A changelog needs no key, but it needs everything that an event contains about its row.

    Raises:
        Refused: a new table has no key that identifies its rows.
    """
    if form.mode == Mode.CHANGELOG:
        more = details(records, incoming.events)
        events = [with_full_after_image(event, one.before) for event, one in zip(incoming.events, more, strict=True)]
        return Intake(events, incoming.rejected, incoming.ignored)
    if form.mode == Mode.HISTORY:
        incoming = Intake(list(_by_commit(incoming.events)), incoming.rejected, incoming.ignored)
    key = (SOURCE, *form.key) if form.shared else form.key
    keyed = list(_declared(incoming.events, key, records)) if form.key else incoming.events
    suspects = keyed if form.shared else without_key(keyed)
    keyless = [event for event in suspects if event.op not in APART and _names_no_row(event.key, form)]
    if not keyless:
        return Intake(keyed, incoming.rejected, incoming.ignored)
    leaving = {event.index: removal(event) for event in keyless if event.key_old is not None and event.op == "u"}
    if is_new and not form.key and not leaving and len(keyless) == sum(1 for event in keyed if event.op not in APART):
        raise no_key()
    why = f"the event does not contain ({', '.join(form.key)})" if form.key else f"the key is unknown; {KEY_ADVICE}"
    rejected = [Rejected(event.index, Reason.KEY_UNKNOWN, why) for event in keyless if event.op != GAP]
    left_out = {event.index for event in keyless} - leaving.keys()
    events = [leaving.get(event.index, event) for event in keyed if event.index not in left_out]
    return Intake(events, incoming.rejected + rejected, incoming.ignored)


def removal(event: Event) -> Event:
    """Return the delete for the old key of an event that changes the key (docs/envelope/applying.md)."""
    return msgspec.structs.replace(event, op="d", key=event.key_old, key_old=None, after=None, schema_id=None)


def _declared(events: Sequence[Event], key: Sequence[str], records: pa.Table) -> Iterator[Event]:
    """Return the events with the declared key, read from their images. The previous key is set only if the before image
    has all of its columns.

    If the before image of an update lacks the key, the key is assumed to be unchanged. Keys never contain NULL.
    """
    for event, more in zip(events, details(records, events), strict=True):
        if event.op == STATEMENT:
            yield event
            continue
        own = image_columns(event.key)
        known = own if event.op == "d" else {name: own[name] for name in own if name == SOURCE}
        before = {**known, **image_columns(more.before)}
        after = {**before, **own, **image_columns(event.after)}
        yield msgspec.structs.replace(
            event,
            key=_text(before if event.op == "d" else after, key) or "",
            key_old=_text(before, key) if event.op == "u" else None,
        )


def _names_no_row(key: str, form: TableSpec) -> bool:
    return not key or (form.shared and image_columns(key).keys() <= {SOURCE})


def _by_commit(events: Sequence[Event]) -> Iterator[Event]:
    """Return the events with the source's commit time in place of their own, if it is known. Readers need this time."""
    for event in events:
        yield event if event.committed is None else msgspec.structs.replace(event, ts=event.committed)


def _text(image: dict[str, msgspec.Raw], key: Sequence[str]) -> str | None:
    """Return the key columns as text if the image has a value for each of them, and None otherwise."""
    if not all(image.get(name, _NULL) != _NULL for name in key):
        return None
    return msgspec.json.encode({name: image[name] for name in key}).decode()
