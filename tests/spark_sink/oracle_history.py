"""Compute the versions of a table from an ordered history without duplicates. It shares no code with the sink."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from spark_sink.model.event import Event


@dataclass
class Span:
    """A version of a row from one event to the next. An end of None means that it is current."""

    key: int
    start: int
    values: dict[str, Any] | None
    unsure: bool = False
    end: int | None = None


def versions_after(events: Iterable[Event]) -> list[Span]:
    """Return all versions by event time, which is unique. `values` is None for deleted rows."""
    spans: list[Span] = []
    last: dict[int, Span] = {}

    def begin(key: int, start: int, values: dict[str, Any] | None, unsure: bool = False) -> None:
        if key in last and last[key].end is None:
            last[key].end = start
        last[key] = Span(key, start, values, unsure)
        spans.append(last[key])

    for event in events:
        if event.op == "t":
            for span in last.values():
                if span.values is not None and span.end is None:
                    span.end = event.ts
            continue
        key = json.loads(event.key)["id"]
        if event.op == "d":
            begin(key, event.ts, None)
            continue
        values, unsure = {"a": None, "b": None, "c": None}, False
        if event.op == "u":
            moved = event.key_old is not None
            old = last[json.loads(event.key_old)["id"] if event.key_old else key]
            if not event.full:
                values, unsure = dict(old.values or {}), old.unsure or event.withholds
            if moved:
                begin(old.key, event.ts, None)
        elif event.withholds:
            unsure = True
        values.update({name: value for name, value in json.loads(event.after or "{}").items() if name != "id"})
        begin(key, event.ts, values, unsure)
    return spans
