"""C11 and C12 of docs/sink-design.md: schema changes in the middle of a batch, a crash between a change and its data,
and incompatible types, for all engines and formats together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

import pytest
from deltalake import DeltaTable

from spark_sink.schema.evolution import DEFAULTS, Policy, ShapeChange, TableColumn, TableShape
from spark_sink.tables.protocols import TableDdl
from tests.spark_sink.changes import change
from tests.spark_sink.lake import MergingLake
from tests.spark_sink.pairs import EVERY, announce, both, present, rules


class Killed(BaseException):
    """Raised by tests instead of SIGKILL."""


class DyingDdl:
    """Dies after each change."""

    def __init__(self, ddl: TableDdl) -> None:
        self._ddl = ddl

    def create(self, name: str, shape: TableShape) -> None:
        self._ddl.create(name, shape)
        raise Killed

    def replace(self, name: str, shape: TableShape) -> None:
        raise AssertionError("no table is rebuilt")

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None:
        raise AssertionError("no table is given to another source")

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        self._ddl.add_columns(name, columns)
        raise Killed

    def widen(self, name: str, columns: Sequence[TableColumn], *, rewrites: bool = False) -> None:
        self._ddl.widen(name, columns, rewrites=rewrites)
        raise Killed

    def create_quarantine(self) -> None:
        raise AssertionError("it is there")


def test_columns_come_and_go_in_mid_batch(merging_lake: MergingLake) -> None:
    """Columns are added, dropped, renamed, widened and narrowed while events of earlier versions still arrive. Each is
    read by its own schema, and a kill between the change and its data loses nothing.
    """
    merging_lake.use(rules(DEFAULTS | {ShapeChange.WIDEN: Policy.LENIENT}))
    one = announce(merging_lake, {"id": "int64", "a": "string", "n": "int32"})
    merging_lake.apply(
        0,
        both(
            [change("c", {"id": id}, {"a": "x", "n": id}, pos=id, schema=one["orders"]) for id in (1, 2)],
            [one],
            EVERY,
        ),
    )
    added = announce(merging_lake, {"id": "int64", "a": "string", "n": "int32", "b": "date"})
    renamed = announce(merging_lake, {"id": "int64", "a2": "string", "n": "int64", "b": "date"})
    dropped = announce(merging_lake, {"id": "int64", "a2": "string", "n": "int16"})
    versions = [one, added, renamed, dropped]
    batch = both(
        [
            change("u", {"id": 1}, {"b": "2026-01-01"}, pos=3, full=False, schema=added["orders"]),
            change("u", {"id": 1}, {"a2": "new name", "n": 2**40}, pos=4, full=False, schema=renamed["orders"]),
            change("u", {"id": 2}, {"a": "old name", "n": 7}, pos=5, full=False, schema=one["orders"]),
            change("c", {"id": 3}, {"a2": "y", "n": -1}, pos=6, schema=dropped["orders"]),
            change("c", {"id": 4}, {"a": "z", "n": 2**31 - 1}, pos=7, schema=one["orders"]),
        ],
        versions,
        EVERY,
    )
    merging_lake.applier = merging_lake.new_applier("checkpoint-1")
    merging_lake.applier._ddl = DyingDdl(merging_lake.ddl)
    with pytest.raises(Killed):
        merging_lake.apply(1, batch)
    merging_lake.applier = merging_lake.new_applier("checkpoint-1")
    merging_lake.apply(1, batch)
    for table in EVERY:
        assert {
            1: {"a": "x", "b": date(2026, 1, 1), "a2": "new name", "n__v2": 2**40},
            2: {"a": "old name", "n": 7},
            3: {"a2": "y", "n": -1},
            4: {"a": "z", "n": 2**31 - 1},
        } == present(merging_lake, table)
    assert [] == merging_lake.quarantine()


BEFORE = {"id": "int32", "n": "int32", "d": "decimal(10,2)", "f": "float32", "m": "int16", "big": "int64", "s": "int32"}
AFTER = {
    "id": "int64",
    "n": "int64",
    "d": "decimal(14,4)",
    "f": "float64",
    "m": "decimal(12,2)",
    "big": "decimal(19,0)",  # Delta Lake needs 20 digits
    "s": "string",
}


def test_types_are_widened_in_place(merging_lake: MergingLake) -> None:
    """If Spark writes the table, a column, including a key column, gets the wider type in place where Delta Lake allows
    it. Otherwise an additional column is added. Existing rows remain, and a kill after any step loses nothing.
    """
    merging_lake.use(rules())
    old = announce(merging_lake, BEFORE)
    first = {"n": 1, "d": "1.25", "f": 0.5, "m": 3, "big": 4, "s": 5}
    merging_lake.apply(
        0, both([change("c", {"id": id}, first, pos=id, schema=old["orders"]) for id in (1, 2, 3)], [old])
    )
    new = announce(merging_lake, {**AFTER, "id": "int64"})
    wide = {"n": 2**40, "d": "0.0001", "f": 1e300, "m": "9.75", "big": "5", "s": "text"}
    batch = [
        change("u", {"id": 1}, wide, pos=4, schema=new["orders"]),
        change("u", {"id": 2}, {"n": 9}, pos=5, full=False, schema=old["orders"]),
        change("c", {"id": 2**33}, wide, pos=6, schema=new["orders"]),
    ]
    merged = [event for event in both(batch, [old, new]) if event.table == "merged"]
    for _ in range(2):
        merging_lake.applier = merging_lake.new_applier("checkpoint-1")
        merging_lake.applier._ddl = DyingDdl(merging_lake.ddl)
        with pytest.raises(Killed):
            merging_lake.apply(1, merged)
    merging_lake.applier = merging_lake.new_applier("checkpoint-1")
    merging_lake.apply(1, merged)
    moved = [
        change("u", {"id": 30}, {"n": 8}, key_old={"id": 3}, pos=7, full=False, schema=new["orders"]),
        change("d", {"id": 2**33}, pos=8, schema=new["orders"]),
    ]
    merging_lake.apply(2, [event for event in both(moved, [new]) if event.table == "merged"])
    kept = {"d": Decimal("1.2500"), "f": 0.5, "m": Decimal("3.00"), "big": 4, "s": 5}
    expected = {
        1: {"n": 2**40, "d": Decimal("0.0001"), "f": 1e300, "m": Decimal("9.75"), "big": 5, "s__v2": "text"},
        2: {"n": 9, **kept},
        30: {"n": 8, **kept},
    }
    assert expected == present(merging_lake, "merged")
    assert [] == merging_lake.quarantine()
    table = merging_lake.spark.read.format("delta").load(merging_lake.path("shop_sales.merged"))
    types = {field.name: field.dataType.simpleString() for field in table.schema}
    assert {
        "id": "bigint",
        "n": "bigint",
        "d": "decimal(14,4)",
        "f": "double",
        "m": "decimal(12,2)",
    }.items() <= types.items()
    # Files and statistics have both types, and no filter misses a row.
    for filter, id in {"n = 9": 2, "id = 30": 30}.items():
        found = table.where(f"d = 1.25 AND f = 0.5D AND m = 3 AND {filter}").select("id")
        assert [id] == [row.id for row in found.collect()]
    assert "typeWidening" in (DeltaTable(merging_lake.path("shop_sales.merged")).protocol().writer_features or ())
