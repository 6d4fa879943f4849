"""`spark-sink rebuild` reads the topic again for one table while the others continue."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.requests import State
from spark_sink.errors import FatalError
from spark_sink.operations import rebuild as rebuild_module
from spark_sink.operations.rebuild import slices
from spark_sink.schema.evolution import Policy, ShapeChange
from spark_sink.schema.table_spec import Mode
from spark_sink.table_report import Parked
from tests.spark_sink import lake as lake_module
from tests.spark_sink.changes import OTHER_SCOPE, change, schema_of
from tests.spark_sink.lake import Lake, MergingLake, Topic

ORDERS, ITEMS = "shop_sales.orders", "shop_sales.items"
SCHEMA = schema_of({"id": "int64", "name": "string"})
ITEM = schema_of({"id": "int64", "name": "string"}, table="items")


def _order(op: str, id: int, pos: int, name: str | None = None, **more: Any) -> ChangeEvent:
    after = None if name is None else {"name": name}
    return change(op, {"id": id}, after, pos=pos, schema=SCHEMA, **more)


def _item(id: int, pos: int) -> ChangeEvent:
    return change("c", {"id": id}, {"name": "item"}, pos=pos, schema=ITEM, table="items")


BATCHES: Sequence[Sequence[ChangeEvent]] = [
    [_order("c", 1, 1, "a"), _item(1, 2), _order("c", 2, 3, "b")],
    [_order("u", 1, 4, "a2"), _item(2, 5), _order("d", 2, 6)],
    [_order("c", 3, 7, "c"), change("t", None, pos=8), _order("c", 4, 9, "d"), _item(3, 10)],
    [_order("u", 5, 11, "e", key_old={"id": 4}), _item(4, 12)],
]
LATER = [_order("u", 5, 13, "late"), _item(5, 14), _order("c", 6, 15, "new")]


def _lake(lake: Lake, mode: Mode = Mode.MIRROR, batches: Sequence[Sequence[ChangeEvent]] = BATCHES) -> Topic:
    lake.announce(SCHEMA)
    lake.announce(ITEM)
    lake.use(TableRules(modes={ORDERS: mode}))
    topic = Topic(lake)
    for number, events in enumerate(batches):
        topic.apply(number, events)
    return topic


def _stored(lake: Lake, table: str = ORDERS) -> list[dict[str, Any]]:
    """Return all rows with their state, except the write time."""
    rows = lake.stored(table)
    rows = rows.drop_columns([name for name in rows.column_names if name == "_cdc_updated_at"])
    return sorted(rows.to_pylist(), key=str)


def _remove(lake: Lake) -> None:
    shutil.rmtree(lake.path(ORDERS))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("size", [1, 100])
def test_the_table_is_as_it_was(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch, mode: Mode, size: int) -> None:
    """The result does not depend on the size of the parts. The old rows are in the previous version, and the other
    table is unchanged. Events that arrive during the rebuild are included.
    """
    lake = lake_of_format
    monkeypatch.setattr(rebuild_module, "SLICE", size)
    topic = _lake(lake, mode)
    before, version, items = _stored(lake), lake.version(), lake.version(ITEMS)
    lake.control.requests.ask("rebuild", ORDERS)
    requests = lake.requests()
    is_open = requests.run()
    assert is_open == (size < 100)
    if is_open:
        assert {ORDERS} == lake.control.held().keys()
    assert items == lake.version(ITEMS)
    topic.apply(4, LATER[:1])
    while requests.run():
        pass
    (request,) = lake.control.requests.requests()
    assert ("done", None) == (request.state, request.error)
    assert [] == lake.parked()
    topic.apply(5, LATER[1:])
    assert before == sorted(
        lake.stored(version=version).drop_columns(["_cdc_updated_at"] if mode == Mode.MIRROR else []).to_pylist(),
        key=str,
    )
    beside = lake.beside(lake.warehouse.parent / "beside")
    expected = _lake(beside, mode, [*BATCHES, LATER[:1], LATER[1:]])
    assert expected is beside.topic
    assert _stored(beside) == _stored(lake)
    assert _stored(beside, ITEMS) == _stored(lake, ITEMS)


def test_what_was_lost_comes_back(lake_of_format: Lake) -> None:
    """After its folder is lost, the table is parked at its next event. A rebuild restores all rows."""
    lake = lake_of_format
    if lake.catalog is not None:
        pytest.skip("a catalog does not follow a folder")
    topic = _lake(lake)
    _remove(lake)
    (parked,) = [one.outcome for one in topic.apply(4, LATER) if one.table == ORDERS]
    assert isinstance(parked, Parked)
    assert "spark-sink rebuild shop_sales.orders" in parked.refusal
    asked = lake.command("rebuild", ORDERS)
    assert ("done", None) == (asked.state, asked.error)
    assert [{"id": 5, "name": "late"}, {"id": 6, "name": "new"}] == lake.rows()
    assert [] == lake.parked()
    lake.use(lake.rules)
    lake.actions().park_changed()
    assert [] == lake.parked()


def test_a_rebuild_that_is_killed_goes_on(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends after every second part, and the next one repeats that part. A resume in between is rejected,
    and nothing is duplicated.
    """
    lake = lake_of_format
    monkeypatch.setattr(rebuild_module, "SLICE", 3)
    topic = _lake(lake, Mode.CHANGELOG)
    before = _stored(lake)
    lake.control.requests.ask("rebuild", ORDERS)
    rounds = 0
    while (requests := lake.requests()).run() and requests.run():
        rounds += 1
        lake.use(lake.rules)  # another process
        lake.topic = topic
        with pytest.raises(FatalError, match="its rebuild is not complete"):
            lake.actions().resume(ORDERS, None)
    assert rounds > 1
    assert ("done", before, []) == (lake.control.requests.requests()[0].state, _stored(lake), lake.parked())


