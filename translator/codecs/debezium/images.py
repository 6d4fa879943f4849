"""Adapt an event's row images to what Debezium consumers accept. An image is completed, split in two, or rejected.

This module invents no values. Each value was sent in the event, or comes from the other image if the event says that
the column did not change. Otherwise it stays absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import TypeAlias

import msgspec
from msgspec import Struct

from cdc_core.envelope import ChangeEvent, TableSchema
from translator.codecs.debezium.options import MissingBefore, Options, Truncate, Unavailable
from translator.errors import ErrorCode, MessageError

Columns: TypeAlias = dict[str, msgspec.Raw]
"""The JSON text of each column's value, by column name and in image order."""

NEW_KEY = "__debezium.newkey"
OLD_KEY = "__debezium.oldkey"

_MARK = "__debezium_unavailable_value"
_MARK_AS_BYTES = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
PLACEHOLDERS: Mapping[str, msgspec.Raw] = {
    name: msgspec.Raw(msgspec.json.encode(mark))
    for name, mark in {"string": _MARK, "json": _MARK, "unknown": _MARK, "bytes": _MARK_AS_BYTES}.items()
}
"""Debezium's placeholder for "unavailable", for each canonical type that can hold it."""

_NULL = msgspec.Raw(b"null")


class ImageRow(Struct, frozen=True):
    """A row event with parsed images."""

    op: str
    key: Columns | None
    key_old: Columns | None
    before: Columns | None
    after: Columns | None
    before_state: str
    changed: Set[str] | None
    without_form: Set[str]
    """The columns whose value cannot be written. The value is an issue, or the schema block cannot express it."""
    withheld: Set[str]
    """The columns in `without_form`, plus those without a value from the source."""
    schema: TableSchema | None

    @property
    def gains_key(self) -> bool:
        """Return whether an update replaced a NULL in the key. If so, the row had no key before."""
        sent = (self.before or {}) if self.op == "u" and self.key_old is None else {}
        return any(sent.get(name) == _NULL for name in self.key or ())

    @property
    def old_key(self) -> Columns | None:
        """The row's key before the change, or None if it had none."""
        if self.key_old is not None:
            return self.key_old
        return None if self.gains_key else self.key

    @property
    def changes_key(self) -> bool:
        """Return whether an update changed, removed or added the row's key."""
        return self.key_old is not None or self.gains_key


class ConnectChange(Struct, frozen=True):
    """A single Debezium event."""

    op: str
    key: Columns | None
    before: Columns | None
    after: Columns | None
    missing: tuple[str, ...] = ()
    """The row's columns that have no value in `after`."""
    other_key: tuple[str, Columns] | None = None
    """The header and the key with which one half of a key change identifies the other."""


def operation_of(event: ChangeEvent) -> str:
    """Return a row event's operation."""
    if event.op is None:
        raise ValueError("a row event has no op")
    return event.op


def changes(row: ImageRow, options: Options) -> list[ConnectChange]:
    """Return the changes that Debezium would have written for the row.

    Raises:
        MessageError: an option rejects the row, or every way of writing it would be wrong.
    """
    return _OPERATIONS[row.op](row, options)


def _created(row: ImageRow, options: Options) -> list[ConnectChange]:
    after, missing = _new_image(row, _sent_after(row), options)
    return [ConnectChange(row.op, row.key, None, after, missing)]


def _updated(row: ImageRow, options: Options) -> list[ConnectChange]:
    sent = _with_key(_completed(_sent_after(row), row.before or {}, row), row.key)
    after, missing = _new_image(row, sent, options)
    found = []
    for resolved in _with_before(msgspec.structs.replace(row, after=sent), options):
        if row.changes_key:
            found += _split(resolved, after, missing)
        else:
            found.append(ConnectChange(resolved.op, resolved.key, _old_image(resolved.before, after), after, missing))
    return found


def _deleted(row: ImageRow, options: Options) -> list[ConnectChange]:
    return [ConnectChange(resolved.op, resolved.key, resolved.before, None) for resolved in _with_before(row, options)]


