"""Test properties of row values: absent, NULL and unavailable are kept apart, and a key with NULL is no key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from cdc_core.envelope import ChangeEvent
from translator.conformance.json_edits import (
    Cell,
    Path,
    carriers,
    document_of,
    edited,
    image_of,
    without,
)
from translator.conformance.score import Failed, NotApplicable
from translator.conformance.trial import Subject, Trial, with_value
from translator.message import Message

NO_CARRIERS = (
    "the cases contain no JSON message with a column's value in a member. Test this property in the plug-in's own tests"
)


class Carrier(Struct, frozen=True):
    """A member of a JSON message that contains a column's value."""

    name: str
    trial: Trial
    message: Message
    document: Any
    path: Path
    cells: Sequence[Cell]
    events: list[ChangeEvent]

    def place(self) -> str:
        return f"{self.name}, {'.'.join(map(str, self.path))}"


def each_carrier(subject: Subject) -> Iterator[Carrier]:
    """Return the members with row values in all messages.

    Raises:
        NotApplicable: no message has such a member.
    """
    found = False
    for name, trial, message in subject.messages():
        document = document_of(message.value)
        if document is None:
            continue
        if name not in subject.carriers:
            subject.carriers[name] = carriers(trial, message, document)
        events = trial.events(with_value(message, document)) or []
        known: dict[Path, list[Cell]] = subject.carriers[name]
        for path, cells in known.items():
            found = True
            yield Carrier(name, trial, message, document, path, cells, events)
    if not found:
        raise NotApplicable(NO_CARRIERS)


def values_apart(subject: Subject) -> None:
    """Check that a null in a message is NULL, that a removed member is an absent column, and that no image contains a
    withheld value.
    """
    for name, trial, message in subject.messages():
        _check_unavailable(name, trial.events(message) or [])
    for carrier in each_carrier(subject):
        _check_null(carrier)
        if isinstance(carrier.path[-1], str):
            _check_removed(carrier)


def _check_unavailable(name: str, events: Sequence[ChangeEvent]) -> None:
    for event in events:
        both = sorted(image_of(event, "after").keys() & set(event.unavailable or ()))
        if both:
            raise Failed(
                f"{name}: column {both[0]} is unavailable and also in the new image",
                "Leave the columns in `unavailable` out of `after`",
            )


def _check_null(carrier: Carrier) -> None:
    message = with_value(carrier.message, edited(carrier.document, {carrier.path: None}))
    events = carrier.trial.events(message)
    if events is None and carrier.trial.rejects(message):
        return
    if events is None or len(events) != len(carrier.events):
        raise Failed(f"{carrier.place()}: null in its place removes the change", "Return the change with None as value")
    for cell in carrier.cells:
        sent, value = cell.of(events)
        if (not sent and not _is_withheld(events[cell.event], cell.column)) or value is not None:
            raise Failed(
                f"{carrier.place()}: null is {'another value' if sent else 'an absent column'} in `{cell.image}`",
                "NULL is None in the image. Reject the message if null does not mean NULL",
            )


def _check_removed(carrier: Carrier) -> None:
    message = with_value(carrier.message, without(carrier.document, carrier.path))
    events = carrier.trial.events(message)
    if events is None and carrier.trial.rejects(message):
        return
    if events is None or len(events) != len(carrier.events):
        raise Failed(f"{carrier.place()}: without it, the change is lost", "Return the change without the column")
    for cell in carrier.cells:
        sent, value = cell.of(events)
        # A sparse image takes the values of columns that did not change from the other image.
        other = image_of(events[cell.event], "before" if cell.image == "after" else "after")
        if sent and (cell.column not in other or other[cell.column] != value):
            raise Failed(
                f"{carrier.place()}: without it, the column is {'NULL' if value is None else 'another value'} in "
                f"`{cell.image}`",
                "Leave a column out of the image if it was not sent, or reject the message",
            )


def _is_withheld(event: ChangeEvent, column: str) -> bool:
    return column in {*(event.unavailable or ()), *(issue.col for issue in event.issues or ())}


def nullable_keys(subject: Subject) -> None:
    """Check that a row with NULL in a key column has no key, rather than a key with fewer columns."""
    found = False
    for carrier in each_carrier(subject):
        before = carrier.events
        keyed = [cell for cell in carrier.cells if cell.column in _columns(before[cell.event].key)]
        if not keyed:
            continue
        found = True
        message = with_value(carrier.message, edited(carrier.document, {carrier.path: None}))
        after = carrier.trial.events(message) or []
        for cell in keyed if len(after) == len(before) else ():
            key = after[cell.event].key
            columns = json.loads(key) if key is not None else None
            if columns is not None and (_columns(before[cell.event].key) != set(columns) or None in columns.values()):
                raise Failed(
                    f"{carrier.place()}: with null in key column {cell.column}, the event has a different key",
                    "Name all columns of the table's key in `key_columns`, regardless of their values",
                )
    if not found:
        raise NotApplicable("no event in the cases has a key. Add a case for a table with a key")


def _columns(key: str | None) -> set[str]:
    return set() if key is None else set(json.loads(key))