def test_a_batch_that_comes_again_after_a_rebuild(lake_of_format: Lake) -> None:
    """The batch is killed between its commit and its manifest row. The rebuild reads up to the manifest, and the
    earlier commit does not count for the new table.
    """
    lake = lake_of_format
    topic = _lake(lake)
    end = lake.control.end

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    lake.control.end = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        topic.apply(4, LATER)
    lake.control.end = end  # type: ignore[method-assign]
    lake.use(lake.rules)
    assert "done" == lake.command("rebuild", ORDERS).state
    assert [{"id": 5, "name": "e"}] == lake.rows()
    lake.applier(topic.read({0: 12}, {0: 15}), 4)
    assert [{"id": 5, "name": "late"}, {"id": 6, "name": "new"}] == lake.rows()


def test_a_truncate_that_waits(lake_of_format: Lake) -> None:
    """The rebuild reads up to the table's waiting events, so that each is applied once and in order."""
    lake = lake_of_format
    lake.announce(SCHEMA)
    lake.use(TableRules(all_scopes=True))
    topic = Topic(lake)
    topic.apply(0, [_order("c", 1, 1, "a"), _order("c", 2, 1, "b", scope=OTHER_SCOPE)])
    lake.command("park", ORDERS)
    topic.apply(1, [change("t", None, pos=2), _order("c", 3, 2, "c", scope=OTHER_SCOPE)])
    asked = lake.command("rebuild", ORDERS)
    assert ("done", "2 events read from the topic; 2 events replayed") == (asked.state, asked.result)
    assert [{"id": 3, "name": "c"}] == lake.rows()


def test_another_mode(lake_of_format: Lake) -> None:
    """According to the configuration, a mirror becomes a history and then a mirror again."""
    lake = lake_of_format
    _lake(lake)
    mirror = _stored(lake)
    lake.use(replace(lake.rules, modes={ORDERS: Mode.HISTORY}))
    asked = lake.command("rebuild", ORDERS)
    assert ("done", None) == (asked.state, asked.error)
    opened = lake.tables.open(ORDERS)
    assert opened is not None
    assert Mode.HISTORY == opened.shape.mode
    lake.use(replace(lake.rules, modes={}))
    asked = lake.command("rebuild", ORDERS)
    assert ("done", None) == (asked.state, asked.error)
    assert mirror == _stored(lake)


def test_several_sources(lake_of_format: Lake) -> None:
    """A table created for one source table is now shared by two."""
    lake = lake_of_format
    other = change("c", {"id": 1}, {"name": "other"}, pos=1, source="other")
    pattern = {"other/sales//orders": ORDERS}
    topic = _lake(lake)
    topic.apply(4, [other])
    lake.use(replace(lake.rules, shared={ORDERS: ("shop/sales//orders", "other/sales//orders")}), pattern)
    asked = lake.command("rebuild", ORDERS)
    assert ("done", None) == (asked.state, asked.error)
    found = lake.stored().select(["_cdc_source", "id"]).to_pylist()
    alive = sorted((row["_cdc_source"], row["id"]) for row in found)
    assert [("other/sales//orders", 1), ("shop/sales//orders", 5)] == alive


