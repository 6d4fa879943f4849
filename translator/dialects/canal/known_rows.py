"""Keep the state of a partition's continuity check: the rows of the keys that changed most recently, and the updates
that nothing has confirmed yet.

The extension has the same state (`_native/src/known_rows.rs`), which both paths share.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from translator._native.layout import TakenMessage
from translator.dialects.canal.key_states import DATA_AFTER, DATA_BEFORE, KeyState
from translator.dialects.canal.unconfirmed import Listed, Unconfirmed
from translator.message import TableName

RowKey: TypeAlias = tuple[TableName, bytes]
"""A row, identified by its table and its key as JSON."""


class KnownRows(Protocol):
    """The state of a partition's check."""

    @property
    def horizon(self) -> int:
        """The last second whose changes are not all stored."""
        ...

    def digest(self, image: bytes, /) -> int:
        """Return the hash of an image."""
        ...

    def get(self, table: TableName, key: bytes, /) -> KeyState | None: ...
    def keep(self, table: TableName, key: bytes, state: KeyState, /) -> None:
        """Set a key's state. If there are too many keys, forget the one that has not changed for the longest time."""
        ...

    def forget(self, table: TableName | None, /) -> None:
        """Forget the rows of a table, or all rows. The next change begins a new state."""
        ...

    def complete(self) -> None:
        """Record that no earlier message in the partition was missed."""
        ...

    def begin(self, commit: int | None, /) -> None:
        """Record the time of the first change since the state was reset, for all tables or for one table."""
        ...

    def add_unconfirmed(self, reading: int, offset: int, /) -> None:
        """Add an update that can be read in two ways."""
        ...

    def confirm(self, reading: int, offset: int, /) -> None:
        """Confirm how an update was read. Do nothing for an update with only one meaning."""
        ...

    def unconfirmed(self, reading: int, /) -> Listed:
        """List the unconfirmed updates that were read in this way."""
        ...

    def contradicted(self) -> bool:
        """Count a contradiction, and return whether to report it."""
        ...


Contradiction: TypeAlias = tuple[int, bool, int, Listed]
"""The offset of the other change, whether that change was misread, how it was read, and the unconfirmed updates that
were read in the same way.
"""


class NativeKnownRows(KnownRows, Protocol):
    """The state of a partition's continuity check in the extension."""

    def inspect(
        self, taken: Sequence[TakenMessage], current_matters: bool, legacy_matters: bool, /
    ) -> tuple[int, list[tuple[int, Contradiction | None]]]:
        """Inspect messages up to and including the first one with findings. Return how many were inspected. Also return
        the rows of the last one that have a contradiction, or a DELETE whose format must be inspected.

        Args:
            current_matters, legacy_matters: whether a DELETE in the current or legacy format must be inspected.
        """
        ...


class PlainKnownRows:
    """The state without the extension.

    Args:
        keys: maximum number of keys.
        fatal: report every contradiction. Otherwise, reports become less and less frequent.
    """

    digest = staticmethod(hash)

    def __init__(self, keys: int, *, fatal: bool) -> None:
        self._keys = keys
        self._fatal = fatal
        self._known: OrderedDict[RowKey, KeyState] = OrderedDict()
        self._unconfirmed = {DATA_AFTER: Unconfirmed(), DATA_BEFORE: Unconfirmed()}
        self.contradictions = 0
        self._is_new = True
        self.horizon = -1

    def get(self, table: TableName, key: bytes) -> KeyState | None:
        return self._known.get((table, key))

    def keep(self, table: TableName, key: bytes, state: KeyState) -> None:
        self._known[table, key] = state
        self._known.move_to_end((table, key))
        if len(self._known) > self._keys:
            _, forgotten = self._known.popitem(last=False)
            self.horizon = max(self.horizon, forgotten.commit or -1)

    def forget(self, table: TableName | None) -> None:
        self._is_new = True
        for key in [key for key in self._known if table is None or key[0] == table]:
            del self._known[key]

    def complete(self) -> None:
        self._is_new = False

    def begin(self, commit: int | None) -> None:
        if self._is_new and commit is not None:
            self.horizon, self._is_new = max(self.horizon, commit), False

    def add_unconfirmed(self, reading: int, offset: int) -> None:
        self._unconfirmed[reading].add(offset)

    def confirm(self, reading: int, offset: int) -> None:
        if reading == DATA_BEFORE:
            # Only an instance created before the swap writes updates of this kind. An instance switches format only
            # once, from legacy to current (C.1), so everything earlier is legacy.
            self._unconfirmed[reading].confirm_until(offset)
        elif reading == DATA_AFTER:
            self._unconfirmed[reading].confirm(offset)

    def unconfirmed(self, reading: int) -> Listed:
        return self._unconfirmed[reading].listed()

    def contradicted(self) -> bool:
        self.contradictions += 1
        return self._fatal or self.contradictions.bit_count() == 1
