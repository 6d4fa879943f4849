"""Identify the source transaction of an event, as far as its events reveal it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class SourceTransaction(Struct, frozen=True, omit_defaults=True, gc=False):
    """The transaction of an event within one scope. It is identified by `tx.id` or, if the id is missing, by the commit
    time.

    `committed` is `ts_commit_us`. It takes the place of an `id` that the source does not send.
    """

    scope: str
    id: str | None = None
    committed: int | None = None

    @classmethod
    def of(cls, scope: str, id: str | None, committed: int | None) -> SourceTransaction:
        return cls(scope, id, None if id is not None else committed)

    def includes(self, other: SourceTransaction) -> bool | None:
        """Return whether an event in `other` belongs to this transaction, or None if the source does not send enough
        data.

        Without ids, two events may belong to the same transaction if they were committed at the same time. If the
        commit time is missing as well, the answer is unknown.
        """
        if self.scope != other.scope or (self.id is None) != (other.id is None):
            return False
        if self.id is not None:
            return self.id == other.id
        return None if self.committed == other.committed else False


class Aside(Struct, frozen=True, omit_defaults=True):
    """A row whose key another row has taken, in a transaction that may not have ended yet.

    Databases check keys when a statement ends. A row may therefore move to a key before the row that has this key
    leaves it. If the same transaction removes the key later, this means the row that was set aside
    (docs/envelope/keys-that-move.md).

    Args:
        transaction: the transaction of the event that overwrote the row.
        values: the columns of the row that was set aside, in the reader's format.
        inserted: whether the event that overwrote the row was an insert, which may have been a repeated one.
    """

    transaction: SourceTransaction
    values: dict[str, Any] = {}
    incomplete: bool = False
    inserted: bool = False
