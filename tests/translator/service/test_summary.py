"""The log line that sums up the work."""

from __future__ import annotations

from collections import Counter

from translator.service.metrics import BatchAccount
from translator.service.summary import Summary


def test_batches_are_added_and_told_once() -> None:
    """Every record read is in one of the sums, and the next line starts at zero."""
    summary = Summary()
    first = BatchAccount("erp", "raw", 0, records=7, translated=3, learned=1, dead=Counter(TOO_LARGE=1))
    first.skipped["empty"] = 2
    first.written.update({"cdc.canonical": 3, "cdc.debezium": 2})
    first.refused["cdc.debezium", "UNSUPPORTED_SHAPE"] = 1
    summary.add(first)
    summary.add(BatchAccount("crm", "raw", 1, records=2, dead=Counter(TOO_LARGE=1, HELD=1)))
    everything = {
        "read": 9,
        "translated": 3,
        "learned": 1,
        "skipped": 2,
        "written": 5,
        "dead": {"HELD": 1, "TOO_LARGE": 2},
        "refused": {"UNSUPPORTED_SHAPE": 1},
    }
    assert everything == summary.take()
    assert {"read": 0, "translated": 0, "learned": 0, "skipped": 0, "written": 0, "dead": {}} == summary.take()
    assert everything == summary.total()
