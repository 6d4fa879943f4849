"""Compute a table from a history, with each event once and in source order. It shares no code with the sink."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from spark_sink.model.event import Event

Rows = dict[int, dict[str, Any]]


def table_after(events: Iterable[Event]) -> tuple[Rows, set[int]]:
    """Return the rows by id, and the ids of rows with an unknown column."""
    rows: Rows = {}
    incomplete: set[int] = set()
    for event in events:
        if event.op == "t":
            rows.clear()
            incomplete.clear()
            continue
        key = json.loads(event.key)["id"]
        if event.op == "d":
            rows.pop(key)
            incomplete.discard(key)
            continue
        row: dict[str, Any] = {"id": key, "a": None, "b": None, "c": None}
        unsure = False
        if event.op == "u":
            before = json.loads(event.key_old)["id"] if event.key_old else key
            old, old_unsure = rows.pop(before), before in incomplete
            incomplete.discard(before)
            if not event.full:
                row, unsure = old, old_unsure or event.withholds
        elif event.withholds:
            unsure = True
        row.update(json.loads(event.after or "{}"))
        rows[key] = row
        if unsure:
            incomplete.add(key)
    return rows, incomplete
