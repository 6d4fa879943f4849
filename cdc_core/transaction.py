"""The transaction of the source that an event belongs to, as far as its events tell."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class SourceTransaction(Struct, frozen=True, omit_defaults=True, gc=False):
    """The transaction of an event, seen in one scope: `tx.id`, or without one the time of its commit.

    `committed` is `ts_commit_us` and stands in for an `id` that the source does not send.
    """

    scope: str
    id: str | None = None
    committed: int | None = None

    @classmethod
    def of(cls, scope: str, id: str | None, committed: int | None) -> SourceTransaction:
        return cls(scope, id, None if id is not None else committed)

    def includes(self, other: SourceTransaction) -> bool | None:
        """Tell whether an event of `other` is part of this transaction; None where the source does not say.

        Without ids, two events may be of one transaction if they were committed at the same time. Where even that time
        is missing, nothing rules it out.
        """
        if self.scope != other.scope or (self.id is None) != (other.id is None):
            return False
        if self.id is not None:
            return self.id == other.id
        return None if self.committed == other.committed else False


class Aside(Struct, frozen=True, omit_defaults=True):
    """A row whose key another row has taken inside a transaction that may not have ended yet.

    Databases check keys at the end of a statement, so a row can come to a key before the row that had it leaves. If the
    same transaction removes the key later, it is this row that leaves (docs/envelope.md, Keys that move).

    Args:
        transaction: that of the event that wrote over it.
        values: its columns, in the form in which the reader keeps values.
        inserted: the event that wrote over it was an insert, which may be a repeated one.
    """

    transaction: SourceTransaction
    values: dict[str, Any] = {}
    incomplete: bool = False
    inserted: bool = False