def _truncated(row: ImageRow, options: Options) -> list[ConnectChange]:
    return _TRUNCATE[options.truncate]


_OPERATIONS: Mapping[str, Callable[[ImageRow, Options], list[ConnectChange]]] = {
    "r": _created,
    "c": _created,
    "u": _updated,
    "d": _deleted,
    "t": _truncated,
}
_TRUNCATE: Mapping[Truncate, list[ConnectChange]] = {"drop": [], "emit": [ConnectChange("t", None, None, None)]}


def _split(row: ImageRow, after: Columns, missing: tuple[str, ...]) -> list[ConnectChange]:
    """Split a key change as Debezium does. Delete the row under the old key, and create a row under the new one.

    The create writes the whole row after the delete has removed the old one. Unlike in other updates, a column that was
    not sent would therefore become NULL permanently. If the row had no key and lacks the old image that consumers
    require, only the create is written (`as_create`). Consumers that keep rows by key never stored the old row.
    """
    _refuse_lost(row, missing)
    left = None if row.key_old is None else (OLD_KEY, row.key_old)
    create = ConnectChange("c", row.key, None, after, missing, left)
    if row.op == "c":
        return [create]
    return [
        ConnectChange("d", row.key_old, row.before, None, (), None if row.key is None else (NEW_KEY, row.key)),
        create,
    ]


def moved_row(row: ImageRow) -> Columns:
    """Return the complete new row of a key change. Columns that are known not to have changed are filled in.

    Raises:
        MessageError: the new row lacks a column that the old row could have.
    """
    after = _with_key(_completed(_sent_after(row), row.before or {}, row), row.key)
    _refuse_lost(row, _missing(row, after))
    return after


def _refuse_lost(row: ImageRow, missing: Iterable[str]) -> None:
    lost = [name for name in missing if name not in row.without_form]
    if lost:
        reason = f"a key change is written as a delete and a create, but the new row lacks column {lost[0]!r}"
        raise MessageError(ErrorCode.KEY_CHANGE_INCOMPLETE, f"{reason}; configure the source to send whole rows")


# -- the new image


def _sent_after(row: ImageRow) -> Columns:
    if row.after is None:
        raise ValueError(f"an event with op {row.op} has no after image")
    return row.after


def _with_key(image: Columns, key: Columns | None) -> Columns:
    """Add the key columns, which are known even if the image does not contain them."""
    return image if key is None or key.keys() <= image.keys() else {**key, **image}


def _completed(sparse: Columns, other: Columns, row: ImageRow) -> Columns:
    """Return `sparse`, with the columns of `other` that did not change according to the event."""
    if row.changed is None or other.keys() <= sparse.keys():
        return sparse
    closed = row.changed | row.withheld
    filled = {name: sparse.get(name, value) for name, value in other.items() if name in sparse or name not in closed}
    return {**filled, **sparse}


def _new_image(row: ImageRow, after: Columns, options: Options) -> tuple[Columns, tuple[str, ...]]:
    """Return the part of `after` that is written, and the columns whose values are unknown."""
    missing = _missing(row, after)
    return (_UNAVAILABLE[options.unavailable](row, after, missing) if missing else after), missing


def _missing(row: ImageRow, after: Columns) -> tuple[str, ...]:
    """Return the columns in table order that are known to exist in the row but are missing from `after`."""
    before = row.before or {}
    names = row.schema.column_names if row.schema else frozenset[str]()
    if names <= after.keys() and before.keys() <= after.keys() and row.withheld <= after.keys():
        return ()
    ordered = [column.name for column in row.schema.columns] if row.schema else []
    known = dict.fromkeys((*ordered, *before, *sorted(row.withheld)))
    return tuple(name for name in known if name not in after)


def _omit(row: ImageRow, after: Columns, missing: tuple[str, ...]) -> Columns:
    return after


