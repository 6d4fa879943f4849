"""Evidence for the continuity check: the key of each changed row, and hashes of its images.

The evidence comes either from a change decoded on the plain path, or from the parts of a row that the native path
stored. A sparse before image is completed from the after image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import msgspec

from translator._native.layout import RowImages, TakenMessage
from translator.dialects.canal.variant import SWAP_OLD_DATA
from translator.message import Image, RowChange, TableName, Writer

RowKey: TypeAlias = tuple[TableName, bytes]
"""A row, identified by its table and its key as JSON."""


class RowEvidence(Protocol):
    """A changed row. A key is None if the table has no key or the row has NULL in the key. A hash is None if the image
    does not exist.
    """

    @property
    def op(self) -> str: ...
    @property
    def table(self) -> TableName: ...
    @property
    def writer(self) -> Writer: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def row(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def ts_commit_us(self) -> int | None: ...
    @property
    def ts_capture_us(self) -> int | None: ...
    @property
    def has_before(self) -> bool: ...
    @property
    def has_two_images(self) -> bool:
        """Return whether the change is an update whose two images contain the same columns."""
        ...

    def key(self) -> RowKey | None:
        """Return the row's key after the change, or a deleted row's key."""
        ...

    def key_before(self) -> RowKey | None: ...
    def before(self) -> int | None: ...
    def after(self) -> int | None: ...
    def differing(self) -> list[str]:
        """Return the columns of the after image that differ in the before image or are missing from it."""
        ...


def swapped(row: RowEvidence) -> bool:
    """Return whether `data` was read as the before image."""
    return SWAP_OLD_DATA in row.notes


class DecodedRow:
    """The facts about a change decoded on the plain path.

    Args:
        complete: whether an image contains all of its row's columns.
    """

    __slots__ = ("_after", "_before", "change", "has_before", "has_two_images")

    def __init__(self, change: RowChange, *, complete: bool) -> None:
        self.change = change
        before, after = change.before, change.after
        self.has_before = before is not None
        self.has_two_images = False
        if change.op == "u" and before is not None and after is not None:
            self.has_two_images = not change.before_sparse if complete else before.keys() == after.keys()
        # A sparse image leaves out unchanged columns, which nearly always include the key.
        self._before = after | before if before and after is not None and change.before_sparse else before
        self._after = after

    op = property(lambda self: self.change.op)
    table = property(lambda self: self.change.table)
    writer = property(lambda self: self.change.writer)
    notes = property(lambda self: self.change.notes or ())
    row = property(lambda self: self.change.row)
    rows = property(lambda self: self.change.rows)
    ts_commit_us = property(lambda self: self.change.ts_commit_us)
    ts_capture_us = property(lambda self: self.change.ts_capture_us)

    def key(self) -> RowKey | None:
        return _key(self.change, self._before if self._after is None else self._after)

    def key_before(self) -> RowKey | None:
        return _key(self.change, self._before)

    def before(self) -> int | None:
        return None if self._before is None else hash(_encode_sorted(self._before))

    def after(self) -> int | None:
        return None if self._after is None else hash(_encode_sorted(self._after))

    def differing(self) -> list[str]:
        return _differing(self._before or {}, self._after or {})


class TakenRow:
    """The facts about a row that the native path translated."""

    __slots__ = (
        "_images",
        "_key",
        "_key_old",
        "has_before",
        "has_two_images",
        "notes",
        "op",
        "row",
        "rows",
        "table",
        "ts_capture_us",
        "ts_commit_us",
        "writer",
    )

    def __init__(self, taken: TakenMessage, row: int, images: RowImages) -> None:
        # Copied to plain attributes, because each is read up to four times, and reading the extension's attributes
        # takes three times as long.
        operation = taken.operation
        layout, key, key_old = operation.layout, images.key, images.key_old
        self._images = images
        self._key = None if key is None else (operation.table, key)
        self._key_old = self._key if key_old is None else (operation.table, key_old)
        self.op, self.writer, self.notes = layout.op, layout.writer, layout.notes
        self.table = operation.table
        self.row, self.rows = row, len(taken.images)
        self.ts_commit_us, self.ts_capture_us = taken.ts_commit_us, taken.ts_capture_us
        self.has_before, self.has_two_images = images.before is not None, images.whole

    def key(self) -> RowKey | None:
        return self._key

    def key_before(self) -> RowKey | None:
        return self._key_old

    def before(self) -> int | None:
        return None if self._images.before is None else hash(self._images.before)

    def after(self) -> int | None:
        return None if self._images.after is None else hash(self._images.after)

    def differing(self) -> list[str]:
        return _differing(_decode(self._images.before or b"{}"), _decode(self._images.after or b"{}"))


def taken_rows(taken: TakenMessage) -> list[TakenRow]:
    """Return the facts about all rows in a message that the native path translated."""
    return [TakenRow(taken, row, images) for row, images in enumerate(taken.images)]


def _differing(before: Image, after: Image) -> list[str]:
    return [name for name in after if name not in before or before[name] != after[name]]


def _key(change: RowChange, image: Image | None) -> RowKey | None:
    names = change.key_columns
    if image is None or not names:
        return None
    values = {name: image.get(name) for name in names}
    return None if None in values.values() else (change.table, _encode(values))


_encode = msgspec.json.Encoder().encode
# Equal for the same columns and values in any order. The text of the values is hashed, because Python hashes the
# numbers -1 and -2 to the same value, so that a change from one to the other would look like no change.
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(dict).decode
