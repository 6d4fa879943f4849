"""Build change events like those of the translator, with few arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from cdc_core.envelope import ChangeEvent, Column, Issue, Origin, TableSchema, Tx
from cdc_core.position import position
from spark_sink.events.event_columns import EventColumns
from spark_sink.model.event import Event
from tests.translator.examples import BLANK
from translator.codecs.avro import AvroCodec

SCOPE = "raw:0@topic-id"
OTHER_SCOPE = "raw:1@topic-id"

Row = dict[str, Any]


def change(
    op: str | None,
    key: Row | None,
    after: Row | None = None,
    *,
    pos: int,
    key_old: Row | None = None,
    full: bool = True,
    scope: str = SCOPE,
    table: str | None = "orders",
    schema: TableSchema | None = None,
    unavailable: list[str] | None = None,
    issues: list[str] | None = None,
    changed: list[str] | None = None,
    kind: str = "row",
    source: str = "shop",
    tx: str | None = None,
    notes: list[str] | None = None,
    committed: int | None = None,
) -> ChangeEvent:
    """Return an event of table shop/sales//orders. `after` is the image, without key columns that repeat the key."""
    image = None if after is None else text({**(key or {}), **after})
    return msgspec.structs.replace(
        BLANK,
        id=f"{source}/raw/0/{pos}/0",
        kind=kind,
        op=op,
        source=source,
        dialect="canal",
        db="sales",
        table=table,
        pos=position(pos, 0),
        pos_scope=scope,
        ts_origin_us=0,
        ts_commit_us=committed,
        key=None if key is None else text(key),
        key_old=None if key_old is None else text(key_old),
        after=image,
        after_state="none" if after is None else "full" if full else "partial",
        changed=changed,
        unavailable=unavailable,
        issues=[Issue(name, "INVALID") for name in issues] if issues else None,
        schema_id=schema.id if schema else None,
        tx=Tx(tx) if tx is not None else None,
        notes=notes,
        origin=Origin("raw", 0, pos, 0, 1),
    )


def statement(*notes: str, pos: int, after: Row | None = None, **place: Any) -> ChangeEvent:
    """Return the event for a statement that changes existing rows."""
    return change(None, None, after, pos=pos, kind="schema", full=False, notes=[*notes], **place)


def text(image: Row) -> str:
    return json.dumps(image, separators=(",", ":"), ensure_ascii=False)


def record(event: ChangeEvent) -> bytes:
    """Return the value of its Kafka record."""
    (written,) = AvroCodec().encode(event)
    assert written.value is not None
    return written.value


def withholds(event: ChangeEvent) -> bool:
    """Return what the sink derives from the event's lists while reading. test_read.py checks that the two agree."""
    names = [*(event.unavailable or ()), *(issue.col for issue in event.issues or ())]
    if event.op != "u":
        return bool(names)
    sent = json.loads(event.after or "{}")
    return any(name not in sent and (event.changed is None or name in event.changed) for name in names)


def folding(event: ChangeEvent, index: int = 0) -> Event:
    """Return the part of an event that the fold sees."""
    assert event.op is not None
    return Event(
        index,
        event.op,
        event.key or "",
        event.key_old,
        event.pos_scope,
        event.pos,
        None if event.after is None else event.after.encode(),
        event.after_state == "full",
        withholds(event),
        event.schema_id,
        event.ts_origin_us,
        event.ts_commit_us,
        event.tx.id if event.tx else None,
    )


def in_columns(events: Sequence[Event]) -> EventColumns:
    """Return events as the records of one table contain them, or none if there is a gap among them."""
    types = {**dict.fromkeys(("index", "ts", "committed"), pa.int64()), "after": pa.binary()}
    types |= dict.fromkeys(("full", "withholds"), pa.bool_())
    return EventColumns(
        pa.table(
            {
                name: pa.array([getattr(event, name) for event in events], types.get(name, pa.string()))
                for name in Event.__struct_fields__
            }
        )
    )


def sent(event: Event, table: str) -> ChangeEvent:
    """Return a folded event in the form in which the translator would have written it."""
    blank = change(event.op, None, pos=0, table=table, unavailable=["withheld"] if event.withholds else None)
    return msgspec.structs.replace(
        blank,
        key=None if event.op == "t" else event.key,
        key_old=event.key_old,
        after=None if event.after is None else event.after.decode(),
        after_state="none" if event.after is None else "full" if event.full else "partial",
        pos=event.pos,
        pos_scope=event.scope,
        ts_origin_us=event.ts,
        ts_commit_us=event.committed,
        tx=Tx(event.tx) if event.tx is not None else None,
    )


def schema_of(
    columns: dict[str, str],
    key: tuple[str, ...] = ("id",),
    *,
    table: str = "orders",
    natives: dict[str, str] | None = None,
) -> TableSchema:
    """Return the schema of table shop/sales//orders with these columns, and source types for some of them."""
    declared = [
        Column(name, type, key=key.index(name) + 1 if name in key else None, native=(natives or {}).get(name))
        for name, type in columns.items()
    ]
    return TableSchema.of("shop", "sales", None, table, declared, "primary")


def announced(schema: TableSchema) -> bytes:
    """Return the value of its record in the schemas topic."""
    return msgspec.json.encode(schema)
