"""Keep the last state of each key, for the continuity check."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

SAME_SECOND = 16
"""Maximum number of updates to a key that can be told apart within one second at the source. With more updates, nothing
in that second is evidence.
"""

Pair: TypeAlias = tuple[int, int]
"""The hashes of an update's two images, the smaller one first."""

DATA_AFTER, DATA_BEFORE = 1, 2
"""The two ways to read an update with two images: `data` contains either the row after the change or the row before it.
"""


def pair_of(one: int, other: int) -> Pair:
    return min(one, other), max(one, other)


class KeyState(Struct, gc=False):
    """The state after a key's last change. Rows are stored as hashes, because they are only compared."""

    row: int | None
    """It is None if no row exists, or if the row is unknown."""

    offset: int
    commit: int | None
    if_wrong: int | None = None
    """The row that would result if the images of the last update were swapped. It is None if the update cannot have
    been misread.
    """

    reading: int = 0
    """It is 0 if the last change has only one meaning."""

    snapshot: bool = False
    pairs: frozenset[Pair] = frozenset()
    """The pairs of images in all updates to the key with this commit time."""

    def may_postdate(self, commit: int | None, pair: Pair | None, horizon: int) -> bool:
        """Return whether a change may be older than this state, because it was sent again or belongs to a snapshot.

        Args:
            pair: the images in an undecided update. Other changes in the same second cannot be distinguished.
            horizon: the last second whose changes are not all stored.
        """
        if self.snapshot:
            return self.commit is None or commit is None or commit <= self.commit
        if self.commit is None or commit is None:
            return True
        if commit == self.commit:
            return pair is None or commit <= horizon or pair in self.pairs or len(self.pairs) >= SAME_SECOND
        return commit < self.commit
