"""Represent a row event for the fold, and the meaning of its position. This module uses neither Spark nor tables."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from cdc_core.position import has_native, is_in_order
from cdc_core.transaction import SourceTransaction

# The typed values of the key columns, in key order. A key text does not identify a row, because "1.0" and "1.00" can be
# the same key.
Key = tuple[Any, ...]

RESETS = frozenset({"c", "r"})

# Not an envelope operation. A gap replaces an event that went to quarantine.
GAP = "gap"

# Not an envelope operation either, but a statement that changed existing rows (docs/envelope/statements.md). Its
# `after` is a `StatementImage`.
STATEMENT = "statement"

# A statement that parks its table. Its `after` is a JSON value with the reason and a sentence.
REFUSAL = "refusal"

# Each event with one of these operations is a separate commit, between the row commits.
APART = frozenset({"t", STATEMENT, REFUSAL})

# All possible reasons why an event changes nothing, for `stale` in the log.
DUPLICATE, SUPERSEDED, TRUNCATED = "duplicate", "superseded", "truncated"


class Event(Struct, frozen=True, gc=False):
    """A row event, reduced to the fields that the sink needs.

    `index` is its record's index. `ts` is `ts_origin_us`, `committed` is `ts_commit_us` and `tx` is `tx.id`, if known.
    An unknown key is empty. `withholds` means that the event may have changed a column whose new value it does not
    contain (read.WITHHOLDS_SQL). `after` is JSON in UTF-8. As a `str`, `after` took 0.5 us more per event, because
    non-ASCII text is encoded twice on its way to the JSON decoder (33 000 images from bench.sink, CPU, best of seven).
    """

    index: int
    op: str
    key: str
    key_old: str | None
    scope: str
    pos: str
    after: bytes | None
    full: bool
    withholds: bool
    schema_id: str | None
    ts: int
    committed: int | None = None
    tx: str | None = None

    @property
    def resets(self) -> bool:
        """Return whether the event sets the whole row."""
        return self.op in RESETS or (self.op == "u" and self.full)

    @property
    def transaction(self) -> SourceTransaction:
        """The source transaction that the event belongs to."""
        return SourceTransaction.of(self.scope, self.tx, self.committed)

    @property
    def leaves_gaps(self) -> bool:
        """Return whether the event leaves a column unknown. The event may withhold a column, or a new row may lack a
        column of its schema.

        A full image contains every column, so the issues of the event affect only the before image.
        """
        return not self.full and (self.withholds or (self.op in RESETS and self.schema_id is not None))


def gap(event: Event) -> Event:
    """Return the gap that takes the place of a quarantined event."""
    return replace(event, op=GAP, after=None, schema_id=None)


def withholding(event: Event, after: bytes) -> Event:
    """Return the event with an image that lacks some values, as if the source had not sent them.

    An update then keeps the stored values of these columns, just as for any column that an event withholds.
    """
    return replace(event, after=after, full=False, withholds=True)


class Latest(NamedTuple):
    """A scope's greatest position in a batch, and the transaction at this position."""

    pos: str
    transaction: SourceTransaction


class StatementImage(Struct, frozen=True):
    """The part of a statement that the sink uses: its notes, and the text of the after image."""

    notes: tuple[str, ...]
    after: str | None = None


def is_loaded(scope: str, pos: str) -> bool:
    """Return whether this is the position of a snapshot row. Under native order, such a position has no native part."""
    return not is_in_order(scope) and not has_native(pos)
