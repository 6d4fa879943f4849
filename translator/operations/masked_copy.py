"""Make masked copies of records. The row values differ, but everything else in the events matches the original.

A copy reproduces a bug as well as the original does. You can attach it to a ticket or use it in a test. Each copy is
verified by translating both the original and the copy. Everything except the values must match.
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
"""Number of attempts, each with other masks. An attempt fails if two values get the same mask, or if a masked date is
invalid.
"""


class CopyForm(Struct, frozen=True):
    """Everything in a translation except row values, positions, and text derived from them."""

    outcome: str
    events: Sequence[tuple[Any, ...]]


class RecordMasker:
    """Makes masked copies. Equal values get equal masks in all records.

    Args:
        translate: translates a record completely, as the service does.
        key: determines the masks. Anyone who knows the key can guess values by trial, so by default it is random.
    """

    def __init__(self, translate: Callable[[Message], Translation], key: bytes | None = None) -> None:
        self._translate = translate
        self._key = secrets.token_bytes(_KEY_BYTES) if key is None else key

    def copy(self, message: Message, dialect: Dialect) -> Message:
        """Return a copy of the record, without its headers.

        Raises:
            Unmaskable: every copy with masked values would be translated differently.
        """
        form = form_of(self._translate(message))
        for attempt in range(_TRIES):
            masked = MaskedValues(self._key + attempt.to_bytes(2, "big"))
            copy = masked_copy(dialect, message, masked)
            found = form_of(self._translate(copy))
            if found == form:
                return copy
        raise Unmaskable(f"it is translated differently once its values are masked: {_difference(form, found)}")


def form_of(translation: Translation) -> CopyForm:
    """Return the properties that a masked copy must share with its original."""
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
    """Return an image's columns, each with its value's JSON type."""
    return None if image is None else {name: type(value).__name__ for name, value in json.loads(image).items()}


def _difference(form: CopyForm, found: CopyForm) -> str:
    if form.outcome != found.outcome:
        return f"{found.outcome} instead of {form.outcome}"
    names = (*_FACTS, "key", "key_old", "before", "after", "issues")
    for of, copied in zip(form.events, found.events, strict=False):
        for name, one, other in zip(names, of, copied, strict=True):
            if one != other:
                return f"{name} of an event differs"
    return f"{len(found.events)} events instead of {len(form.events)}"
