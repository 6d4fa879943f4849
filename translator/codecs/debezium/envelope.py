"""Define Debezium's envelope as types, without the row images. `connect` derives the schema block from the types."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from cdc_core.envelope import ChangeEvent
from cdc_core.position import number
from translator.codecs.debezium.images import Columns, ConnectChange, refusal

INT64_MAX = 2**63 - 1
OFFSET_LIMIT = 2**42


class ConnectSource(Struct, frozen=True, omit_defaults=True):
    """The origin of a change (`source`). All fields are scalars, because Flink reads `source` as a map of strings.

    Unknown fields are omitted, because Iceberg's transform routes by `schema` if this field exists, even if it is null.
    """

    version: str
    connector: str
    name: str
    snapshot: str
    sequence: str
    lsn: int
    ts_ms: int | None = None
    ts_us: int | None = None
    ts_ns: int | None = None
    db: str | None = None
    schema: str | None = None
    table: str | None = None
    server: str | None = None
    task: str | None = None


class Transaction(Struct, frozen=True, omit_defaults=True):
    """The source transaction."""

    id: str
    total_order: int | None = None


class Payload(Struct, frozen=True, omit_defaults=True):
    """The envelope. Fields without a default are always written, even null."""

    before: Columns | None
    after: Columns | None
    source: ConnectSource
    transaction: Transaction | None
    op: str
    ts_ms: int
    ts_us: int
    ts_ns: int | None = None
    primary_key: tuple[str, ...] | None = field(default=None, name="pkNames")


def payload(event: ChangeEvent, change: ConnectChange, index: int) -> Payload:
    """Return the envelope for one change in an event.

    Args:
        index: number of the change within the event, 0 or 1.
    """
    captured = event.ts_origin_us if event.ts_capture_us is None else event.ts_capture_us
    ts_ms, ts_us, ts_ns = _times(captured)
    tx = event.tx
    return Payload(
        before=change.before,
        after=change.after,
        source=_source(event, index),
        transaction=None if tx is None else Transaction(tx.id, tx.seq),
        op=change.op,
        ts_ms=ts_ms,
        ts_us=ts_us,
        ts_ns=ts_ns,
        primary_key=None if change.key is None else tuple(change.key),
    )


def _source(event: ChangeEvent, index: int) -> ConnectSource:
    ts_ms, ts_us, ts_ns = (None, None, None) if event.ts_commit_us is None else _times(event.ts_commit_us)
    return ConnectSource(
        version=str(event.v),
        connector=event.dialect,
        name=event.source,
        snapshot="true" if event.op == "r" else "false",
        sequence=msgspec.json.encode([event.pos_scope, event.pos]).decode(),
        lsn=ordinal(event, index),
        ts_ms=ts_ms,
        ts_us=ts_us,
        ts_ns=ts_ns,
        db=event.db,
        schema=event.schema,
        table=event.table,
        server=event.server,
        task=event.task,
    )


def ordinal(event: ChangeEvent, index: int) -> int:
    """Return a number that increases along a raw partition. It consists of the offset, the event number (20 bits) and
    the half (1 bit).

    Consumers that order or deduplicate by a number need a different one for each record, also for the two halves of a
    key change.
    """
    offset = event.origin.offset
    if offset >= OFFSET_LIMIT:
        raise refusal(f"offset {offset} is too large for source.lsn, which supports offsets below {OFFSET_LIMIT}")
    n = number(event.pos)
    return offset << 21 | n << 1 | index


def _times(us: int) -> tuple[int, int, int | None]:
    """Return the time in milliseconds, in microseconds and, between the years 1677 and 2262, in nanoseconds."""
    ns = us * 1000
    return us // 1000, us, ns if -INT64_MAX <= ns <= INT64_MAX else None
