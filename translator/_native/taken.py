"""Summarize a run of translated messages. In Python, each function would be a loop over all messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from translator._native.layout import OperationTotal, TakenMessage


def totals(run: Sequence[TakenMessage | str]) -> list[OperationTotal]:
    """Return the totals of each operation, in the order of the messages with the last commit times. Messages that were
    not translated do not count.
    """
    from translator._native import rows  # the extension is present, because it returned the run

    return rows.totals(run)


def records(run: Sequence[TakenMessage], output: int) -> list[Any]:
    """Return the records for the output with this number from messages that were all translated, in order."""
    from translator._native import rows

    return rows.records(run, output)
