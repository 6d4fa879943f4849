"""The times at which the source committed a mirror's row and the sink wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.envelope import ChangeEvent
from cdc_core.position import position
from cdc_core.table_id import TableId
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.table_report import Done
from spark_sink.tables.delta.ddl import table_properties
from spark_sink.tables.delta.open_table import create
from spark_sink.tables.meta_columns import COMMIT_TS, MARK_COLUMNS, UPDATED_AT
from spark_sink.tables.protocols import MirrorTable
from tests.spark_sink.changes import OTHER_SCOPE, SCOPE, change, schema_of
from tests.spark_sink.lake import Lake, MergingLake
from tests.spark_sink.pairs import TABLES, announce, both, rules, stored

COLUMNS = (TableColumn("id", "bigint"), TableColumn("a", "string"))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(seconds: int | None, event: ChangeEvent) -> ChangeEvent:
    """Return the event with its commit time, if the source provides one."""
    return msgspec.structs.replace(event, ts_commit_us=None if seconds is None else seconds * 1_000_000)


def times(lake: Lake) -> dict[int, int | None]:
    """Return the source's commit second for each row, including deleted ones."""
    rows = DeltaTable(lake.path()).to_pyarrow_table().to_pylist()
    found = {row["id"]: row[COMMIT_TS] for row in rows}
    return {id: None if told is None else (told - EPOCH) // timedelta(seconds=1) for id, told in found.items()}


def written(lake: Lake) -> dict[int, Any]:
    """Return the write time of each row."""
    return {row["id"]: row[UPDATED_AT] for row in DeltaTable(lake.path()).to_pyarrow_table().to_pylist()}


@pytest.fixture
def schema(lake: Lake) -> object:
    return lake.announce(schema_of({"id": "int64", "a": "string", "b": "string"}))


@pytest.mark.usefixtures("schema")
def test_the_event_at_the_position_of_the_row_tells(lake: Lake) -> None:
    """The row has the time of the event at its position: an insert, patch, key change, one without a time, or the last
    of several. A deleted row has no time, because it is not in the table.
    """
    lake.apply(0, [at(10 + n, change("c", {"id": n}, {"a": "x"}, pos=n)) for n in range(1, 6)])
    assert {n: 10 + n for n in range(1, 6)} == times(lake)
    lake.apply(
        1,
        [
            at(21, change("u", {"id": 1}, {"a": "y"}, pos=11, full=False)),
            at(20, change("u", {"id": 1}, {"b": "y"}, pos=12, full=False)),
            at(22, change("u", {"id": 20}, {"b": "y"}, key_old={"id": 2}, pos=13, full=False)),
            at(23, change("d", {"id": 3}, pos=14)),
            at(None, change("u", {"id": 4}, {"a": "y"}, pos=15)),
        ],
    )
    assert {1: 20, 20: 22, 4: None, 5: 15} == times(lake)


@pytest.mark.usefixtures("schema")
def test_one_time_a_batch(lake: Lake) -> None:
    """All rows written in a batch have its start time, and others keep theirs. A repeated batch writes nothing, nor do
    late and repeated events.
    """
    before = datetime.now(UTC)
    first = [at(1, change("c", {"id": n}, {"a": "x"}, pos=n)) for n in (1, 2, 3)]
    lake.apply(0, first)
    (began,) = set(written(lake).values())
    assert before <= began <= datetime.now(UTC)
    lake.apply(0, first)
    lake.apply(1, [at(9, event) for event in first])
    assert {1: began, 2: began, 3: began} == written(lake)
    lake.apply(2, [*first, at(2, change("u", {"id": 2}, {"a": "y"}, pos=7, full=False))])
    found = written(lake)
    assert ((began, began), True) == ((found[1], found[3]), found[2] > began)
    assert {1: 1, 2: 2, 3: 1} == times(lake)


@pytest.mark.usefixtures("schema")
def test_an_earlier_event_that_comes_late(lake: Lake) -> None:
    """Under native order, an earlier event can still write a column. The row keeps the time of its last event."""

    def native(op: str, number: int, image: Mapping[str, Any]) -> ChangeEvent:
        event = change(op, {"id": 1}, dict(image), pos=number, full=op == "c", scope="native:shop/t")
        return at(number, msgspec.structs.replace(event, pos=position(number, 0, native=number)))

    for number, event in enumerate(
        [native("c", 1, {"a": "x", "b": "x"}), native("u", 5, {"a": "5"}), native("u", 3, {"b": "3"})]
    ):
        lake.apply(number, [event])
    assert ([{"id": 1, "a": "5", "b": "3"}], {1: 5}) == (lake.rows(), times(lake))
    lake.apply(3, [at(2, change("u", {"id": 1}, {"a": "other"}, pos=1, scope=OTHER_SCOPE, full=False))])
    assert {1: 2} == times(lake)


@pytest.mark.usefixtures("schema")
def test_what_no_reader_can_take(lake: Lake) -> None:
    """A commit time after the year 9999 becomes that year's last moment, and the batch does not fail."""
    lake.apply(0, [msgspec.structs.replace(change("c", {"id": 1}, {"a": "x"}, pos=1), ts_commit_us=2**62)])
    (row,) = DeltaTable(lake.path()).to_pyarrow_table().to_pylist()
    assert datetime(9999, 12, 31, 23, 59, 59, 999999, UTC) == row[COMMIT_TS]
    lake.apply(1, [at(7, change("u", {"id": 1}, {"a": "y"}, pos=2, full=False))])
    assert {1: 7} == times(lake)


def test_both_engines(merging_lake: MergingLake) -> None:
    """Soft deletes and a truncate give the same table with deltalake and Spark, with the deleting events' times."""
    merging_lake.use(replace(rules(), soft_deletes=True))
    announce(merging_lake, {"id": "int64", "a": "string"})
    merging_lake.apply(0, both([at(n, change("c", {"id": n}, {"a": "x"}, pos=n)) for n in (1, 2, 3, 4)]))
    patch = at(None, change("u", {"id": 3}, {"a": "y"}, pos=6, full=False))
    merging_lake.apply(1, both([at(5, change("d", {"id": 1}, pos=5)), patch]))
    merging_lake.apply(2, both([at(7, change("t", None, pos=7)), at(8, change("c", {"id": 4}, {"a": "z"}, pos=8))]))
    assert stored(merging_lake, "orders") == stored(merging_lake, "merged")
    assert {1: 5, 2: 7, 3: 7, 4: 8} == times(merging_lake)
    found = written(merging_lake)
    assert (found[2] == found[3] == found[4], found[1] < found[2]) == (True, True)


def _older(lake: Lake, name: str) -> None:
    """Write a table of an earlier release with three rows."""
    types = {**{column.name: column.type for column in COLUMNS}, **MARK_COLUMNS}
    schema = pa.schema([(column, arrow_type(sql)) for column, sql in types.items()])
    shape = TableShape(TableId("shop", "sales", None, name), COLUMNS, ("id",))
    path = lake.path(f"shop_sales.{name}")
    create(path, schema, table_properties(shape))
    own = {"_cdc_scope": SCOPE, "_cdc_pos": position(1, 0), "_cdc_incomplete": False}
    rows = [{"id": id, "a": "x", **own} for id in (1, 2, 3)]
    write_deltalake(path, pa.Table.from_pylist(rows, schema), mode="append")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_before(merging_lake: MergingLake, name: str) -> None:
    """Either engine adds both columns at the table's next event. Until then, the table can be swept by position. The
    swept rows then leave the table.
    """
    lake = merging_lake
    lake.use(rules())
    lake.announce(schema_of({"id": "int64", "a": "string", "b": "string"}, table=name))
    _older(lake, name)
    table = f"shop_sales.{name}"
    now = datetime.now(UTC).isoformat()
    assert "0 rows deleted" == lake.command("sweep", table, (datetime.now(UTC) - timedelta(days=1)).isoformat()).result
    assert "3 rows deleted" == lake.command("sweep", table, now).result
    assert COMMIT_TS not in stored(lake, name)[0]
    events = [
        at(7, change("c", {"id": 1}, {"a": "y", "b": "y"}, pos=9, table=name)),
        at(8, change("u", {"id": 4}, {"a": "z"}, pos=10, full=False, table=name)),
    ]
    (report,) = lake.apply(0, events)
    assert (Done(), TABLES[name]) == (report.outcome, report.choice and report.choice.engine)
    shown = {row["id"]: (row["a"], row[COMMIT_TS], row[UPDATED_AT] is not None) for row in stored(lake, name)}
    seconds = [EPOCH + timedelta(seconds=n) for n in (7, 8)]
    assert {1: ("y", seconds[0], True), 4: ("z", seconds[1], True)} == shown
    opened = lake.tables.open(table)
    assert isinstance(opened, MirrorTable)
    assert () == opened.shape.lacks
    assert [report.outcome] == [one.outcome for one in lake.apply(0, events)]
