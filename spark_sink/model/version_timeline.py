"""Keep the versions of one row, in order. Each version is the result of an event, and has a beginning and an end. This
module uses neither Spark nor tables.

A version is identified by the scope and position of the event that began it. Therefore, a repeated event adds nothing.
A late event is inserted at its position, and all later versions are computed again (docs/sink-design.md §4). Positions
are comparable within a scope. When another scope writes the row, a new turn begins, as in row.py.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from cdc_core.position import is_in_order
from cdc_core.transaction import SourceTransaction
from spark_sink.model.event import (
    DUPLICATE,
    SUPERSEDED,
    TRUNCATED,
    Event,
)

Values = Mapping[str, Any]


class Truncate(Struct, frozen=True):
    """A truncate, with its position in each scope that had written to the table."""

    scope: str
    pos: str
    ts: int
    floors: dict[str, str]

    def covers(self, scope: str, pos: str) -> bool:
        """Return whether the truncate covers the position."""
        return pos <= self.floors.get(scope, "")


class TakenKey(Struct, frozen=True):
    """A version of a row that took over another row's key in a transaction that may not have ended (see `Aside`).

    Args:
        key: the key column values, in the format that images use.
        transaction: the transaction of the event that created the version. This event is at `pos` in its scope.
    """

    key: tuple[Any, ...]
    transaction: SourceTransaction
    pos: str
    inserted: bool = False


class End(Struct, frozen=True):
    """The end of a version. It is the next event, or a truncate (`t`) with its position in the version's scope."""

    op: str | None
    scope: str
    pos: str
    ts: int


@dataclass(slots=True)
class Version:
    """One version of a row: its state from one event until the next.

    Args:
        op: the event's operation, or None if the event was quarantined.
        sets: the columns that the event contains, or None if the event set the whole row.
        values: the values in the event or, after `Timeline.settle`, the values of all columns.
        gap: whether the event itself leaves the row incomplete.
    """

    turn: int
    scope: str
    pos: str
    op: str | None
    sets: tuple[str, ...] | None
    ts: int
    values: Values = field(default_factory=dict)
    gap: bool = False
    incomplete: bool = False
    end: End | None = None
    current: bool = False

    @property
    def place(self) -> tuple[int, str]:
        return self.turn, self.pos

    @property
    def stored_sets(self) -> Sequence[str | None] | None:
        """Return `sets` as it is stored, with a null if the event is a patch that withholds a column."""
        withholds = self.gap and self.op is not None
        return self.sets if self.sets is None or not withholds else (*self.sets, None)

    @property
    def exists(self) -> bool:
        return self.op != "d"

    @property
    def carried(self) -> Values:
        return self.values if self.sets is None else {name: self.values[name] for name in self.sets}


