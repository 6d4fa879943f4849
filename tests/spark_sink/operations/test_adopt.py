"""A source moves to another tool, as in docs/operate/sources.md: a table gets another source table."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent, Column, TableSchema
from spark_sink.config.table_rules import TableRules
from spark_sink.operations import rebuild
from spark_sink.schema.table_spec import Mode
from tests.spark_sink.changes import OTHER_SCOPE, change
from tests.spark_sink.lake import Lake, Topic

ORDERS = "shop_sales.orders"
OLD, NEW = "shop/sales//orders", "new/sales//orders"


def _schema(lake: Lake, source: str) -> TableSchema:
    columns = [Column("id", "int64", key=1), Column("name", "string")]
    return lake.announce(TableSchema.of(source, "sales", None, "orders", columns, "primary"))


def _events(lake: Lake, source: str, op: str, first: int, rows: dict[int, str]) -> list[ChangeEvent]:
    schema, scope = _schema(lake, source), {"shop": "raw:0@topic-id", "new": OTHER_SCOPE}[source]
    return [
        change(op, {"id": id}, {"name": name}, pos=first + id, schema=schema, scope=scope, source=source)
        for id, name in rows.items()
    ]


def _alive(lake: Lake) -> list[dict[str, Any]]:
    if lake.rules.modes.get(ORDERS) != Mode.HISTORY:
        return lake.rows()
    found = [row for row in lake.stored().to_pylist() if row["_cdc_current"] and row["_cdc_op"] != "d"]
    return sorted(({"id": row["id"], "name": row["name"]} for row in found), key=lambda row: row["id"])


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
def test_a_source_moves_to_another_tool(lake_of_format: Lake, mode: Mode) -> None:
    """The new tool's load waits until the table is assigned to it. Then its rows replace the old ones by key, and a
    sweep finds the rows that it does not have. Late events of the old tool wait and are discarded.
    """
    lake = lake_of_format
    lake.use(TableRules(modes={ORDERS: mode}), {NEW: ORDERS})
    lake.apply(0, _events(lake, "shop", "c", 0, {1: "a", 2: "b", 3: "c"}))
    lake.apply(1, _events(lake, "shop", "u", 10, {1: "a2"}))
    moment = _a_moment()
    lake.apply(2, _events(lake, "new", "r", 0, {1: "A", 2: "B", 4: "D"}))
    assert ["TABLE_CLASH"] * 3 == [reason for reason, _ in lake.parked()]
    asked = lake.command("adopt", ORDERS, NEW)
    assert (
        "done",
        f"it belonged to {OLD} and now belongs to {NEW}. Its events are waiting; resume it under that name.",
    ) == (
        asked.state,
        asked.result,
    )
    assert "done" == lake.command("resume", NEW).state
    lake.apply(3, _events(lake, "new", "u", 10, {2: "B2"}))
    whole = [{"id": 1, "name": "A"}, {"id": 2, "name": "B2"}, {"id": 3, "name": "c"}, {"id": 4, "name": "D"}]
    assert whole == _alive(lake)
    if mode == Mode.MIRROR:
        assert "1 rows deleted" == lake.command("sweep", ORDERS, moment).result
        assert [row for row in whole if row["id"] != 3] == _alive(lake)
    lake.apply(4, _events(lake, "shop", "u", 20, {1: "late"}))
    assert (["TABLE_CLASH"], {OLD}) == ([reason for reason, _ in lake.parked()], set(lake.control.held()))
    assert "late" not in {row["name"] for row in _alive(lake)}
    lake.use(TableRules(modes={ORDERS: mode}, exclude=(OLD,)), {NEW: ORDERS})
    assert "1 events discarded" == lake.command("discard", OLD).result
    assert "already" in str(lake.command("adopt", ORDERS, NEW).result)


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("size", [1, 100])
def test_a_rebuild(lake: Lake, monkeypatch: pytest.MonkeyPatch, size: int, *, is_removed: bool) -> None:
    """A rebuild reads the events of the source table that the table belongs to, and of no other. If the table was
    removed, the waiting events show which one that is.
    """
    monkeypatch.setattr(rebuild, "SLICE", size)
    lake.use(TableRules(), {NEW: ORDERS})
    topic = Topic(lake)
    topic.apply(0, _events(lake, "shop", "c", 0, {1: "a", 2: "b", 3: "c"}))
    topic.apply(1, _events(lake, "new", "r", 0, {1: "A", 2: "B", 4: "D"}))
    assert "done" == lake.command("adopt", ORDERS, NEW).state
    assert "done" == lake.command("resume", NEW).state
    if is_removed:
        shutil.rmtree(lake.path(ORDERS))
    topic.apply(2, _events(lake, "new", "u", 10, {2: "B2"}))
    requests, id = lake.requests(), lake.control.requests.ask("rebuild", ORDERS)
    while requests.run():
        pass
    (asked,) = (one for one in lake.control.requests.requests() if one.id == id)
    assert ("done", None) == (asked.state, asked.error)
    assert [{"id": 1, "name": "A"}, {"id": 2, "name": "B2"}, {"id": 4, "name": "D"}] == lake.rows()
    topic.apply(3, _events(lake, "new", "u", 30, {4: "on"}))
    assert {"id": 4, "name": "on"} in lake.rows()
    assert {} == lake.control.held()


def _a_moment() -> str:
    """Return a time after all commits so far and before all later ones."""
    time.sleep(0.01)
    moment = datetime.now(UTC).isoformat()
    time.sleep(0.01)
    return moment


@pytest.mark.parametrize(
    ("rules", "argument", "error"),
    [
        (TableRules(), NEW, "give new/sales//orders the name shop_sales.orders in tables.rename"),
        (TableRules(exclude=("new/*",)), NEW, "tables.exclude excludes new/sales//orders"),
        (
            TableRules(),
            "new/orders",
            "is not a source table; expected source/db/schema/table",
        ),
        (TableRules(shared={ORDERS: ("*/sales//orders",)}), NEW, "several source tables share it"),
    ],
)
def test_what_is_not_given(lake: Lake, rules: TableRules, argument: str, error: str) -> None:
    lake.use(TableRules(shared=rules.shared))
    lake.apply(0, _events(lake, "shop", "c", 0, {1: "a"}))
    lake.use(rules)
    asked = lake.command("adopt", ORDERS, argument)
    assert "failed" == asked.state
    assert error in str(asked.error)
