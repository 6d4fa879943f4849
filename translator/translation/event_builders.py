"""Build the event for a change. There is one builder per operation. These rules apply to all dialects.

They cover keys and key changes, the completion of sparse images, and the states of images. The functions are pure, like
`translate`, which calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from cdc_core.envelope import NO_KEY, ChangeEvent, Context, Detail, ImageText, Key
from translator.errors import ErrorCode, MessageError
from translator.message import Change, Image, OtherChange, RowChange
from translator.values.times import GAP, OVERLAP

T = TypeVar("T")


def _snapshot(at: Context, change: RowChange) -> ChangeEvent:
    after = _require(change.after, "after")
    key = _key(change, after, None)
    return ChangeEvent.snapshot(at, key, _text(after, _state(after, change)), _detail(change))


def _insert(at: Context, change: RowChange) -> ChangeEvent:
    after = _require(change.after, "after")
    key = _key(change, after, None)
    return ChangeEvent.insert(at, key, _text(after, _state(after, change)), _detail(change))


def _update(at: Context, change: RowChange) -> ChangeEvent:
    sent_before, sent_after = change.before, _require(change.after, "after")
    before, after = sent_before, sent_after
    if sent_before is not None and change.before_sparse:
        before = _completed(sent_before, sent_after, change)
        change.notes = [*(change.notes or ()), "BEFORE_MERGED"]
    if sent_before is not None and change.after_sparse:
        after = _completed(sent_after, sent_before, change)
    after_state = _state(after, change)
    # An update's after image is full if and only if it has every column in the schema, regardless of its source.
    if after is not sent_after and after_state != "full":
        after_state = "merged"
    key = _key(change, after, before)
    image = None
    if before is not None:
        image = _text(before, _state(before, change) if before is sent_before else "merged")
    return ChangeEvent.update(at, key, image, _text(after, after_state), _detail(change))


def _delete(at: Context, change: RowChange) -> ChangeEvent:
    before = change.before
    key = _key(change, before or {}, None)
    image = _text(before, _state(before, change)) if before is not None else None
    return ChangeEvent.delete(at, key, image, _detail(change))


def _truncate(at: Context, change: RowChange) -> ChangeEvent:
    return ChangeEvent.truncate(at, _detail(change))


def _schema_change(at: Context, change: OtherChange) -> ChangeEvent:
    after = None if change.after is None else ImageText(_json(change.after), "partial")
    return ChangeEvent.schema_change(at, _require(change.ddl, "ddl"), _detail(change), after)


def _transaction(at: Context, change: OtherChange) -> ChangeEvent:
    return ChangeEvent.transaction(at, _detail(change))


def _watermark(at: Context, change: OtherChange) -> ChangeEvent:
    return ChangeEvent.watermark(at, _detail(change))


# A missing entry in these tables is a bug in the dialect and becomes INTERNAL.
ROW_EVENTS: Mapping[str, Callable[[Context, RowChange], ChangeEvent]] = {
    "r": _snapshot,
    "c": _insert,
    "u": _update,
    "d": _delete,
    "t": _truncate,
}
OTHER_EVENTS: Mapping[str, Callable[[Context, OtherChange], ChangeEvent]] = {
    "schema": _schema_change,
    "tx": _transaction,
    "watermark": _watermark,
}


def _require(value: T | None, what: str) -> T:
    if value is None:
        raise ValueError(f"a dialect returned no {what}")
    return value


def _completed(sparse: Image, other: Image, change: RowChange) -> Image:
    """Return `other` overlaid with `sparse`, in the order of `other`. Withheld columns and columns with an issue are
    not filled in.
    """
    if not change.issues and not change.unavailable:
        return other | sparse
    unknown = {issue.col for issue in change.issues or ()}.union(change.unavailable or ())
    image = {name: sparse.get(name, value) for name, value in other.items() if name in sparse or name not in unknown}
    image.update((name, value) for name, value in sparse.items() if name not in image)
    return image


def _state(image: Image, change: RowChange) -> str:
    schema = change.schema
    if schema is not None and image.keys() >= schema.column_names:
        return "full"
    if change.key_columns and image.keys() == set(change.key_columns):
        return "key"
    return "partial"


def _text(image: Image, state: str) -> ImageText:
    return ImageText(_json(image), state)


def _detail(change: Change) -> Detail:
    if isinstance(change, OtherChange):
        return Detail(notes=change.notes, ext=change.ext)
    return Detail(change.changed, change.unavailable, change.issues, change.notes, change.ext)


def _key(change: RowChange, image: Image, before: Image | None) -> Key:
    """Return the key from `image`. If the image lacks key columns, they are taken from `before`.

    A key contains no NULL. A row with NULL in a key column has no key, because there may be several such rows. If an
    image lacks a key column, the row's key is unknown. Neither is an error. The row is translated without a key, and a
    note gives the reason.

    Raises:
        MessageError: INVALID_FIELD if a key column's value is missing or cannot be represented exactly.
            KEY_CHANGE_INCOMPLETE if the row's old key is unknown, because consumers would keep the row under that key.
    """
    names = change.key_columns
    if not names:
        return NO_KEY
    if change.issues or change.notes:
        _check_key_values(change)
    old = before or {}
    new = {name: image[name] if name in image else old.get(name) for name in names}
    changed = [name for name in names if name in old and old[name] != new[name]]
    if None not in new.values():
        if not changed:
            return Key(_json(new), change.key_kind)
        return Key(_json(new), change.key_kind, _left_key(change, old))
    change.notes = [*(change.notes or ()), "KEY_INCOMPLETE"]
    if changed or _may_have_left_a_key(change, image, old):
        return Key(None, NO_KEY.kind, _left_key(change, old))
    return NO_KEY


def _may_have_left_a_key(change: RowChange, image: Image, old: Image) -> bool:
    """Return whether, as far as the message shows, an update wrote the NULL that the row's key now contains."""
    if change.op != "u":
        return False
    nulls = [name for name in change.key_columns if name in image and image[name] is None and name not in old]
    return bool(nulls) and (change.changed is None or not set(nulls).isdisjoint(change.changed))


