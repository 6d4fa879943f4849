"""Rebuild the tables of a lake whose events are random: earlier states, and states without some events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from cdc_core.envelope import ChangeEvent
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.requests import Request
from spark_sink.operations.rebuild_options import options_for_copy, options_for_table
from spark_sink.schema.table_spec import Mode
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, Topic

ORDERS, ITEMS, COPY = "shop_sales.orders", "shop_sales.items", "restored.orders_monday"
FIRST = schema_of({"id": "int64", "name": "string"})
WIDER = schema_of({"id": "int64", "name": "string", "more": "int32"})
ITEM = schema_of({"id": "int64"}, table="items")


def random_events(seed: int, count: int = 40) -> Sequence[ChangeEvent]:
    """Return events for two tables. The first one gets another column in mid-stream, and is truncated once."""
    chance = random.Random(seed)
    found: list[ChangeEvent] = []
    for pos in range(1, count + 1):
        schema, id = (FIRST if pos < count / 2 else WIDER), chance.randrange(6)
        after = {"name": f"name {pos}"} | ({"more": pos} if schema is WIDER else {})
        if pos == count * 3 // 4:
            found.append(change("t", None, pos=pos))
        elif chance.random() < 0.2:
            found.append(change("c", {"id": pos}, {}, pos=pos, schema=ITEM, table="items"))
        elif chance.random() < 0.25:
            found.append(change("d", {"id": id}, pos=pos, schema=schema))
        elif chance.random() < 0.15:
            moved = {"id": (id + 1) % 6}
            found.append(change("u", moved, after, pos=pos, schema=schema, key_old={"id": id}))
        else:
            op, full = chance.choice([("c", True), ("u", True), ("u", False)])
            found.append(change(op, {"id": id}, after, pos=pos, schema=schema, full=full))
    return found


def filled(lake: Lake, mode: Mode = Mode.MIRROR, seed: int = 0) -> tuple[Topic, list[Sequence[ChangeEvent]]]:
    """Apply random events in batches of ten."""
    for schema in (FIRST, WIDER, ITEM):
        lake.announce(schema)
    lake.use(TableRules(modes={ORDERS: mode}))
    topic, events = Topic(lake), random_events(seed)
    batches = [events[n : n + 10] for n in range(0, len(events), 10)]
    for number, batch in enumerate(batches):
        topic.apply(number, batch)
    return topic, batches


def lake_without(
    lake: Lake, folder: Path, mode: Mode, batches: Sequence[Sequence[ChangeEvent]], ranges: Sequence[tuple[int, int]]
) -> Lake:
    """Return another lake, whose batches lacked the records in these ranges of offsets."""
    other = lake.beside(folder)
    for schema in (FIRST, WIDER, ITEM):
        other.announce(schema)
    other.use(TableRules(modes={ORDERS: mode}))
    first = 0
    for number, batch in enumerate(batches):
        records = other.records(batch, first)
        for begin, last in ranges:
            offsets = records.column("offset")
            records = records.filter(pc.or_(pc.less(offsets, begin), pc.greater(offsets, last)))
        other.applier(records, number)
        first += len(batch)
    return other


def values(lake: Lake, table: str = ORDERS, version: int | None = None) -> list[dict[str, Any]]:
    """Return all rows with their state, except the write time and NULLs."""
    rows = lake.stored(table, version).to_pylist()
    left_out = "_cdc_updated_at"
    plain = ({name: v for name, v in row.items() if v is not None and name != left_out} for row in rows)
    return sorted(plain, key=str)


def copy(lake: Lake, as_of: str | None = None, *without: str, into: str = COPY) -> Request:
    """Execute the command, in as many rounds as it needs."""
    options = options_for_copy(lake.control.batches, lake.topic_name, ORDERS, as_of, without)
    return execute(lake, "rebuild-into", into, options.text())


def rebuild_in_place(lake: Lake, *without: str) -> Request:
    options = options_for_table(lake.control.batches, without)
    return execute(lake, "rebuild", ORDERS, None if options is None else options.text())


def execute(lake: Lake, command: str, target: str, argument: str | None) -> Request:
    id = lake.control.requests.ask(command, target, argument)
    requests = lake.requests()
    while requests.run():
        pass
    return next(request for request in lake.control.requests.requests() if request.id == id)
