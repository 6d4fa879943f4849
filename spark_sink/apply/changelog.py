"""Append each event to a changelog once, even if it arrives more than once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from spark_sink.apply.mirror import instant
from spark_sink.events.envelope_fields import Details
from spark_sink.events.images import ImageReader
from spark_sink.events.quarantine import Rejected
from spark_sink.events.typed_events import entries
from spark_sink.model.event import (
    GAP,
    Event,
)
from spark_sink.schema.evolution import Plan
from spark_sink.tables.changes import Identity
from spark_sink.tables.meta_columns import (
    COMMIT_TS,
    ID,
    KEY_OLD,
    OP,
    POS,
    SCOPE,
    SET,
    TS,
)
from spark_sink.tables.protocols import ChangelogTable


@dataclass(frozen=True, slots=True)
class Recorded:
    """The rows that a batch adds to a changelog, and the events that it skips."""

    rows: pa.Table
    greatest: dict[str, str]
    rejected: list[Rejected]
    duplicates: int


def record(events: Sequence[Event], details: Sequence[Details], log: ChangelogTable, plan: Plan) -> Recorded:
    """Return the rows for events that are not in the table yet.

    An event beyond the highest position stored for its scope is new. Only the other events are looked up in the table.
    """
    greatest = dict(log.greatest())
    named: dict[Identity, tuple[Event, Details]] = {}
    sent = 0
    for event, more in zip(events, details, strict=True):
        if event.op != GAP:
            sent += 1
            named.setdefault(Identity(more.id, event.scope, event.pos), (event, more))
    doubtful = {one for one in named if one.pos <= greatest.get(one.scope, "")}
    known = log.known(doubtful) if doubtful else set()
    fresh = {one: both for one, both in named.items() if one not in known}
    found = entries([event for event, _ in fresh.values()], ImageReader(plan), plan.shape.types)
    more_of = {event.index: more for event, more in fresh.values()}
    kept = [(event, more_of[event.index]) for event in found.events]
    for event, _ in kept:
        greatest[event.scope] = max(event.pos, greatest.get(event.scope, ""))
    own = {
        ID: pa.array([more.id for _, more in kept], pa.string()),
        OP: pa.array([event.op for event, _ in kept], pa.string()),
        SCOPE: pa.array([event.scope for event, _ in kept], pa.string()),
        POS: pa.array([event.pos for event, _ in kept], pa.string()),
        KEY_OLD: pa.array([event.key_old for event, _ in kept], pa.string()),
        SET: pa.array(found.sets, pa.list_(pa.string())),
        TS: instant([event.ts for event, _ in kept]),
        COMMIT_TS: instant([event.committed for event, _ in kept]),
    }
    return Recorded(pa.table({**found.columns, **own}), greatest, found.rejected, sent - len(fresh))
