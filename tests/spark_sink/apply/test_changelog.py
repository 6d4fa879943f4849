"""Changelogs keep every event once."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from cdc_core.envelope import ChangeEvent
from cdc_core.table_id import TableId
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.evolution import TableShape, evolve
from spark_sink.schema.table_spec import Mode, TableSpec
from tests.spark_sink.changes import OTHER_SCOPE, change, schema_of, text
from tests.spark_sink.lake import Lake, read_by_spark
from tests.spark_sink.memory import MemoryLog, MemoryTables
from tests.spark_sink.records import conflict, created, refusal, reports

COUNT = int(os.environ.get("HISTORIES", "100"))
RULES = TableRules(modes={"shop_*.orders": Mode.CHANGELOG})
SCHEMA = schema_of({"id": "int64", "a": "string", "n": "int8"})
EVENTS = [
    change("c", {"id": 1}, {"a": "x", "n": 1}, pos=1, schema=SCHEMA),
    change("u", {"id": 1}, {"a": None}, pos=2, full=False, schema=SCHEMA),
    change("u", {"id": 2}, {"a": "y"}, pos=3, key_old={"id": 1}, full=False, schema=SCHEMA),
    msgspec.structs.replace(change("d", {"id": 2}, pos=4, schema=SCHEMA), before=text({"id": 2, "a": "y"})),
    change("d", {"id": 3}, pos=5, schema=SCHEMA),
    change("t", None, pos=6),
]


def _shape() -> TableShape:
    form = TableSpec(Mode.CHANGELOG)
    return evolve(None, TableId.of(SCHEMA), [SCHEMA], form=form).shape


def _told(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return row["_cdc_op"], {name: row[name] for name in row["_cdc_set"]}


def test_each_event_is_a_row_with_what_it_told() -> None:
    """A column that the event lacks is NULL and not listed in `_cdc_set`. A column set to NULL is listed. A delete has
    its key and its before image.
    """
    log = MemoryLog(_shape())
    reports(MemoryTables(orders=log), EVENTS, RULES, schemas=[SCHEMA])
    assert [
        ("c", {"id": 1, "a": "x", "n": 1}),
        ("u", {"id": 1, "a": None}),
        ("u", {"id": 2, "a": "y"}),
        ("d", {"id": 2, "a": "y"}),
        ("d", {"id": 3}),
        ("t", {}),
    ] == [_told(row) for row in log.rows]
    assert [event.id for event in EVENTS] == [row["_cdc_id"] for row in log.rows]
    assert [None, None, '{"id":1}', None, None, None] == [row["_cdc_key_old"] for row in log.rows]
    assert [None] * 3 == [log.rows[1]["n"], log.rows[4]["a"], log.rows[5]["id"]]


@pytest.mark.parametrize("seed", range(COUNT))
def test_any_delivery_gives_each_event_once(seed: int) -> None:
    """However events are ordered, repeated and split into batches, each is in the table once."""
    random = Random(seed)
    scopes = [f"native:shop/{n}" for n in range(random.randint(1, 3))]
    events = [change("c", {"id": n}, {}, pos=n, scope=random.choice(scopes)) for n in range(random.randint(1, 20))]
    sent = random.sample(events, len(events)) + random.choices(events, k=random.randint(0, 10))
    log = MemoryLog(_shape())
    start = 0
    while start < len(sent):
        end = start + random.randint(1, 8)
        reports(MemoryTables(orders=log), sent[start:end], RULES, batch=start)
        start = end
    assert Counter(event.id for event in events) == Counter(row["_cdc_id"] for row in log.rows)


def test_a_topic_made_again() -> None:
    """Events of a recreated topic have the ids of earlier ones but another scope, so they are different events."""
    log = MemoryLog(_shape())
    first = change("c", {"id": 1}, {}, pos=1)
    (report,) = reports(MemoryTables(orders=log), [first, msgspec.structs.replace(first, pos_scope=OTHER_SCOPE)], RULES)
    assert (2, {}) == (len(log.rows), +Counter(report.counters.stale))


def test_new_events_are_not_looked_up() -> None:
    """The table is searched only for events that are not beyond all positions of their scope."""
    log = MemoryLog(_shape())
    for batch in range(3):
        reports(MemoryTables(orders=log), [change("c", {"id": 1}, {}, pos=batch)], RULES, batch=batch)
    assert [] == log.looked_up
    (report,) = reports(MemoryTables(orders=log), [change("c", {"id": 1}, {}, pos=1)], RULES, batch=3)
    assert (1, {"duplicate": 1}, 3) == (len(log.looked_up), report.counters.stale, len(log.rows))


def test_what_does_not_fit_is_in_quarantine() -> None:
    """A malformed event or one with values that do not fit is quarantined once. Other events of its row are stored."""
    log = MemoryLog(_shape())
    tables = MemoryTables(orders=log)
    events = [
        change("c", {"id": 1}, {"n": 1}, pos=1, schema=SCHEMA),
        change("u", {"id": 1}, {"n": 1000}, pos=2, schema=SCHEMA),
        change("?", {"id": 1}, {}, pos=3, schema=SCHEMA),
        msgspec.structs.replace(change("c", {"id": 1}, {}, pos=4, schema=SCHEMA), after="["),
        change("c", {"id": 1}, {"other": 1}, pos=5, schema=SCHEMA),
        change("c", {"id": "one"}, {}, pos=6, schema=SCHEMA),
        change("c", None, {"n": 2}, pos=7, schema=SCHEMA),
    ]
    reports(tables, events, RULES, schemas=[SCHEMA])
    ((_, reasons),) = tables.rejected
    assert ["VALUE_INVALID", "OPERATION_UNKNOWN", "IMAGE_INVALID", "COLUMN_UNKNOWN", "VALUE_INVALID"] == reasons
    assert [1, 2] == [row["n"] for row in log.rows]


def test_no_key_is_needed() -> None:
    """A table without a key can be a changelog. In any other mode it is rejected with both solutions."""
    keyless = schema_of({"a": "string"}, ())
    events = [change("c", None, {"a": "x"}, pos=1, schema=keyless)]
    (report,) = reports(MemoryTables(), events, RULES, schemas=[keyless])
    shape = created(report)
    assert ((), Mode.CHANGELOG) == (shape.key, shape.mode)
    tables = MemoryTables()
    (report,) = reports(tables, events, TableRules(), schemas=[keyless])
    assert 1 == report.parked
    assert "tables.keys" in refusal(report)
    assert "changelog in tables.modes" in refusal(report)


@pytest.mark.parametrize(("stored", "wanted"), [(Mode.MIRROR, Mode.CHANGELOG), (Mode.CHANGELOG, Mode.MIRROR)])
def test_the_mode_of_a_table_stays(stored: Mode, wanted: Mode) -> None:
    """A mode other than the stored one is a configuration error that states the solutions."""
    log = MemoryLog(msgspec.structs.replace(_shape(), mode=stored))
    (report,) = reports(MemoryTables(orders=log), EVENTS[:1], TableRules(modes={"*": wanted}), schemas=[SCHEMA])
    assert f"was created with mode {stored}, but tables.modes requests {wanted}" in conflict(report)
    assert "tables.name" in conflict(report)


def test_in_a_table(lake_of_format: Lake, spark: SparkSession) -> None:
    """A real table read by Spark, with duplicates, a crash after the commit, a new checkpoint, late events, and a
    column that is added later.
    """
    lake = lake_of_format
    lake.use(TableRules(modes={"shop_sales.orders": Mode.CHANGELOG}))
    lake.announce(SCHEMA)
    lake.apply(0, [*EVENTS[:3], EVENTS[1]])
    version = lake.version()
    assert (0, 1) == _written(lake, 0, [*EVENTS[:3], EVENTS[1]])
    lake.applier = lake.new_applier("checkpoint-2")
    wider = lake.announce(schema_of({"id": "int64", "a": "string", "n": "int8", "m": "decimal(38,10)"}))
    late = [change("u", {"id": 9}, {"n": 9}, pos=n, scope="native:shop/t", schema=SCHEMA) for n in (7, 5, 6)]
    assert (3 + 2, 0) == _written(lake, 0, [*EVENTS, late[0], late[1], late[0]])
    more = [late[2], change("u", {"id": 9}, {"m": "1.0000000001"}, pos=8, scope="native:shop/t", schema=wider)]
    assert (2, 0) == _written(lake, 1, [*more, late[1]])
    assert version != lake.version()
    stored = lake.stored().to_pylist()
    assert Counter([*_ids(EVENTS), *_ids(late), *_ids(more[1:])]) == Counter(row["_cdc_id"] for row in stored)
    assert [] == lake.quarantine()
    patched = read_by_spark(spark, lake).where("array_contains(_cdc_set, 'm')").collect()
    assert ["1.0000000001"] == [str(row.m) for row in patched]


def _ids(events: list[ChangeEvent]) -> list[str]:
    return [event.id for event in events]


def _written(lake: Lake, batch: int, events: list[ChangeEvent]) -> tuple[int, int]:
    """Return the rows written and the commits skipped."""
    (report,) = lake.apply(batch, events)
    return report.counters.rows, report.counters.skipped
