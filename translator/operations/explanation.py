"""Describe the result for one message in lines. They show its outcome, its events, and the decisions that the events
record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cdc_core.envelope import ChangeEvent
from cdc_core.table_id import joined_name
from translator.codecs.json import JsonCodec
from translator.message import Learned, Skip
from translator.resolution.resolve import Translation
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events

_EVENT_FACTS = (
    *("id", "op", "variant", "variant_basis", "dbms", "server", "task", "pos", "pos_scope", "pos_native"),
    *("key_kind", "before_state", "after_state", "changed", "unavailable", "schema_id", "notes"),
)
"""The event fields that are printed. None of these fields comes from a row."""

_IMAGES = ("before", "after")


def outcome_lines(translation: Translation, *, values: bool) -> Iterator[str]:
    """Return lines without row data. With `values`, each event is included in full, as JSON."""
    match translation.outcome:
        case DeadLetter(code=code, reason=reason):
            yield f"outcome: dead letter {code}: {reason}"
        case Skip(reason=reason):
            yield f"outcome: skipped, {reason}"
        case Learned(key=key):
            yield f"outcome: learned metadata {key}"
        case Events(events=events):
            yield f"outcome: translated, {len(events)} events"
    if translation.events is None:
        return
    records = translation.by_event
    for n, event in enumerate(translation.events.events):
        size = (
            f"{len(records[n].value or b'')} bytes"
            if n in records
            else "not written to the topic because its table is excluded"
        )
        yield f"event {n}: {event.kind} {_table(event)}, {size}"
        for name, fact in _facts(event):
            yield f"  {name}: {fact}"
        if values:
            (whole,) = JsonCodec().encode(event)
            yield f"  {(whole.value or b'').decode()}"


def outcome_facts(translation: Translation, *, values: bool) -> dict[str, Any]:
    """Return the same facts as a structure. With `values`, each event's `event` field contains the complete event."""
    facts: dict[str, Any] = {"outcome": "translated", "code": None, "reason": None}
    match translation.outcome:
        case DeadLetter(code=code, reason=reason):
            facts = {"outcome": "dead", "code": code, "reason": reason}
        case Skip(reason=reason):
            facts = {"outcome": "skipped", "code": None, "reason": reason}
        case Learned(key=key):
            facts = {"outcome": "learned", "code": None, "reason": None, "metadata": key}
    events = translation.events.events if translation.events is not None else ()
    return {**facts, "events": [_event(event, values=values) for event in events]}


def _event(event: ChangeEvent, *, values: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"kind": event.kind, "table": _table(event)}
    facts |= {name: fact for name in _EVENT_FACTS if (fact := getattr(event, name)) is not None}
    facts |= {f"{image}_columns": list(json.loads(text)) for image in _IMAGES if (text := getattr(event, image))}
    facts["issues"] = [{"column": issue.col, "code": issue.code} for issue in event.issues or ()]
    if values:
        (whole,) = JsonCodec().encode(event)
        facts["event"] = json.loads(whole.value or b"null")
    return facts


def _table(event: ChangeEvent) -> str:
    return joined_name(event.db, event.schema, event.table) or "without a table"


def _facts(event: ChangeEvent) -> Iterator[tuple[str, str]]:
    for name in _EVENT_FACTS:
        fact: Any = getattr(event, name)
        if fact is not None:
            yield name, fact if isinstance(fact, str) else json.dumps(fact, ensure_ascii=False)
    for image in _IMAGES:
        text: str | None = getattr(event, image)
        if text is not None:
            yield f"{image} columns", ", ".join(json.loads(text))
    for issue in event.issues or ():
        yield "issue", f"{issue.col} {issue.code}"
