"""Apply changes to rows in any store, by the rules in docs/envelope/applying.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cdc_core.errors import quote
from cdc_core.position import is_in_order
from cdc_core.reader.change import Change, RowKey, RowValues
from cdc_core.reader.errors import ApplyError
from cdc_core.reader.kept_row import KeptRow
from cdc_core.statement_notes import (
    COLUMN_RETYPED,
    COLUMN_REWRITTEN,
    DEFAULT_FILLED,
    STATEMENT_NOT_APPLIED,
    TABLE_DROPPED,
    statement_notes,
)
from cdc_core.table_id import TableId


class RowStore(Protocol):
    """A row store. Commit everything that an `apply` call writes in one transaction, together with the offsets of the
    changes.
    """

    def load(self, table: TableId, key: RowKey) -> KeptRow | None:
        """Return the row as it was last stored, even if it is deleted, or None if it was never stored."""
        ...

    def store(self, table: TableId, key: RowKey, row: KeptRow, types: Mapping[str, str]) -> None:
        """Store the row in place of the row that was stored before. `types` has the known canonical column types."""
        ...

    def keys(self, table: TableId) -> Iterator[RowKey]:
        """Yield the key of every row that was ever stored."""
        ...

    def clear(self, table: TableId) -> None:
        """Delete every row, but keep what is known about their positions."""
        ...

    def floor(self, table: TableId, scope: str) -> str:
        """Return the position of the last truncate in a scope, or "" if the scope had none."""
        ...

    def set_floor(self, table: TableId, scope: str, pos: str) -> None:
        """Store a truncate's position."""
        ...


@dataclass
class AppliedChanges:
    """Totals for one `apply` call. Every change is counted in exactly one of the first four numbers.

    Args:
        keyless: the number of changes to rows without a key. The store does not contain these rows.
        announcements: events other than row events.
        undecided: the number of rows that were removed while two rows had the same key, if it is unknown which of the
            two was removed. See `incomplete`.
        outlived: the ids of changes that would bring back a row which another scope has since deleted. These changes
            count as stale.
        filled: the number of rows that got the default of a column which a statement added.
        not_applied: the ids of events about statements that changed rows without row events. Reload the tables of these
            events (docs/envelope/statements.md).
    """

    applied: int = 0
    stale: int = 0
    keyless: int = 0
    announcements: int = 0
    filled: int = 0
    not_applied: list[str] = field(default_factory=list)
    undecided: int = 0
    outlived: list[str] = field(default_factory=list)


def apply(changes: Iterable[Change], store: RowStore) -> AppliedChanges:
    """Apply changes to the rows in a store, in the order of their canonical partition.

    A change that was already applied has no effect.

    Raises:
        ApplyError: an operation from a later release, a row without a known key, or a reload without a new epoch.
    """
    account = AppliedChanges()
    for change in changes:
        if change.kind != "row":
            account.announcements += 1
            _announce(change, store, account)
            continue
        operation = _OPERATIONS.get(change.op or "")
        if operation is None or change.table is None:
            raise ApplyError(
                f"{change.event.id}: unknown operation {quote(change.op)}; expected one of "
                f"{', '.join(_OPERATIONS)}. The operation may change rows, so upgrade to a release that supports it"
            )
        operation(change, change.table, store, account)
    return account


def _announce(change: Change, store: RowStore, account: AppliedChanges) -> None:
    """Apply a statement by filling in its default. If this is not possible, report it."""
    words = {note.word for note in statement_notes(change.event.notes)}
    if not words.isdisjoint(_NOT_APPLIED):
        account.not_applied.append(change.event.id)
    if DEFAULT_FILLED in words and change.table is not None and change.after:
        floor = store.floor(change.table, change.event.pos_scope)
        types = {note.column: note.type or "unknown" for note in statement_notes(change.event.notes) if note.column}
        for key in [*store.keys(change.table)]:
            row = _row(store, change.table, key)
            if row.values is None or row.is_stale(change, floor):
                continue
            # Another scope may already have written the column, and nothing shows whether the write or the statement
            # came first.
            if row.progress.scope == change.event.pos_scope or row.values.keys().isdisjoint(change.after):
                row.enter(change, floor)
                row.write(change)
                store.store(change.table, key, row, types)
                account.filled += 1


_NOT_APPLIED = frozenset({STATEMENT_NOT_APPLIED, TABLE_DROPPED, COLUMN_REWRITTEN, COLUMN_RETYPED})


