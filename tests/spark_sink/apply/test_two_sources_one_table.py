"""C18 of the correctness suite (docs/sink-design.md §6): two sources share one table."""

from __future__ import annotations

from typing import Any

import msgspec
from deltalake import DeltaTable

from cdc_core.envelope import ChangeEvent, TableSchema
from cdc_core.table_id import TableId
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.evolution import TableShape, evolve
from spark_sink.schema.table_spec import SOURCE, Mode, TableSpec
from spark_sink.table_report import Done
from tests.spark_sink.changes import change, schema_of, text
from tests.spark_sink.lake import Lake
from tests.spark_sink.memory import MemoryHistory, MemoryLog, MemoryTable, MemoryTables
from tests.spark_sink.records import created, reports

# Both map to shop_sales.orders.
ONE, OTHER = "shop/sales//orders", "shop_sales///orders"
SHARED = {"shop_sales.*": ("shop*/orders",)}
HERE = schema_of({"id": "int64", "a": "string"})
THERE = TableSchema.of("shop_sales", None, None, "orders", schema_of({"id": "int64", "b": "int32"}).columns, "primary")
POOL = TableId("*", None, None, "shop_sales.orders")


def _there(event: ChangeEvent) -> ChangeEvent:
    """Return the same event of the other source, in the same partition."""
    schema_id = None if event.schema_id is None else THERE.id
    return msgspec.structs.replace(event, source="shop_sales", db=None, id=f"other/{event.id}", schema_id=schema_id)


EVENTS = [
    change("c", {"id": 1}, {"a": "x"}, pos=1, schema=HERE),
    _there(change("c", {"id": 1}, {"b": 1}, pos=1, schema=HERE)),
    change("c", {"id": 2}, {"a": "y"}, pos=2, schema=HERE),
    _there(change("c", {"id": 2}, {"b": 2}, pos=2, schema=HERE)),
    change("t", None, pos=3),
    _there(change("u", {"id": 2}, {"b": 3}, pos=3, full=False, schema=HERE)),
    _there(change("u", {"id": 4}, {"b": 4}, key_old={"id": 1}, pos=4, full=False, schema=HERE)),
    change("c", {"id": 2}, {"a": "z"}, pos=5, schema=HERE),
]
ROWS = {(ONE, 2, "z", None), (OTHER, 2, None, 3), (OTHER, 4, None, 4)}


def _shape(mode: Mode = Mode.MIRROR) -> TableShape:
    return evolve(None, POOL, [HERE, THERE], form=TableSpec(mode, shared=True)).shape


def _found(rows: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {(row[SOURCE], row["id"], row["a"], row["b"]) for row in rows}


def test_rows_are_those_of_each_source() -> None:
    """Rows with the same key in two sources are two rows in any partition. A truncate of one source keeps the rows of
    the other, and duplicates change nothing.
    """
    table = MemoryTable(_shape())
    assert (SOURCE, "id") == table.shape.key
    for batch in range(2):
        (report,) = reports(
            MemoryTables(orders=table), EVENTS, TableRules(shared=SHARED), batch=batch, schemas=[HERE, THERE]
        )
        assert (Done(), {}) == (report.outcome, report.counters.rejected)
        assert ROWS == _found(list(table.visible().values()))


def test_a_new_table() -> None:
    """It has the columns of all sources in the batch, and its key begins with the source."""
    (report,) = reports(MemoryTables(), EVENTS, TableRules(shared=SHARED), schemas=[HERE, THERE])
    shape = created(report)
    assert (POOL, _shape().key, _shape().types) == (shape.table, shape.key, shape.types)


def test_versions_are_those_of_each_source() -> None:
    """A history also keeps its sources apart."""
    table = MemoryHistory(_shape(Mode.HISTORY))
    rules = TableRules(shared=SHARED, modes={"*": Mode.HISTORY})
    for batch in range(2):
        reports(MemoryTables(orders=table), EVENTS, rules, batch=batch, schemas=[HERE, THERE])
    assert ROWS == _found([row for row in table.rows.values() if row["_cdc_current"]])
    assert {"t"} == {row["_cdc_end_op"] for row in table.rows.values() if row[SOURCE] == ONE and row["a"] in ("x", "y")}


def test_events_of_each_source() -> None:
    """A changelog has the source of every event, even if events have no key."""
    log = MemoryLog(_shape(Mode.CHANGELOG))
    rules = TableRules(shared=SHARED, modes={"*": Mode.CHANGELOG})
    events = [*EVENTS, _there(change("c", None, {"b": 9}, pos=9, schema=HERE))]
    (report,) = reports(MemoryTables(orders=log), events, rules, schemas=[HERE, THERE])
    assert (9, {}) == (report.counters.rows, report.counters.rejected)
    assert {ONE: 4, OTHER: 5} == {one: [row[SOURCE] for row in log.rows].count(one) for one in (ONE, OTHER)}


def test_declared_keys() -> None:
    """Declared key columns identify a row within its source, including in key changes."""
    table = MemoryTable(_shape())
    rules = TableRules(shared=SHARED, keys={"*": ("id",)})
    keyless = [msgspec.structs.replace(event, key=None, key_old=None) for event in EVENTS]
    keyless[6] = msgspec.structs.replace(keyless[6], before=text({"id": 1, "b": 1}))
    (report,) = reports(MemoryTables(orders=table), keyless, rules, schemas=[HERE, THERE])
    assert ({}, ROWS) == (report.counters.rejected, _found(list(table.visible().values())))


def test_in_a_lake(lake_of_format: Lake) -> None:
    """Tables of both formats, with the schemas of both sources known from the start and a broken event of one."""
    lake = lake_of_format
    lake.announce(HERE)
    lake.announce(THERE)
    lake.use(TableRules(shared=SHARED))
    broken = _there(change("c", {"id": 7}, {"b": 2**40}, pos=8, schema=HERE))
    lake.apply(0, EVENTS[:3])
    lake.apply(1, [*EVENTS, broken])
    rows = lake.stored().to_pylist()
    assert ROWS == _found([row for row in rows if row["id"] != 7])
    assert [(None, True)] == [(row["b"], row["_cdc_incomplete"]) for row in rows if row["id"] == 7]
    (quarantined,) = DeltaTable(lake.path("_cdc.quarantine")).to_pyarrow_table().to_pylist()
    assert ("shop_sales", None, "VALUE_INVALID") == tuple(quarantined[name] for name in ("source", "db", "reason"))