def _placeholder(row: ImageRow, after: Columns, missing: tuple[str, ...]) -> Columns:
    """Use a placeholder that makes a sink keep the value it has. A new row has no current value."""
    if row.op != "u" or row.changes_key:
        return after
    types = {column.name: column.type for column in row.schema.columns} if row.schema else {}
    marked = {}
    for name in missing:
        canonical = types.get(name, "unknown")
        if canonical not in PLACEHOLDERS:
            allowed = f"unavailable: placeholder works only for {', '.join(PLACEHOLDERS)}"
            raise refusal(f"column {name!r} has no value, and its type is {canonical}; {allowed}")
        marked[name] = PLACEHOLDERS[canonical]
    return {**after, **marked}


def _complete_only(row: ImageRow, after: Columns, missing: tuple[str, ...]) -> Columns:
    raise refusal(f"column {missing[0]!r} has no value, but unavailable: fail requires a value for every column")


_UNAVAILABLE: Mapping[Unavailable, Callable[[ImageRow, Columns, tuple[str, ...]], Columns]] = {
    "omit": _omit,
    "placeholder": _placeholder,
    "fail": _complete_only,
}


# -- the old image


def _old_image(before: Columns | None, after: Columns) -> Columns | None:
    """Return `before` without columns that `after` lacks. Otherwise, a consumer that computes sums would subtract the
    old value but add no new one.

    Paimon 1.2 requires this, too: it reads both images with the columns in `after` and fails on any other column.
    """
    if before is None or before.keys() <= after.keys():
        return before
    return {name: value for name, value in before.items() if name in after}


def _with_before(row: ImageRow, options: Options) -> Iterable[ImageRow]:
    """Return the row with an old image that consumers accept. Return no row if the policy drops the event."""
    if row.before is not None:
        row = msgspec.structs.replace(row, before=_with_key(row.before, row.old_key))
    if not _lacks_before(row, row.before):
        return (row,)
    for policy in options.missing_before:
        resolved = _MISSING_BEFORE[policy](row)
        if resolved is not None:
            return resolved
    return _fail(row)


def _lacks_before(row: ImageRow, before: Columns | None) -> bool:
    """Return whether `before` lacks something that consumers need.

    Withheld values do not count, because no policy can supply them.
    """
    if before is None:
        return True
    if row.after is not None:
        return not row.after.keys() - before.keys() <= row.withheld
    if row.schema is not None:
        return not row.schema.column_names - before.keys() <= row.withheld
    return row.before_state == "key"


def _merge(row: ImageRow) -> Iterable[ImageRow] | None:
    if row.after is None:
        return None
    before = _completed(row.before or {}, row.after, row)
    return None if _lacks_before(row, before) else (msgspec.structs.replace(row, before=before),)


def _as_create(row: ImageRow) -> Iterable[ImageRow] | None:
    """Return None for a row without a key or with a changed key, because a create would add a second row."""
    if row.op != "u" or row.key is None or row.key_old is not None:
        return None
    return (msgspec.structs.replace(row, op="c", before=None),)


def _partial(row: ImageRow) -> Iterable[ImageRow] | None:
    if row.old_key is None:
        return None
    return (msgspec.structs.replace(row, before=_with_key(row.before or {}, row.old_key)),)


def _drop_event(row: ImageRow) -> Iterable[ImageRow] | None:
    return ()


def _fail(row: ImageRow) -> Iterable[ImageRow]:
    image = "without an old image" if row.before is None else "with an incomplete old image"
    key = " and without a key" if row.key is None else ""
    remedy = "add drop_event as the last policy to skip such events"
    raise refusal(f"op {row.op} arrived {image}{key}, which missing_before rejects; {remedy}")


_MISSING_BEFORE: Mapping[MissingBefore, Callable[[ImageRow], Iterable[ImageRow] | None]] = {
    "merge": _merge,
    "as_create": _as_create,
    "partial": _partial,
    "drop_event": _drop_event,
    "fail": _fail,
}


def refusal(reason: str) -> MessageError:
    """Return the error for an event that a projection cannot express faithfully. `told_by` identifies the codec."""
    return MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)


def told_by(codec: str, error: MessageError) -> MessageError:
    """Prefix the reason with the codec name, because several codecs share the check."""
    return MessageError(error.code, f"{codec}: {error.reason}", path=error.path)
