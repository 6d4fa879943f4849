"""Mirrors whose deleted rows keep their values."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import msgspec
from deltalake import DeltaTable

from cdc_core.table_id import TableId
from spark_sink.apply.table_commits import DAY
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.evolution import evolve
from tests.sizes import count
from tests.spark_sink.apply.test_model import PLAN, SCHEMA, applied, difference
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.histories import History, history
from tests.spark_sink.lake import Lake
from tests.spark_sink.memory import MemoryTable, MemoryTables
from tests.spark_sink.oracle import table_after
from tests.spark_sink.records import reports

COUNT = int(os.environ.get("HISTORIES") or count(6))
SOFT = TableRules(soft_deletes=True, tombstone_days=1)


def _gone(made: History) -> dict[int, dict[str, Any]]:
    """Return the finally deleted rows with their last values."""
    gone: dict[int, dict[str, Any]] = {}
    before: dict[int, dict[str, Any]] = {}
    for number in range(len(made.events)):
        after, _ = table_after(made.events[: number + 1])
        gone |= {key: row for key, row in before.items() if key not in after}
        gone = {key: row for key, row in gone.items() if key not in after}
        before = {key: dict(row) for key, row in after.items()}
    return gone


def test_any_delivery() -> None:
    """Existing rows match those of any mirror. With events in order, deleted rows keep their last values, whether a
    delete, a truncate or a key change removed them.
    """
    wrong = {}
    for seed in range(COUNT):
        made = history(seed)
        table = applied(made, soft=True)
        what = difference(made, table)
        deleted = {key[0]: row for key, row in table.stored.items() if table.remembered[key].deleted}
        if what is not None or (not made.native and deleted != _gone(made)):
            wrong[seed] = what or f"{_gone(made)} but {deleted}"
    assert {} == wrong


def test_a_value_that_does_not_fit_on_its_way_to_a_delete() -> None:
    """The event is quarantined, even if only the deleted row would have had the value."""
    narrow = schema_of({"id": "int64", "n": "int8"})
    table = MemoryTable(evolve(None, TableId.of(narrow), [narrow]).shape)
    events = [
        change("c", {"id": 1}, {"n": 1}, pos=1, schema=narrow),
        change("u", {"id": 1}, {"n": 1000}, pos=2, schema=narrow, full=False),
        change("u", {"id": 2}, {}, pos=3, key_old={"id": 1}, schema=narrow, full=False),
        change("d", {"id": 2}, pos=4, schema=narrow),
        change("c", {"id": 1}, {"n": 5}, pos=5, schema=narrow),
    ]
    (report,) = reports(MemoryTables(orders=table), events, SOFT, schemas=[narrow])
    assert {"VALUE_INVALID": 1} == report.counters.rejected
    assert [{"id": 1, "n": 5}, {"id": 2, "n": 1}] == list(table.stored.values())


def test_they_stay() -> None:
    """Deleted rows are never forgotten."""
    table = MemoryTable(PLAN.shape)
    for batch in range(5):
        event = msgspec.structs.replace(change("d", {"id": 1}, pos=batch), ts_origin_us=batch * DAY)
        reports(MemoryTables(orders=table), [event], SOFT, batch=batch, schemas=[SCHEMA])
    assert [] == table.forgotten


def test_in_delta_lake(lake: Lake) -> None:
    """In Delta Lake: a stored row, one inserted and deleted in a batch, a truncate, and a returning row."""
    lake.use(SOFT)
    lake.announce(SCHEMA)
    first = [change("c", {"id": n}, {"a": f"a{n}", "b": "b"}, pos=n, schema=SCHEMA) for n in (1, 2, 3)]
    lake.apply(0, first)
    lake.apply(1, [change("d", {"id": 1}, pos=4), *_short_life(4, 5), change("d", {"id": 2}, pos=7)])
    lake.apply(2, [change("t", None, pos=8), change("u", {"id": 2}, {"a": "again"}, pos=9, full=False)])
    lake.apply(3, [change("t", None, pos=8), change("d", {"id": 1}, pos=10)])
    stored = DeltaTable(lake.path()).to_pyarrow_table().to_pylist()
    shown = {row["id"]: (row["a"], row["b"], row["_cdc_deleted_at"] is not None) for row in stored}
    assert {1: ("a1", "b", True), 2: ("again", None, False), 3: ("a3", "b", True), 4: ("x", None, True)} == shown
    assert [2] == [row["id"] for row in lake.rows()]


def _short_life(id: int, pos: int) -> list[Any]:
    return [change("c", {"id": id}, {"a": "x"}, pos=pos, schema=SCHEMA), change("d", {"id": id}, pos=pos + 1)]


def test_the_column_of_delete_times(each_lake_of_rows: Lake) -> None:
    """A mirror that keeps no deleted rows has no column for their times. The column is added when it begins to keep
    them, and stays. A truncate, a late event and a sweep work without the column.
    """
    lake = each_lake_of_rows
    lake.use(TableRules())
    lake.announce(SCHEMA)
    lake.apply(0, [change("c", {"id": n}, {"a": f"a{n}", "b": "b"}, pos=n, schema=SCHEMA) for n in (1, 2, 3, 4)])
    lake.apply(1, [change("d", {"id": 1}, pos=5), *_short_life(9, 6), change("u", {"id": 9}, {"a": "late"}, pos=6)])
    began = datetime.now(UTC).isoformat()
    assert ([2, 3, 4], False) == ([row["id"] for row in lake.rows()], _keeps_times(lake))
    lake.apply(2, [change("u", {"id": id}, {"a": "later"}, pos=7 + id, full=False) for id in (3, 4)])
    lake.use(SOFT)
    assert "1 rows deleted" == lake.command("sweep", argument=began).result
    assert not _keeps_times(lake)
    lake.apply(3, [change("d", {"id": 3}, pos=20)])
    shown = {row["id"]: (row["a"], row["_cdc_deleted_at"] is not None) for row in lake.stored().to_pylist()}
    gone = dict.fromkeys((1, 2, 9), (None, True))
    assert {**gone, 3: ("later", True), 4: ("later", False)} == shown
    lake.use(TableRules())
    lake.apply(4, [change("u", {"id": 3}, {"a": "too late"}, pos=20), change("t", None, pos=21)])
    assert ([], True) == (lake.stored().to_pylist(), _keeps_times(lake))


def _keeps_times(lake: Lake) -> bool:
    return "_cdc_deleted_at" in lake.stored().column_names