def _truncate(change: Change, table: TableId, store: RowStore, account: AppliedChanges) -> None:
    scope, pos = change.event.pos_scope, change.event.pos
    if pos <= store.floor(table, scope):
        account.stale += 1
        return
    if is_in_order(scope):
        store.clear(table)
    else:
        for key in [*store.keys(table)]:
            _remove(change, table, key, store)
    store.set_floor(table, scope, pos)
    account.applied += 1


def _write(change: Change, table: TableId, store: RowStore, account: AppliedChanges) -> None:
    old, new = _key(change.key_old), _key(change.key)
    if new is None:
        _leave(change, table, old, store, account)
        return
    row, floor = _row(store, table, new), store.floor(table, change.event.pos_scope)
    moved = None if old is None or old == new else _row(store, table, old)
    is_stale, moved_is_stale = row.is_stale(change, floor), moved is None or moved.is_stale(change, floor)
    if is_stale and moved_is_stale:
        _refuse_reload(change, row, floor)
        account.stale += 1
        return
    types, left = _types(change), None
    if moved is not None and old is not None and not moved_is_stale:
        moved.enter(change, floor)
        left = _left(change, moved, account)
        store.store(table, old, moved, types)
    if row.outlives(change):
        account.outlived.append(change.event.id)
        account.stale += 1
        return
    if not is_stale:
        row.enter(change, floor)
        if moved is None:
            (row.insert if change.op == "c" else row.write)(change)
        else:
            _move(change, left, row)
        store.store(table, new, row, types)
    account.applied += 1


def _left(change: Change, row: KeptRow, account: AppliedChanges) -> KeptRow | None:
    had = row.values is not None
    left = row.leave(change)
    account.undecided += had and left is None
    return left


def _move(change: Change, left: KeptRow | None, new: KeptRow) -> None:
    """Apply a key change. If the row under the old key is known, it provides the columns that the new row lacks."""
    aside = new.set_aside(change)
    is_late = change.event.pos < new.progress.positions[change.event.pos_scope]
    if change.is_full or left is None or is_late:
        new.remove(change)
        new.write(change)
    else:
        new.become(left, change)
    new.progress.aside = aside


def _delete(change: Change, table: TableId, store: RowStore, account: AppliedChanges) -> None:
    key = _key(change.key)
    if key is None:
        _leave(change, table, None, store, account)
    elif _delete_row(change, table, key, store, account):
        account.applied += 1
    else:
        account.stale += 1


def _delete_row(change: Change, table: TableId, key: RowKey, store: RowStore, account: AppliedChanges) -> bool:
    row, floor = _row(store, table, key), store.floor(table, change.event.pos_scope)
    if row.is_stale(change, floor):
        return False
    row.enter(change, floor)
    _left(change, row, account)
    store.store(table, key, row, _types(change))
    return True


def _leave(change: Change, table: TableId, old: RowKey | None, store: RowStore, account: AppliedChanges) -> None:
    """Handle a row without a key. The row is not stored. If it was stored before, it is removed."""
    if old is None and "KEY_INCOMPLETE" not in (change.event.notes or ()):
        raise ApplyError(
            f"{change.event.id}: the key of {table} is unknown, so its rows cannot be identified. Declare a key "
            "under `tables` of the source, or store this table's changes instead of its rows"
        )
    if old is not None:
        _delete_row(change, table, old, store, account)
    account.keyless += 1


def _remove(change: Change, table: TableId, key: RowKey, store: RowStore) -> None:
    """Remove a row, unless a later change has already written it."""
    row, floor = _row(store, table, key), store.floor(table, change.event.pos_scope)
    if row.is_stale(change, floor):
        return
    row.enter(change, floor)
    row.remove(change)
    store.store(table, key, row, _types(change))


def _row(store: RowStore, table: TableId, key: RowKey) -> KeptRow:
    return store.load(table, key) or KeptRow.unseen()


def _key(image: RowValues | None) -> RowKey | None:
    return None if image is None else tuple(image.values())


def _types(change: Change) -> Mapping[str, str]:
    return {} if change.schema is None else change.schema.column_types


def _refuse_reload(change: Change, row: KeptRow, floor: str) -> None:
    if change.event.pos > floor and row.is_reloaded(change):
        raise ApplyError(
            f"{change.event.id}: this snapshot row of {change.table} is for a row that later changes have already "
            "written, so the table was reloaded. Add the time of the reload to `epochs` of the source"
        )


_OPERATIONS: Mapping[str, Callable[[Change, TableId, RowStore, AppliedChanges], None]] = {
    "r": _write,
    "c": _write,
    "u": _write,
    "d": _delete,
    "t": _truncate,
}
