"""Keep a row as a reader stores it, and determine what a change does to it. This module implements the rules in
docs/envelope/applying.md.

Within a scope, the position decides. If a scope delivers the changes to a row in order, any change up to the last
position has already been applied. If the scope does not guarantee this order (`native:`), a row consists of a reset and
patches. The reset is the last change that set all of the row's columns. Each column that a later patch wrote has a
position of its own. The later position wins, whatever the order of arrival. Between scopes, the order of arrival
decides. When another scope writes, its values replace the earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from cdc_core.position import epoch, has_native, is_in_order
from cdc_core.reader.change import Change
from cdc_core.reader.values import Value, canonical_text
from cdc_core.transaction import Aside

RESETS = frozenset({"c", "r"})


class RowProgress(Struct, omit_defaults=True):
    """The data that a reader stores about a row, even a deleted one, to recognize repeated and late changes.

    Args:
        scope: the scope that last wrote the row.
        positions: the greatest position in each scope.
        reset: within the current scope, changes up to this position can no longer affect the row.
        columns: the positions of columns that patches wrote after the reset, in scopes that deliver changes in any
            order.
        gap: the greatest position at which a patch withheld a column.
        loaded: the position of the snapshot row that the row began with.
        deleted: when the source committed the delete, if the row is deleted and the time is known.
        aside: the row that had the key before this one.
    """

    scope: str = ""
    positions: dict[str, str] = {}
    reset: str = ""
    columns: dict[str, str] = {}
    gap: str = ""
    loaded: str = ""
    deleted: int | None = None
    aside: Aside | None = None


class KeptRow(Struct):
    """A row. `values` is None if the row is deleted or was never seen. `incomplete` means that at least one of the
    row's columns is unknown.
    """

    progress: RowProgress
    values: dict[str, Value] | None = None
    incomplete: bool = False

    @classmethod
    def unseen(cls) -> KeptRow:
        return cls(RowProgress())

    def is_stale(self, change: Change, floor: str) -> bool:
        """Return whether a change is stale. It is if the row already reflects this change or a later one.

        Args:
            floor: the position of the last truncate in the change's scope.
        """
        progress, pos, scope = self.progress, change.event.pos, change.event.pos_scope
        if pos <= floor:
            return True
        if pos > progress.positions.get(scope, ""):
            return False
        if is_in_order(scope) or scope != progress.scope or pos <= progress.reset:
            return True
        return pos in progress.columns.values()

    def is_reloaded(self, change: Change) -> bool:
        """Return whether a stale snapshot row differs from the one that the row began with, within the same epoch.

        The position does not show whether the snapshot row is newer than the changes since then.
        """
        scope, pos = change.event.pos_scope, change.event.pos
        if change.op != "r" or is_in_order(scope) or pos == self.progress.loaded:
            return False
        last = self.progress.positions.get(scope, "")
        return last != pos and epoch(last) == epoch(pos) and has_native(last)

    def enter(self, change: Change, floor: str) -> None:
        """Record the position of a change that is not stale."""
        progress, pos, scope = self.progress, change.event.pos, change.event.pos_scope
        seen = progress.positions.get(scope, "")
        if progress.scope != scope:
            progress.scope, progress.reset = scope, max(floor, seen)
            progress.columns, progress.gap = {}, ""
        progress.positions = {**progress.positions, scope: max(seen, pos)}

    def outlives(self, change: Change) -> bool:
        """Return whether another scope deleted the row after the source committed this change."""
        progress, event = self.progress, change.event
        known = progress.deleted is not None and event.ts_commit_us is not None
        if self.values is not None or progress.scope == event.pos_scope or not known:
            return False
        is_new = event.pos > progress.positions.get(event.pos_scope, "")
        return is_new and (event.ts_commit_us or 0) < (progress.deleted or 0)

    def set_aside(self, change: Change) -> Aside | None:
        """Return the row that has the key of the change now, or None if there is none."""
        if self.values is None or change.event.pos < self.progress.positions[change.event.pos_scope]:
            return None
        return Aside(change.transaction, self.values, self.incomplete)

    def insert(self, change: Change) -> None:
        """Apply an insert. If another row has the key, set it aside, because the transaction may still move it."""
        event = change.event
        before = self.values
        aside = self.set_aside(change) if event.tx is not None or event.ts_commit_us is not None else None
        self.write(change)
        # If all values are equal, both are the same row, and its insert was sent twice.
        self.progress.aside = aside if before is None or _told(before) != _told(self.values or {}) else None

    def leave(self, change: Change) -> KeptRow | None:
        """Apply a delete or a key change. Return the removed row, or None if no row was removed.

        If two rows had the key in one transaction, the older row is removed. If the source does not show whether it was
        one transaction, the newer row is kept and marked as incomplete.
        """
        aside, self.progress.aside = self.progress.aside, None
        same = False if aside is None else aside.transaction.includes(change.transaction)
        if aside is not None and same:
            return KeptRow(RowProgress(), aside.values, aside.incomplete)
        if same is None:
            self.incomplete = True
            return None
        left = None if self.values is None else KeptRow(RowProgress(), self.values, self.incomplete)
        self.remove(change)
        return left

    def write(self, change: Change) -> None:
        """Apply a snapshot row or an update to this row. Afterwards, no other row has the key."""
        progress, pos = self.progress, change.event.pos
        progress.aside = progress.deleted = None
        sent = {**(change.key or {}), **(change.after or {})}
        if change.op in RESETS or change.is_full:
            self.values = sent | self._cut(pos)
            self.incomplete = leaves_gaps(change) or progress.gap > pos
            if change.op == "r":
                progress.loaded = pos
            return
        if leaves_gaps(change):
            self.incomplete, progress.gap = True, max(progress.gap, pos)
        elif self.values is None:
            self.incomplete = True
        later = {name: value for name, value in sent.items() if pos > progress.columns.get(name, "")}
        self.values = {**(self.values or {}), **later}
        if not is_in_order(progress.scope):
            progress.columns = {**progress.columns, **dict.fromkeys(later, pos)}

    def remove(self, change: Change) -> None:
        """Apply a delete. If a patch is known to be later than the delete, the row was inserted again."""
        kept = self._cut(change.event.pos)
        self.incomplete = self.progress.positions[change.event.pos_scope] > change.event.pos
        self.values = kept if self.incomplete else None
        self.progress.deleted = change.event.ts_commit_us if self.values is None else None

    def become(self, old: KeptRow, change: Change) -> None:
        """Apply a key change: take over the row `old`, and apply the columns of the change to this row."""
        self._cut(change.event.pos)
        self.progress.deleted = None
        self.values = {**(old.values or {}), **(change.key or {}), **(change.after or {})}
        # If changes arrive in any order, a change to the old row can still be in flight, and would not be found here.
        self.incomplete = old.incomplete or leaves_gaps(change) or not is_in_order(change.event.pos_scope)

    def _cut(self, pos: str) -> dict[str, Value]:
        """Set the reset, and return the columns that were written after the reset."""
        progress, values = self.progress, self.values or {}
        progress.reset = pos
        progress.columns = {name: at for name, at in progress.columns.items() if at > pos}
        return {name: values[name] for name in progress.columns if name in values}


def leaves_gaps(change: Change) -> bool:
    """Return whether the row still has unknown columns after a change that does not include all columns."""
    if change.is_full:
        return False
    if change.op in RESETS:
        return bool(change.event.unavailable or change.event.issues) or change.event.schema_id is not None
    changed = change.event.changed
    return any(changed is None or name in changed for name in change.withheld)


def _told(values: Mapping[str, Value]) -> dict[str, object]:
    """Return values as text for comparison. Some stores keep text, and NaN is not equal to itself."""
    return {name: canonical_text(value) for name, value in values.items() if value is not None}