class Timeline:
    """The versions of one row: stored versions that may change, and new versions."""

    def __init__(self, stored: Sequence[Version], truncates: Sequence[Truncate]) -> None:
        self.versions = sorted(stored, key=lambda version: version.place)
        self.changed: set[tuple[int, str]] = set()
        self._truncates = truncates
        self._known = {(version.scope, version.pos) for version in self.versions}
        self._seen: dict[str, str] = {}
        # The position that the current turn's scope had when the turn began.
        self._reached = ""
        for number, version in enumerate(self.versions):
            self._enter(version, None if number == 0 else self.versions[number - 1])
        # The index from which on the versions have not been computed.
        self._stale_from = len(self.versions)

    def turn_of(self, event: Event) -> int | str:
        """Return the turn that the event belongs to, or the reason why the event changes nothing."""
        if (event.scope, event.pos) in self._known:
            return DUPLICATE
        last = self.versions[-1] if self.versions else None
        here = last is None or last.scope == event.scope
        seen = self._seen.get(event.scope, "")
        if is_in_order(event.scope) and event.pos <= seen:
            return DUPLICATE
        if event.pos <= (self._reached if here else seen):
            return SUPERSEDED
        if last is None or here:
            return 0 if last is None else last.turn
        # An event after a truncate shows that this event belongs before the truncate.
        over = any(t.covers(event.scope, event.pos) and not t.covers(last.scope, last.pos) for t in self._truncates)
        return TRUNCATED if over else last.turn + 1

    def greatest(self, scope: str) -> str:
        """Return a scope's greatest known position in versions and truncates."""
        floor = max((one.floors.get(scope, "") for one in self._truncates), default="")
        return max(floor, self._seen.get(scope, ""))

    def add(self, version: Version) -> bool:
        """Insert the version at its position. Return whether later versions are known."""
        place = bisect.bisect(self.versions, version.place, key=lambda one: one.place)
        self._enter(version, self.versions[-1] if self.versions else None)
        self._known.add((version.scope, version.pos))
        self.versions.insert(place, version)
        self.changed.add(version.place)
        self._stale_from = min(self._stale_from, place)
        return place < len(self.versions) - 1

    def _enter(self, version: Version, last: Version | None) -> None:
        seen = self._seen.get(version.scope, "")
        if last is not None and version.turn > last.turn:
            self._reached = seen
        self._seen[version.scope] = max(version.pos, seen)

    def cut(self, truncate: Truncate) -> None:
        """Apply a truncate that arrives late."""
        after = sum(1 for version in self.versions if truncate.covers(version.scope, version.pos))
        self._stale_from = min(self._stale_from, after)

    def before(self, turn: int, scope: str, pos: str) -> Version | None:
        """Return the state of the row before the event at this position, or None if the row does not exist."""
        self.settle()
        place = bisect.bisect_left(self.versions, (turn, pos), key=lambda one: one.place)
        found = self.versions[place - 1] if place else None
        alive = found is not None and found.exists and self._truncated(found, scope, pos) is None
        return found if alive else None

    def outlives(self, event: Event) -> bool:
        """Do the same as `Row.outlives`, but with the record's time, because a history stores no commit times."""
        last = self.versions[-1] if self.versions else None
        if last is None or last.exists or last.scope == event.scope:
            return False
        return event.ts < last.ts and event.pos > self._seen.get(event.scope, "")

    def alive(self, event: Event) -> Version | None:
        """Return the row that already has the event's key. Return None if no row has it, or if the event is late."""
        turn = self.turn_of(event)
        if not isinstance(turn, int) or (self.versions and self.versions[-1].place > (turn, event.pos)):
            return None
        return self.before(turn, event.scope, event.pos)

    def settle(self) -> None:
        """Compute the missing versions, and the end of the version before them."""
        start, self._stale_from = self._stale_from, len(self.versions)
        for i in range(start, len(self.versions)):
            version = self.versions[i]
            last = self.versions[i - 1] if i else None
            if last is not None and (not last.exists or self._truncated(last, version.scope, version.pos)):
                last = None
            self._compute(version, last)
        for i in range(max(start - 1, 0), len(self.versions)):
            self._close(i)

    def _compute(self, version: Version, last: Version | None) -> None:
        carried = version.carried
        if version.exists and version.sets is not None:
            values = carried if last is None else {**last.values, **carried}
            incomplete = version.gap or last is None or last.incomplete
        else:
            values, incomplete = carried, version.gap
        if (values, incomplete) != (version.values, version.incomplete):
            version.values, version.incomplete = values, incomplete
            self.changed.add(version.place)

    def _close(self, i: int) -> None:
        version = self.versions[i]
        after = self.versions[i + 1] if i + 1 < len(self.versions) else None
        truncate = self._truncated(version, after.scope, after.pos) if after else self._truncated(version)
        end = None
        if version.exists and truncate is not None:
            end = End("t", version.scope, truncate.floors[version.scope], truncate.ts)
        elif after is not None:
            end = End(after.op, after.scope, after.pos, after.ts)
        current = version.exists and end is None
        if (end, current) != (version.end, version.current):
            version.end, version.current = end, current
            self.changed.add(version.place)

    def _truncated(self, version: Version, scope: str = "", pos: str = "") -> Truncate | None:
        """Return the first truncate after the version. If another position is given, the truncate must come before
        it.
        """
        between = [
            one
            for one in self._truncates
            if one.covers(version.scope, version.pos) and not (pos and one.covers(scope, pos))
        ]
        return min(between, key=lambda one: one.floors[version.scope], default=None)