def test_a_source_without_the_first_folder(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source has no schemas, and the name of a table begins with its schema."""
    monkeypatch.setattr(lake_module, "PATTERN", "{schema}.{table}")
    _lake(lake)
    before = _stored(lake, "orders")
    asked = lake.command("rebuild", "orders")
    assert ("done", None) == (asked.state, asked.error)
    assert before == _stored(lake, "orders")


def test_a_topic_that_has_lost_its_beginning(lake: Lake) -> None:
    """The answer reports it in capitals."""
    topic = _lake(lake)
    topic.first = 3
    asked = lake.command("rebuild", ORDERS)
    assert "done" == asked.state
    assert "THE TOPIC HAS BEEN DELETED (first offsets by partition: 0: 3)" in str(asked.result)


def test_a_topic_without_events_of_the_table(lake: Lake) -> None:
    """The table stays unchanged and is not parked."""
    topic = _lake(lake)
    before = _stored(lake)
    topic.apply(4, [_item(n, 20 + n) for n in range(5, 9)])
    topic.first = 13
    asked = lake.command("rebuild", ORDERS)
    assert ("failed", "the topic contains no events for this table, so the table is unchanged") == (
        asked.state,
        asked.error,
    )
    assert (before, []) == (_stored(lake), lake.parked())


def test_a_key_of_another_type(lake_of_format: Lake) -> None:
    """A table parked because of a new key type is recreated with that type and includes the waiting events."""
    lake = lake_of_format
    topic = _lake(lake)
    retyped = lake.announce(schema_of({"id": "string", "name": "string"}))
    topic.apply(4, [change("c", {"id": "x"}, {"name": "x"}, pos=20, schema=retyped)])
    assert [("SCHEMA_REFUSED", 12)] == lake.parked()
    asked = lake.command("rebuild", ORDERS)
    assert ("done", None) == (asked.state, asked.error)
    assert [{"id": "5", "name": "e"}, {"id": "x", "name": "x"}] == lake.rows()


def test_an_event_that_the_new_table_refuses(lake: Lake) -> None:
    """The table stays parked with the reason. After the cause is fixed, the next rebuild starts over."""
    topic = _lake(lake)
    keyed = lake.announce(schema_of({"id": "int64", "name": "string"}, key=("id", "name")))
    asked = lake.command("rebuild", ORDERS)
    assert "failed" == asked.state
    assert "it stays parked and is incomplete: the key changed from (id" in str(asked.error)
    assert [("REBUILD", None)] == lake.parked()
    (cause,) = lake.control.held().values()
    assert cause.detail.startswith("its rebuild failed: the key changed")
    topic.apply(4, [change("c", {"id": 9, "name": "n"}, {}, pos=20, schema=keyed)])
    lake.use(replace(lake.rules, policies={**lake.rules.policies, ShapeChange.KEY: Policy.IGNORE}))
    lake.topic = topic
    asked = lake.command("rebuild", ORDERS)
    assert ("done", []) == (asked.state, lake.parked())
    assert [{"id": 9, "name": "n"}] == lake.rows()


def test_a_table_that_deltalake_does_not_write(spark_lake: MergingLake) -> None:
    """Spark replaces the table."""
    _lake(spark_lake)
    before = spark_lake.rows()
    spark_lake.spark.sql(
        f"ALTER TABLE delta.`{spark_lake.path()}` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    asked = spark_lake.command("rebuild", ORDERS)
    assert ("done", None) == (asked.state, asked.error)
    alive = spark_lake.read().select("id", "name")
    assert before == [row.asDict() for row in alive.collect()]


def test_cuts_do_not_move_with_the_topic() -> None:
    """A slice keeps its number, wherever the topic begins and ends by then."""
    assert [(0, {0: 2, 1: 0}, {0: 10, 1: 5}), (1, {0: 10}, {0: 12})] == list(slices({0: 2, 1: 0}, {0: 12, 1: 5}, 10))
    assert [(1, {0: 11}, {0: 20}), (2, {0: 20}, {0: 21})] == list(slices({0: 11}, {0: 21}, 10))
    assert [(3, {1: 30}, {1: 31})] == list(slices({0: 5, 1: 30}, {0: 5, 1: 31}, 10))
    assert [] == list(slices({0: 7}, {0: 7}, 10))
    assert [] == list(slices({}, {}, 10))


def _announced(note: str, pos: int) -> ChangeEvent:
    return change(None, None, pos=pos, kind="schema", notes=[note])


def test_lost_deleted_rows(lake_of_format: Lake) -> None:
    """A table whose deleted rows were lost is parked. A rebuild remembers them again, and the replaced table's files
    have no effect.
    """
    lake = lake_of_format
    batches = [[_order("c", 1, 1, "a"), _order("c", 2, 2, "b")], [_order("d", 1, 3)]]
    topic = _lake(lake, batches=batches)
    (file,) = lake.warehouse.glob("_cdc/deleted/shop_sales/orders/*")
    file.unlink()
    topic.apply(2, [_order("u", 2, 4, "later")])
    assert ["TABLE_DAMAGED"] == [reason for reason, _ in lake.parked()]
    lake.control.requests.ask("rebuild", ORDERS)
    requests = lake.requests()
    while requests.run():
        pass
    (request,) = lake.control.requests.requests()
    assert (State.DONE, []) == (request.state, lake.parked())
    topic.apply(3, [_order("c", 1, 1, "late")])
    assert [(2, "later")] == [(row["id"], row["name"]) for row in _stored(lake)]


def test_statements_in_the_topic(lake_of_format: Lake) -> None:
    """A drop empties the table at its position. The answer reports statements whose rows have no events."""
    lake = lake_of_format
    batches = [
        [_order("c", 1, 1, "a"), _order("c", 2, 2, "b")],
        [_announced("TABLE_DROPPED", 3), _order("c", 3, 4, "c")],
        [_announced("STATEMENT_NOT_APPLIED", 5), _order("c", 4, 6, "d")],
    ]
    _lake(lake, batches=batches)
    lake.control.requests.ask("rebuild", ORDERS)
    requests = lake.requests()
    while requests.run():
        pass
    assert [3, 4] == sorted(row["id"] for row in _stored(lake))
    (request,) = lake.control.requests.requests()
    assert "statements changed rows without sending events: 1." in str(request.result)
    assert {} == lake.control.held()
