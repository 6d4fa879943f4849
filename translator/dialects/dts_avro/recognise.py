"""Propose the options that a sample of DTS Avro messages cannot determine."""

from __future__ import annotations

from collections.abc import Sequence

from translator.message import RowChange
from translator.proposals import Proposal, ReadMessage


def propose(sample: Sequence[ReadMessage]) -> list[Proposal]:
    """Propose options. Records contain everything except the unique key to use for a table without a primary key."""
    rows = (change for read in sample for change in read.changes if isinstance(change, RowChange))
    if all(change.key_columns for change in rows):
        return []
    why = "a table has no primary key; if true, its first unique key is used, whose columns can be null"
    return [Proposal("unique_key_as_key", None, "unknown", why)]
