"""Merge the events of a row by position. The result is the row's state (docs/sink-design.md). This module uses neither
Spark nor tables.

A row has a reset: the last event that set the whole row, which is an insert, a full update or a delete. There may be
patches after the reset. Each column is stored with the position of the event that wrote it, and the later position
wins. Within a scope, the order of arrival therefore does not matter. Between scopes, the order of arrival decides. When
another scope writes the row, a new turn begins, and it takes precedence over everything before.

Under arrival order, a scope delivers a row's events in order. An event at or before the row's last position is
therefore a repetition, and only the last position has to be stored. The merge is the same, but it needs no further
state.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from cdc_core.position import is_in_order
from cdc_core.transaction import Aside, SourceTransaction
from spark_sink.model.event import (
    DUPLICATE,
    SUPERSEDED,
    Event,
    Key,
    Latest,
    is_loaded,
)


class Memory(Struct, frozen=True, omit_defaults=True):
    """More state, which few rows need. It is stored as JSON in the column `_cdc_state`. Empty state is stored as NULL.

    Args:
        reset: the position of the last reset if patches follow it, and "" otherwise.
        columns: for each column patched after the reset, the position of the patch.
        seen: the greatest positions in other scopes.
        loaded: the position of the snapshot row that the row began with, if changes have followed.
        gap: the greatest position of an event that left the row incomplete. Such an event is in quarantine, or is a
            patch that withholds a column.
        aside: the row that had the key before this one.
    """

    reset: str | None = None
    columns: dict[str, str] = {}
    seen: dict[str, str] = {}
    loaded: str = ""
    gap: str = ""
    aside: Aside | None = None


NOTHING = Memory()


class RowMark(Struct, frozen=True, gc=False):
    """The sink's own columns in a stored row. They include the scope that wrote the row last and the row's position in
    it. They also include the time at which the source committed the event at this position (microseconds, UTC, or None
    if unknown).
    """

    scope: str
    pos: str
    incomplete: bool = False
    deleted: bool = False
    memory: Memory = NOTHING
    committed: int | None = None


class Image(NamedTuple):
    """An event whose image is part of the row. Later turns take precedence over earlier ones. Within a turn, positions
    decide.
    """

    turn: int
    pos: str
    event: Event


class Content(NamedTuple):
    """The columns to write for a row, and the positions to store with them."""

    sent: Mapping[str, Any]
    columns: dict[str, str]


class SetAside(NamedTuple):
    """The row that had the key before; see `Aside`. `row` has the state that the row had before the transaction's
    event.
    """

    transaction: SourceTransaction
    row: Row
    inserted: bool = False


IsRepeat: TypeAlias = Callable[["Row", "Row"], bool]
"""Returns whether a row has exactly the same values as the row that was set aside for it. If so, the two are the same
row, and the insert was sent twice.
"""


def never(row: Row, aside: Row) -> bool:
    """Treat every row as new."""
    return False


@dataclass(slots=True)
class Row:
    """A row into which events are being folded.

    Args:
        stored: the stored row that provides columns, if any.
        whole: whether the stored row provides all columns that no image has. Otherwise, it provides only the columns in
            `held`.
        held: the positions of stored columns that patches wrote. They can be compared with images from turn
            `held_turn`.
        images: the images on top of the stored columns, in order.
        positions: the greatest position in each scope.
        committed: the commit time of the event at the greatest position in the current scope.
        reset: no event up to this position can change the row in the current turn.
        last: the previous state of a deleted row.
        known: the values underneath all images, for a row that was set aside in an earlier batch.
        aside: the row that had the key before this one, while its transaction may still continue.
    """

    exists: bool = False
    stored: Key | None = None
    whole: bool = False
    held: Mapping[str, str] = field(default_factory=dict)
    held_turn: int = 0
    images: list[Image] = field(default_factory=list)
    positions: dict[str, str] = field(default_factory=dict)
    scope: str | None = None
    turn: int = 0
    committed: int | None = None
    reset: str = ""
    incomplete: bool = False
    loaded: str = ""
    gap: str = ""
    deleted_at: int = 0
    touched: bool = False
    last: Row | None = None
    known: Mapping[str, Any] = field(default_factory=dict)
    aside: SetAside | None = None

    @classmethod
    def of(cls, key: Key, mark: RowMark | None) -> Row:
        """Return the row in its stored state."""
        if mark is None:
            return cls()
        memory = mark.memory
        return cls(
            exists=not mark.deleted,
            stored=None if mark.deleted else key,
            whole=not mark.deleted,
            held=memory.columns,
            positions={**memory.seen, mark.scope: mark.pos},
            scope=mark.scope,
            committed=mark.committed,
            reset=mark.pos if memory.reset is None else memory.reset,
            incomplete=mark.incomplete,
            loaded=memory.loaded or (mark.pos if is_loaded(mark.scope, mark.pos) else ""),
            gap=memory.gap,
            last=cls(stored=key, whole=True) if mark.deleted else None,
            aside=None if memory.aside is None else _remembered(memory.aside),
        )

    def stale(self, event: Event) -> str | None:
        """Return why the event changes nothing, or None if it can change the row."""
        last = self.positions.get(event.scope, "")
        if event.pos > last:
            return None
        if is_in_order(event.scope) or event.pos in (last, self.loaded):
            return DUPLICATE
        if event.scope != self.scope or event.pos <= self.reset:
            return SUPERSEDED
        here = (image.pos for image in self.images if image.turn == self.turn)
        return DUPLICATE if event.pos in here or event.pos in self.held.values() else None

    def enter(self, event: Event, floor: str) -> bool:
        """Record the event's position. Return whether another scope wrote the row before.

        Args:
            floor: the position of the last truncate in the event's scope. If the same truncate arrives again, it
                precedes this turn.
        """
        changed = self.scope is not None and self.scope != event.scope
        if self.scope != event.scope:
            self.turn += changed
            self.reset = max(floor, self.positions.get(event.scope, ""))
            self.scope, self.gap = event.scope, ""
        if event.pos > self.positions.get(event.scope, ""):
            self.positions[event.scope], self.committed = event.pos, event.committed
        self.touched = True
        return changed

    def insert(self, event: Event) -> None:
        """Apply a new row. Set aside any other row with the same key, because the transaction may still move that
        row.
        """
        aside = self.set_aside(event) if event.tx is not None or event.committed is not None else None
        self.write(event)
        self.aside = aside

    def write(self, event: Event) -> None:
        """Apply a snapshot row or an update to the row. Afterwards, no other row has the same key."""
        self.aside = None
        if event.resets:
            self._cut(event.pos)
            self.incomplete = event.leaves_gaps or self.gap > event.pos
            if event.op == "r":
                self.loaded = event.pos
        elif event.leaves_gaps:
            self.incomplete = True
            self.gap = max(self.gap, event.pos)
        elif not self.exists:
            self.incomplete = True
        self.exists = True
        image = Image(self.turn, event.pos, event)
        if self.images and self.images[-1][:2] > image[:2]:
            bisect.insort(self.images, image, key=lambda one: one[:2])
        else:
            self.images.append(image)

    def remove(self, event: Event) -> None:
        """Apply a delete. If a patch is known to be later than the delete, the row was inserted again."""
        if self.exists:
            self.last = replace(self, last=None)
        self._cut(event.pos)
        self.exists = self.incomplete = self.positions[event.scope] > event.pos
        self.deleted_at = event.ts

    def release(self, latest: Mapping[str, Latest]) -> None:
        """Drop the row that was set aside if the transaction has ended. A transaction has ended when its scope has
        reached another transaction.
        """
        if self.aside is not None:
            transaction = self.aside.transaction
            if has_ended(transaction, self.positions[transaction.scope], latest):
                self.aside = None

    def outlives(self, event: Event) -> bool:
        """Return whether another scope deleted the row after the source committed this event.

        Between scopes, the order of arrival decides, unless the commit times contradict it.
        """
        deleted = self.scope is not None and self.scope != event.scope and not self.exists
        if not deleted or self.committed is None or event.committed is None:
            return False
        return event.committed < self.committed and event.pos > self.positions.get(event.scope, "")

    def set_aside(self, event: Event) -> SetAside | None:
        """Return the row that has the key just before the event's row takes it, or None if no row has it.

        Only the latest event for the key determines which row is overwritten.
        """
        if not self.exists or event.pos < self.positions[event.scope]:
            return None
        return SetAside(event.transaction, replace(self, last=None, aside=None), event.op == "c")

    def leave(self, event: Event, is_repeat: IsRepeat) -> Row | None:
        """Remove the row with this key, because it is deleted or gets another key. Return the removed row, or None.

        If two rows had the key in one transaction, the older row is removed. If the source does not show whether it was
        one transaction, the newer row is kept and marked as incomplete. None is returned.
        """
        aside, self.aside = self.aside, None
        same = False if aside is None else aside.transaction.includes(event.transaction)
        if aside is not None and same is not False and aside.inserted and is_repeat(self, aside.row):
            same = False
        if aside is not None and same:
            return aside.row
        if same is None:
            self.incomplete = True
            return None
        left = replace(self, last=None) if self.exists else None
        self.remove(event)
        return left

    def miss(self, event: Event) -> None:
        """Apply a quarantined event: the row is incomplete until a later reset."""
        open_turn = event.scope == self.scope and not is_in_order(event.scope)
        floor = self.reset if open_turn else self.positions.get(event.scope, "")
        if self.exists and event.pos > floor:
            self.incomplete = self.touched = True
            if event.scope == self.scope:
                self.gap = max(self.gap, event.pos)

    def become(self, old: Row, event: Event) -> None:
        """Replace this row by the row `old`, with the event's columns on top. This is valid only if no later event is
        known.
        """
        self._cut(event.pos)
        self.stored, self.whole, self.held, self.held_turn = old.stored, old.whole, old.held, old.held_turn
        self.known = old.known
        self.turn = max(self.turn, old.turn) + 1
        self.images = [*old.images, Image(self.turn, event.pos, event)]
        # If events can arrive in any order, a change to the old row can still arrive, and would not be found here.
        self.exists, self.incomplete = True, old.incomplete or event.leaves_gaps or not is_in_order(event.scope)

    def _cut(self, pos: str) -> None:
        """Drop everything up to the position of a reset."""
        self.reset, self.whole, self.known = pos, False, {}
        self.images = [image for image in self.images if image.turn == self.turn and image.pos > pos]
        beyond = self.held if self.turn == self.held_turn else {}
        self.held = {name: at for name, at in beyond.items() if at > pos}
        if not self.held:
            self.stored = None

    def content(self, read: Callable[[Event], Mapping[str, Any]]) -> Content:
        """Return the columns from the images. Later images replace earlier ones, but no image replaces a stored column
        with a later position.
        """
        sent: dict[str, Any] = dict(self.known)
        columns: dict[str, str] = {}
        ordered = self.scope is None or is_in_order(self.scope)
        for image in self.images:
            values = read(image.event)
            if self.held and image.turn == self.held_turn:
                values = {name: value for name, value in values.items() if self.held.get(name, "") < image.pos}
            sent.update(values)
            if not ordered and image.turn == self.turn and image.pos > self.reset:
                columns.update(dict.fromkeys(values, image.pos))
        if self.held_turn == self.turn and not ordered:
            columns.update((name, at) for name, at in self.held.items() if name not in sent)
        return Content(sent, columns)

    def keeps(self, name: str) -> bool:
        """Return whether columns that are not written keep their stored values."""
        return self.whole or name in self.held

    def mark(self, columns: Mapping[str, str], aside: Aside | None = None) -> RowMark:
        """Return the sink's own columns to store, including `aside` with the values of `self.aside`."""
        scope = self.scope or ""
        pos = self.positions[scope]
        native = not is_in_order(scope)
        return RowMark(
            scope,
            pos,
            self.incomplete,
            not self.exists,
            Memory(
                reset=self.reset if native and self.reset != pos else None,
                columns=dict(columns),
                seen={other: at for other, at in self.positions.items() if other != scope},
                loaded=self.loaded if native and self.loaded != pos else "",
                gap=self.gap if native and self.gap > self.reset else "",
                aside=aside,
            ),
            self.committed,
        )


def has_ended(transaction: SourceTransaction, pos: str, latest: Mapping[str, Latest]) -> bool:
    """Return whether the transaction that wrote at `pos` has ended. A transaction has ended once its scope has reached
    another one.
    """
    reached = latest.get(transaction.scope)
    return reached is not None and reached.pos > pos and transaction.includes(reached.transaction) is False


def _remembered(aside: Aside) -> SetAside:
    row = Row(exists=True, known=aside.values, incomplete=aside.incomplete)
    return SetAside(aside.transaction, row, aside.inserted)
