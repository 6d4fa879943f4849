"""Many changes of a row -> one. Pure: no Spark, no table, no values; it decides which images make a row.

Inside a position scope the position decides: an event that is not beyond the greatest position the row has seen in that
scope is a duplicate. Between scopes the order in which the events are given stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

# The typed values of the key columns, in key order. Key texts are no identity: "1.0" and "1.00" may be one key.
Key = tuple[Any, ...]

RESETS = frozenset({"c", "r"})


class Event(Struct, frozen=True, gc=False):
    """A row event, with what the sink needs of it. `index` leads back to its record."""

    index: int
    op: str
    key: str
    key_old: str | None
    scope: str
    pos: str
    after: str | None
    full: bool
    withholds: bool
    schema_id: str | None

    @property
    def resets(self) -> bool:
        """Whether it fixes the whole row."""
        return self.op in RESETS or (self.op == "u" and self.full)

    @property
    def leaves_gaps(self) -> bool:
        """Whether the row that it fixes lacks a column: a value that was withheld, or has no faithful form.

        A full image lacks none; an issue beside it is one of the image before.
        """
        return self.withholds and not self.full


class Mark(Struct, frozen=True):
    """What the stored row remembers: the last position, by scope, and whether columns of it were never seen.

    `seen` holds the scopes before `scope`; nearly always none.
    """

    scope: str
    pos: str
    seen: Mapping[str, str]
    incomplete: bool


@dataclass(slots=True)
class Row:
    """What a batch makes of a row: the stored columns of `base` (None: all NULL), then `images`, in order."""

    exists: bool
    base: Key | None
    images: list[Event] = field(default_factory=list)
    incomplete: bool = False
    positions: dict[str, str] = field(default_factory=dict)
    scope: str | None = None
    touched: bool = False

    def is_duplicate(self, event: Event) -> bool:
        return event.pos <= self.positions.get(event.scope, "")

    def advance(self, event: Event) -> None:
        self.positions[event.scope] = event.pos
        self.scope = event.scope
        self.touched = True

    def replace(self, base: Key | None, images: list[Event], *, incomplete: bool) -> None:
        self.exists, self.base, self.images, self.incomplete = True, base, images, incomplete

    def remove(self) -> None:
        self.exists, self.base, self.images, self.incomplete = False, None, [], False


@dataclass(slots=True)
class Folded:
    """The rows that a batch touches, by key, and what was met on the way."""

    rows: dict[Key, Row]
    duplicates: int = 0
    scope_changes: int = 0


def fold(events: Iterable[Event], keys: Mapping[str, Key], marks: Mapping[Key, Mark]) -> Folded:
    """The rows after `events`, which are given in canonical order.

    Args:
        keys: the typed key of every key text in `events`.
        marks: what is stored, for every key in `events` that is stored.
    """
    rows: dict[Key, Row] = {}

    def row_of(text: str) -> tuple[Key, Row]:
        key = keys[text]
        row = rows.get(key)
        if row is None:
            row = rows[key] = _stored(key, marks.get(key))
        return key, row

    folded = Folded(rows)
    for event in events:
        key, row = row_of(event.key)
        if event.op == "u" and event.key_old is not None and keys[event.key_old] != key:
            _move(event, row_of(event.key_old)[1], row, folded)
        elif row.is_duplicate(event):
            folded.duplicates += 1
        else:
            folded.scope_changes += row.scope is not None and row.scope != event.scope
            row.advance(event)
            _APPLY[event.op](event, row)
    folded.rows = {key: row for key, row in rows.items() if row.touched}
    return folded


def _stored(key: Key, mark: Mark | None) -> Row:
    if mark is None:
        return Row(exists=False, base=None)
    positions = {**mark.seen, mark.scope: mark.pos}
    return Row(exists=True, base=key, incomplete=mark.incomplete, positions=positions, scope=mark.scope)


def _write(event: Event, row: Row) -> None:
    if event.resets:
        row.replace(None, [event], incomplete=event.leaves_gaps)
    elif row.exists:
        row.images.append(event)
    else:
        row.replace(None, [event], incomplete=True)


def _delete(event: Event, row: Row) -> None:
    row.remove()


def _move(event: Event, old: Row, new: Row, folded: Folded) -> None:
    """A key change: the old row goes, the new one comes, completed from the old where the event does not tell all.

    Each side is guarded on its own: one of the two rows may have gone on since.
    """
    old_is_later, new_is_later = old.is_duplicate(event), new.is_duplicate(event)
    folded.duplicates += old_is_later and new_is_later
    if not new_is_later:
        new.advance(event)
        if event.resets:
            new.replace(None, [event], incomplete=event.leaves_gaps)
        elif old.exists and not old_is_later:
            new.replace(old.base, [*old.images, event], incomplete=old.incomplete)
        else:
            new.replace(None, [event], incomplete=True)
    if not old_is_later:
        old.advance(event)
        old.remove()


_APPLY: Mapping[str, Callable[[Event, Row], None]] = {"c": _write, "r": _write, "u": _write, "d": _delete}
