"""Masked copies of records: with other values of rows, and translated to events of the same form as the originals.

A copy shows a fault as well as the record does, and may go into a ticket or a test. That it is as good is not believed
but tried: record and copy are translated, and whatever is not a value has to be equal.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from cdc_core.envelope import ChangeEvent
from translator.dialects import MaskedValues, masked_copy
from translator.errors import Unmaskable
from translator.message import Dialect, Learned, Message, Skip
from translator.resolution.resolve import Translation
from translator.translation.dead_letter import DeadLetter

_KEY_BYTES = 32
_TRIES = 20
"""Of other masks, where two values were masked alike, or a date became none."""


class CopyForm(Struct, frozen=True):
    """Everything of a translation but values of rows, positions and texts made of them."""

    outcome: str
    events: Sequence[tuple[Any, ...]]


class RecordMasker:
    """Makes masked copies; equal values of all its records are masked equally.

    Args:
        translate: a record to its end, as the service does.
    """

    def __init__(self, translate: Callable[[Message], Translation]) -> None:
        self._translate = translate
        self._key = secrets.token_bytes(_KEY_BYTES)

    def copy(self, message: Message, dialect: Dialect) -> Message:
        """Return a copy of the record, without its headers.

        Raises:
            Unmaskable: none is both without the values and of the same form.
        """
        form = form_of(self._translate(message))
        for attempt in range(_TRIES):
            masked = MaskedValues(self._key + attempt.to_bytes(2, "big"))
            copy = masked_copy(dialect, message, masked)
            found = form_of(self._translate(copy))
            if found == form:
                return copy
        raise Unmaskable(f"with masked values it becomes another: {_difference(form, found)}")


def form_of(translation: Translation) -> CopyForm:
    """Return what a masked copy has in common with its record."""
    match translation.outcome:
        case DeadLetter(code=code):
            outcome = f"dead letter {code}"
        case Skip(reason=reason):
            outcome = f"skipped, {reason}"
        case Learned(key=key):
            outcome = f"learned {key}"
        case _:
            outcome = "translated"
    events = translation.events.events if translation.events is not None else ()
    return CopyForm(outcome, [_event_form(event) for event in events])


_FACTS = (
    *("kind", "op", "source", "db", "schema", "table", "variant", "variant_basis", "dbms", "key_kind", "schema_id"),
    *("before_state", "after_state", "changed", "unavailable", "notes"),
)


def _event_form(event: ChangeEvent) -> tuple[Any, ...]:
    images = (event.key, event.key_old, event.before, event.after)
    issues = [(issue.col, issue.code) for issue in event.issues or ()]
    return (*(getattr(event, name) for name in _FACTS), *map(_kinds, images), issues)


def _kinds(image: str | None) -> dict[str, str] | None:
    """The columns of an image, each with the kind of JSON that its value is."""
    return None if image is None else {name: type(value).__name__ for name, value in json.loads(image).items()}


def _difference(form: CopyForm, found: CopyForm) -> str:
    if form.outcome != found.outcome:
        return f"{found.outcome} in place of {form.outcome}"
    names = (*_FACTS, "key", "key_old", "before", "after", "issues")
    for of, copied in zip(form.events, found.events, strict=False):
        for name, one, other in zip(names, of, copied, strict=True):
            if one != other:
                return f"{name} of an event differs"
    return f"{len(found.events)} events in place of {len(form.events)}"