def _left_key(change: RowChange, old: Image) -> str | None:
    """Return the key that the row had before a key change. Return None if the old key contained NULL, because no
    consumer has the row in that case.

    Raises:
        MessageError: KEY_CHANGE_INCOMPLETE, because `old` lacks a key column.
    """
    names = change.key_columns
    if any(name in old and old[name] is None for name in names):
        left = None
    else:
        lacking = next((name for name in names if name not in old), None)
        if lacking is not None:
            reason = f"the key changed, but the before image lacks key column {lacking!r}"
            raise MessageError(ErrorCode.KEY_CHANGE_INCOMPLETE, reason)
        left = _json({name: old[name] for name in names})
    change.notes = [*(change.notes or ()), "PK_CHANGED"]
    return left


def _check_key_values(change: RowChange) -> None:
    """Reject a key column with an issue or an assumption. The key could identify another row, or two rows at the same
    time.
    """
    for issue in change.issues or ():
        if issue.col in change.key_columns:
            reason = f"key column {issue.col!r} has a value that cannot be represented exactly ({issue.code})"
            raise MessageError(ErrorCode.INVALID_FIELD, reason)
    for note in change.notes or ():
        if note.startswith(_TWO_READINGS) and (column := note.partition("=")[2]) in change.key_columns:
            reason = f"key column {column!r} contains a local time that occurs twice or never in its time zone"
            raise MessageError(ErrorCode.INVALID_FIELD, reason)


_TWO_READINGS = (f"{OVERLAP}=", f"{GAP}=")


def _json(image: Image) -> str:
    return _encode(image).decode()


_encode = msgspec.json.Encoder().encode
