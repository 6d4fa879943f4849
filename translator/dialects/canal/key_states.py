"""The last state of each key, for the continuity check."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

SAME_SECOND = 16
"""Updates of a key in one second of the source that are told apart; beyond, none of that second is evidence."""

Pair: TypeAlias = frozenset[int | None]
"""The hashes of the two images of an update, either way round."""


class KeyState(Struct, gc=False):
    """The state that the last change of a key left. Rows are kept as hashes, for they are only ever compared."""

    row: int | None
    """None: none, or it is not known which."""

    offset: int
    commit: int | None
    if_wrong: int | None = None
    """The row that it left if it is an update that was read the wrong way round; None: that is out of the question."""

    reading: str = ""
    snapshot: bool = False
    pairs: frozenset[Pair] = frozenset()
    """The two images of each update of the key that was met with this commit time."""

    def may_postdate(self, commit: int | None, pair: Pair | None, horizon: int) -> bool:
        """Return whether a change may be older than this state: sent again, or contained in a snapshot.

        Args:
            pair: the images of an undecided update; nothing tells other changes of the same second apart.
            horizon: the last second of which not all that was met is remembered.
        """
        if self.snapshot:
            return self.commit is None or commit is None or commit <= self.commit
        if self.commit is None or commit is None:
            return True
        if commit == self.commit:
            return pair is None or commit <= horizon or pair in self.pairs or len(self.pairs) >= SAME_SECOND
        return commit < self.commit
