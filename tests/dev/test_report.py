"""The demo's summary of the sink."""

from __future__ import annotations

import json

from dev.demo.report import told_of_sink


def test_two_lines() -> None:
    """The summary adds up the figures of batches and ignores lines from Spark."""
    batch = {"event": "batch applied", "events": 5, "commits": 2, "rows": 4, "deleted": 1, "quarantined": {"X": 1}}
    log = [
        "26/01/05 WARN Utils: something",
        json.dumps({"event": "table created", "table": "a"}),
        json.dumps({"event": "columns added", "columns": ["x", "y"]}),
        json.dumps(batch),
        json.dumps(batch | {"quarantined": {}}),
    ]
    assert told_of_sink(log).splitlines() == [
        "The sink applied 10 events in 2 batches: 8 rows written, 2 of them as deleted, in 4 commits.",
        "It created 1 tables and added 2 columns. 1 events are in quarantine; no table is parked.",
    ]
    parked = json.dumps({"event": "table parked", "table": "a"})
    assert told_of_sink([parked, parked]).endswith("parked until an operator decides: a.")
