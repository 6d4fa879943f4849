"""Fold many row changes into one change per row. This module decides which images make up a row. It does not read the
values in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from cdc_core.position import epoch
from spark_sink.errors import Reason, Refused
from spark_sink.model.event import DUPLICATE, GAP, TRUNCATED, Event, Key, Latest, is_loaded
from spark_sink.model.row import (
    IsRepeat,
    Row,
    RowMark,
    never,
)


@dataclass(slots=True)
class Folded:
    """The rows that changed in a batch, by key, and the special cases that came up.

    Args:
        undecided: the number of rows that were removed while two rows may have had the same key, if it is unknown which
            of the two was removed.
        outlived: the events that would bring back a row which another scope has since deleted.
    """

    rows: Mapping[Key, Row]
    stale: Counter[str] = field(default_factory=Counter)
    late: int = 0
    scope_changes: int = 0
    undecided: int = 0
    outlived: list[Event] = field(default_factory=list)


def fold(
    events: Iterable[Event],
    keys: Mapping[str, Key],
    marks: Mapping[Key, RowMark],
    floors: Mapping[str, str],
    latest: Mapping[str, Latest] = MappingProxyType({}),
    is_repeat: IsRepeat = never,
) -> Folded:
    """Return the rows after `events` have been applied in canonical order.

    Args:
        keys: the typed key for every key text in `events`.
        marks: the stored markers for every key in `events` that is stored.
        floors: the position of the last truncate in each scope.
        latest: the position that each scope has reached in this batch, counting events for other rows.
        is_repeat: see `IsRepeat`.

    Raises:
        Refused: snapshot rows arrived without a new epoch, although the table has changed since the snapshot.
    """
    rows: dict[Key, Row] = {}

    def row_of(text: str) -> tuple[Key, Row]:
        key = keys[text]
        row = rows.get(key)
        if row is None:
            row = rows[key] = Row.of(key, marks.get(key))
        return key, row

    folded = Folded(rows)
    for event in events:
        floor = floors.get(event.scope, "")
        if event.pos <= floor:
            check_epoch(event, floor)
            folded.stale[TRUNCATED] += 1
            continue
        key, row = row_of(event.key)
        moves = event.key_old is not None and keys[event.key_old] != key
        if event.op == GAP:
            row.miss(event)
            if moves and event.key_old is not None:
                row_of(event.key_old)[1].miss(event)
        elif moves and event.key_old is not None:
            _move(event, row_of(event.key_old)[1], row, floor, folded, is_repeat)
        elif event.op != "d" and row.outlives(event):
            folded.outlived.append(event)
        elif (why := row.stale(event)) is not None:
            if why != DUPLICATE:
                check_epoch(event, row.positions[event.scope])
            folded.stale[why] += 1
        else:
            _enter(event, row, floor, folded)
            if event.op == "d":
                _leave(row, event, folded, is_repeat)
            else:
                _APPLY[event.op](row, event)
    folded.rows = {key: row for key, row in rows.items() if row.touched}
    for row in folded.rows.values():
        row.release(latest)
    return folded


def _enter(event: Event, row: Row, floor: str, folded: Folded) -> None:
    folded.late += event.pos < row.positions.get(event.scope, "")
    folded.scope_changes += row.enter(event, floor)


def _move(event: Event, old: Row, new: Row, floor: str, folded: Folded, is_repeat: IsRepeat) -> None:
    """Apply a key change: delete the old row and insert the new one. If the event is partial, the new row takes the
    missing values from the old one.

    The delete and the insert are checked separately, because either row may have changed since. If two rows had the old
    key within one transaction, the older of them is moved.
    """
    old_stale, new_stale = old.stale(event), new.stale(event)
    if old_stale and new_stale:
        folded.stale[new_stale] += 1
    left = None
    if not old_stale:
        old.enter(event, floor)
        left = _leave(old, event, folded, is_repeat)
    if new.outlives(event):
        folded.outlived.append(event)
    elif not new_stale:
        _enter(event, new, floor, folded)
        aside = new.set_aside(event)
        if event.resets or left is None or event.pos < new.positions[event.scope]:
            new.remove(event)
            new.write(event)
        else:
            new.become(left, event)
        new.aside = aside


def _leave(row: Row, event: Event, folded: Folded, is_repeat: IsRepeat) -> Row | None:
    had = row.exists
    left = row.leave(event, is_repeat)
    folded.undecided += had and left is None
    return left


def check_epoch(event: Event, last: str) -> None:
    """Reject a snapshot row that arrives after its row has changed, unless the row began with this snapshot row. The
    position does not show whether the snapshot row is newer than the change.

    Raises:
        Refused: the snapshot row has to be rejected.
    """
    loaded = event.op == "r" and is_loaded(event.scope, event.pos)
    if loaded and epoch(event.pos) == epoch(last) and not is_loaded(event.scope, last):
        raise Refused(
            Reason.RELOAD_UNANNOUNCED,
            "a snapshot row arrived for a row with later changes, so the table was reloaded; add the time of "
            "the reload to `epochs` of the source",
        )


_APPLY: Mapping[str, Callable[[Row, Event], None]] = {
    "c": Row.insert,
    "r": Row.write,
    "u": Row.write,
}
