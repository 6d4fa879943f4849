"""Collect evidence for the continuity check: the key of each changed row, and hashes of its images.

A sparse before image is completed from the after image. The extension collects the same evidence about the rows that it
translates (`_native/src/continuity.rs`).
"""

from __future__ import annotations

import msgspec

from translator.dialects.canal.known_rows import RowKey
from translator.dialects.canal.variant import SWAP_OLD_DATA
from translator.message import Image, RowChange


class RowEvidence:
    """A row whose change was decoded on the plain path.

    Args:
        complete: whether an image contains all of its row's columns.
    """

    __slots__ = ("_after", "_before", "change", "has_before", "has_two_images")

    def __init__(self, change: RowChange, *, complete: bool) -> None:
        self.change = change
        before, after = change.before, change.after
        self.has_before = before is not None
        # Both images of an update contain the same columns.
        self.has_two_images = False
        if change.op == "u" and before is not None and after is not None:
            self.has_two_images = not change.before_sparse if complete else before.keys() == after.keys()
        # A sparse image leaves out unchanged columns, which nearly always include the key.
        self._before = after | before if before and after is not None and change.before_sparse else before
        self._after = after

    def key(self) -> RowKey | None:
        """Return the row's key after the change, or a deleted row's key. Return None if the table has no key, or if the
        row has NULL in the key.
        """
        return _key(self.change, self._before if self._after is None else self._after)

    def key_before(self) -> RowKey | None:
        return _key(self.change, self._before)

    def before(self) -> bytes | None:
        """Return the before image as JSON, with sorted columns."""
        return None if self._before is None else _encode_sorted(self._before)

    def after(self) -> bytes | None:
        return None if self._after is None else _encode_sorted(self._after)

    def differing(self) -> list[str]:
        """Return the columns of the after image that differ in the before image or are missing from it."""
        before, after = self._before or {}, self._after or {}
        return [name for name in after if name not in before or before[name] != after[name]]


def swapped(row: RowEvidence) -> bool:
    """Return whether `data` was read as the before image."""
    return SWAP_OLD_DATA in (row.change.notes or ())


def _key(change: RowChange, image: Image | None) -> RowKey | None:
    names = change.key_columns
    if image is None or not names:
        return None
    values = {name: image.get(name) for name in names}
    return None if None in values.values() else (change.table, _encode(values))


_encode = msgspec.json.Encoder().encode
# The same for the same columns and values, in any order. The text of the values is hashed, because Python hashes the
# numbers -1 and -2 to the same value, so that a change from one to the other would look like no change.
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
