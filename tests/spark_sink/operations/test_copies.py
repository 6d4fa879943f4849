"""`spark-sink rebuild --into` and `--as-of`: earlier states of a table, in a table of their own."""

from __future__ import annotations

from typing import Any

import pytest

from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.requests import State
from spark_sink.operations import rebuild as rebuild_module
from spark_sink.operations.rebuild_options import options_for_copy
from spark_sink.schema.table_spec import Format, Mode
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, MergingLake, SparkLake, Topic
from tests.spark_sink.operations.rebuilt import (
    COPY,
    FIRST,
    ITEM,
    ITEMS,
    ORDERS,
    WIDER,
    copy,
    execute,
    filled,
    values,
)


@pytest.mark.parametrize("mode", Mode)
def test_the_table_after_each_batch(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    """The copy equals the table's version after the batch. The table, the other table and the parked tables do not
    change.
    """
    lake = lake_of_format
    monkeypatch.setattr(rebuild_module, "SLICE", 7)
    filled(lake, mode)
    before, versions = values(lake), (lake.version(), lake.version(ITEMS))
    rows = {row.batch: row for row in lake.control.batches.rows() if row.batch is not None}
    for number in (0, 2):
        asked = copy(lake, str(number))
        assert (State.DONE, None) == (asked.state, asked.error)
        assert values(lake, version=rows[number].versions[ORDERS]) == values(lake, COPY)
    # The end of a batch as a time.
    copy(lake, rows[1].ended_at.isoformat())
    assert values(lake, version=rows[1].versions[ORDERS]) == values(lake, COPY)
    copy(lake)
    assert before == values(lake) == values(lake, COPY)
    assert (versions, []) == ((lake.version(), lake.version(ITEMS)), lake.parked())
    assert {ORDERS, ITEMS} == lake.control.batches.tables()


@pytest.mark.parametrize("mode", Mode)
def test_killed_after_each_slice(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    """Other processes continue, while events arrive. Nothing is missing from the copy, and nothing is duplicated. The
    later events are not in it.
    """
    lake = lake_of_format
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    topic, _ = filled(lake, mode)
    expected = values(lake)
    options = options_for_copy(lake.control.batches, lake.topic_name, ORDERS, None, ())
    lake.control.requests.ask("rebuild-into", COPY, options.text())
    batch = 4
    while (requests := lake.requests()).run():
        assert batch < 20
        assert requests.run() or batch > 5
        lake.use(lake.rules)  # another process, which repeats the last slice
        lake.topic = topic
        topic.apply(batch, [change("c", {"id": 100 + batch}, {"name": "x"}, pos=100 + batch, schema=FIRST)])
        assert [] == lake.parked()
        batch += 1
    (request,) = lake.control.requests.requests()
    assert (State.DONE, expected) == (request.state, values(lake, COPY))
    assert expected != values(lake)
    assert batch > 6


def test_killed_in_the_middle_of_a_slice(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends between the commit of a slice and the command's next row."""
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    topic, _ = filled(lake, Mode.CHANGELOG)
    options = options_for_copy(lake.control.batches, lake.topic_name, ORDERS, None, ())
    lake.control.requests.ask("rebuild-into", COPY, options.text())

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        requests = lake.requests()
        assert requests.run()  # a new process repeats the last slice
        monkeypatch.setattr(requests.control_table, "answer", killed)
        with pytest.raises(KeyboardInterrupt):
            requests.run()
        lake.use(lake.rules)
        lake.topic = topic
    requests = lake.requests()
    while requests.run():
        pass
    assert values(lake) == values(lake, COPY)


def test_a_failed_copy_is_replaced(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that failed, or an earlier one, is replaced by the next command with the same name."""
    topic, _ = filled(lake)
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    read = topic.read

    def unavailable(begin: Any, end: Any) -> Any:
        if begin[0] >= 18:
            raise OSError("the broker does not respond")
        return read(begin, end)

    monkeypatch.setattr(topic, "read", unavailable)
    assert State.FAILED == copy(lake).state
    assert values(lake) != values(lake, COPY)
    monkeypatch.setattr(topic, "read", read)
    assert State.DONE == copy(lake).state
    assert values(lake) == values(lake, COPY)
    version = lake.version(COPY)
    assert State.DONE == copy(lake, "1").state
    assert values(lake) == values(lake, COPY, version)


def test_names_that_are_taken(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy replaces neither a table of the sink nor a copy of another table, whatever the case of its name."""
    lake = lake_of_format
    filled(lake)
    before = values(lake), values(lake, ITEMS)
    for name in (ORDERS, ITEMS, "shop_sales.Items"):
        asked = copy(lake, into=name)
        assert (State.FAILED, True) == (asked.state, "is not an earlier copy of shop_sales.orders" in str(asked.error))
    assert before == (values(lake), values(lake, ITEMS))
    options = options_for_copy(lake.control.batches, lake.topic_name, ITEMS, None, ())
    assert State.DONE == execute(lake, "rebuild-into", COPY, options.text()).state
    assert "is not an earlier copy of" in str(copy(lake).error)
    assert "in the folder of the table restored.orders_monday" in str(copy(lake, into=f"{COPY}.old").error)
    assert "in the folder of the table shop_sales.orders" in str(copy(lake, into=f"{ORDERS}.old").error)
    for outer in ("shop_sales", "restored"):  # around tables of the sink, and around another copy
        assert f"the folder of {outer} contains other tables" in str(copy(lake, into=outer).error)
    assert "cannot be the name of a copy" in str(copy(lake, into="_cdc.parked").error)
    assert "cannot be the name of a copy" in str(copy(lake, into="../orders").error)
    gone = options_for_copy(lake.control.batches, lake.topic_name, "shop_sales.gone", None, ())
    assert "table 'shop_sales.gone' does not exist" in str(execute(lake, "rebuild-into", "x", gone.text()).error)


def test_a_copy_gets_no_events(lake_of_format: Lake) -> None:
    """Even if the configuration gives its name to the source table, events wait until the copy is rebuilt."""
    lake = lake_of_format
    topic, _ = filled(lake)
    assert State.DONE == copy(lake, "1").state
    copied = values(lake, COPY)
    assert "is a copy" in str(lake.command("sweep", COPY, "0001").error)
    lake.use(lake.rules, {"shop/sales//orders": COPY})
    topic.apply(4, [change("c", {"id": 77}, {"name": "later"}, pos=99, schema=FIRST)])
    assert [("TABLE_REFUSED", 40)] == lake.parked()
    assert copied == values(lake, COPY)
    (cause,) = lake.control.held().values()
    assert "run `spark-sink rebuild restored.orders_monday`" in cause.detail
    asked = execute(lake, "rebuild", COPY, None)
    assert (State.DONE, []) == (asked.state, lake.parked())
    assert "later" in {row["name"] for row in values(lake, COPY)}


def test_a_copy_of_the_other_format_and_of_a_declared_key(merging_lake: MergingLake) -> None:
    """The mode and the key are those of the table, and the format is the configured one for the copy's name."""
    lake = merging_lake
    for schema in (FIRST, WIDER, ITEM):
        lake.announce(schema)
    lake.formats = {"restored.*": Format.ICEBERG}
    lake.use(TableRules(modes={ORDERS: Mode.HISTORY, "restored.*": Mode.CHANGELOG}, keys={ORDERS: ("name",)}))
    topic = Topic(lake)
    topic.apply(0, [change("c", {"id": n}, {"name": f"n{n}"}, pos=n + 1, schema=FIRST) for n in range(3)])
    asked = copy(lake)
    assert (State.DONE, None) == (asked.state, asked.error)
    opened = lake.tables.open(COPY)
    assert opened is not None
    assert (Format.ICEBERG, Mode.HISTORY, ("name",)) == (lake.tables.format(COPY), opened.shape.mode, opened.shape.key)
    assert values(lake) == values(lake, COPY)


def test_a_shared_table(lake: Lake) -> None:
    lake.announce(FIRST)
    other = "other/sales//orders"
    rules = TableRules(shared={ORDERS: ("shop/sales//orders", other)})
    lake.use(rules, {other: ORDERS})
    topic = Topic(lake)
    topic.apply(
        0, [change("c", {"id": 1}, {"name": "a"}, pos=1), change("c", {"id": 1}, {"name": "b"}, pos=1, source="other")]
    )
    topic.apply(1, [change("d", {"id": 1}, pos=2)])
    assert State.DONE == copy(lake, "0").state
    assert ["a", "b"] == sorted(row["name"] for row in values(lake, COPY))


def test_a_source_table_with_the_same_name(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy contains the events of the table's source, even if another source comes first."""
    monkeypatch.setattr(rebuild_module, "SLICE", 1)
    topic = Topic(lake)
    topic.apply(0, [change("c", {"id": 1}, {"name": "a"}, pos=1)])
    topic.apply(1, [change("c", {"id": 2}, {"name": "other"}, pos=2, table="ORDERS")])
    topic.apply(2, [change("c", {"id": 3}, {"name": "b"}, pos=3)])
    assert [("TABLE_CLASH", 1)] == lake.parked()
    assert State.DONE == copy(lake, None, "0:0").state
    assert ["b"] == [row["name"] for row in values(lake, COPY)]


def test_on_spark(spark_lake: SparkLake) -> None:
    """Spark's workers leave out records, too."""
    _, batches = filled(spark_lake)
    live = values(spark_lake)
    assert State.DONE == copy(spark_lake, "1", "0:0-4").state
    copied = {row["_cdc_pos"] for row in values(spark_lake, COPY)}
    positions = [event.pos for batch in batches for event in batch]
    assert copied <= set(positions[5:20])
    assert copied
    assert live == values(spark_lake)


def test_no_events_until_then(lake: Lake) -> None:
    _, batches = filled(lake)
    assert {"items", "orders"} >= {event.table for event in batches[0]}
    asked = copy(lake, None, "0:0-39")
    assert "the topic contains no such events for shop_sales.orders" in str(asked.error)
    assert lake.tables.open(COPY) is None


def test_a_topic_without_its_beginning(lake: Lake) -> None:
    topic, _ = filled(lake)
    topic.first = 3
    asked = copy(lake)
    assert "THE TOPIC HAS BEEN DELETED (first offsets by partition: 0: 3)" in str(asked.result)


def test_an_event_that_the_copy_refuses(lake: Lake) -> None:
    """The table itself is not parked."""
    filled(lake)
    lake.announce(schema_of({"id": "int64", "name": "string"}, key=("id", "name")))
    asked = copy(lake)
    assert (State.FAILED, True) == (asked.state, f"{COPY} is incomplete: the key changed" in str(asked.error))
    assert [] == lake.parked()
