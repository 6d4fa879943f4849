"""Propose the options that a sample of Qlik messages cannot determine. All other information is in the messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from translator.message import RowChange
from translator.proposals import Proposal, ReadMessage

_OWN = "attrep_"


def propose(sample: Sequence[ReadMessage]) -> list[Proposal]:
    """Return the options that an operator has to decide, each with the reason."""
    return list(_open(sample))


def _open(sample: Sequence[ReadMessage]) -> Iterator[Proposal]:
    writers = [change.writer for read in sample for change in read.changes]
    if any(writer.variant == "custom_json" and writer.variant_basis == "inferred" for writer in writers):
        why = (
            "the sections do not have Replicate's default names; declare the names in the task's Message Format dialog"
        )
        yield Proposal("message_format", None, "unknown", why)
    rows = [change for read in sample for change in read.changes if isinstance(change, RowChange)]
    if any(change.table.table.lower().startswith(_OWN) for change in rows):
        yield Proposal(
            "control_tables",
            None,
            "unknown",
            f"tables {_OWN}* are Replicate's own control tables; use skip to leave them out",
        )
