"""The rows that a sweep by position deletes, and the answers it rejects. test_resume.py covers sweeps by time."""

from __future__ import annotations

import msgspec
import pytest

from cdc_core.position import position
from cdc_core.table_id import TableId
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import FatalError
from spark_sink.model.row import RowMark
from spark_sink.operations.sweep import sweep
from spark_sink.schema.evolution import TableColumn, TableShape
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake
from tests.spark_sink.memory import MemoryTable

SHAPE = TableShape(
    TableId("shop", "sales", None, "orders"), (TableColumn("id", "string"), TableColumn("a", "string")), ("id",)
)
NATIVE = "native:shop/t"


def _table(**rows: tuple[str, str]) -> MemoryTable:
    table = MemoryTable(SHAPE)
    for id, (scope, pos) in rows.items():
        table.stored[id,] = {"id": id, "a": "x"}
        table.remembered[id,] = RowMark(scope, pos)
    return table


def _none(_: object) -> None:
    raise AssertionError("a position needs no past")


def test_by_position() -> None:
    """An epoch applies to all scopes, a position to its own. Deleted rows remain deleted below it."""
    old, new = position(5, 0, native=7, epoch=1), position(6, 0, epoch=2)
    table = _table(a=(NATIVE, old), b=("native:shop/u", old), c=(NATIVE, new))
    assert 2 == sweep(table, "0002", _none, soft=False)
    assert [("c",)] == list(table.visible())
    assert RowMark(NATIVE, position(0, 0, epoch=2), deleted=True) == table.remembered["a",]
    assert 0 == sweep(table, "0002", _none, soft=False)
    table = _table(a=("raw:0@t", position(1, 0)), b=("raw:0@t", position(2, 0)))
    assert 1 == sweep(table, position(2, 0), _none, soft=False)
    assert [("b",)] == list(table.visible())
    assert msgspec.structs.replace(table.remembered["a",], pos="") == RowMark("raw:0@t", "", deleted=True)


@pytest.mark.parametrize(
    ("before", "error"),
    [
        ("yesterday", "'yesterday' is not a position"),
        ("", "'' is not a position"),
        ("2026-01-31T12:00:00", "is not a position, a four-digit epoch, or a time"),
        ("9999-01-01T00:00:00+00:00", "is in the future"),
        (position(1, 0), r"several scopes have written to the table \(raw:0@t, raw:1@t\)"),
    ],
)
def test_what_says_nothing(before: str, error: str) -> None:
    """Nothing is deleted if the request is ambiguous."""
    table = _table(a=("raw:0@t", position(1, 0)), b=("raw:1@t", position(2, 0)))
    with pytest.raises(FatalError, match=error):
        sweep(table, before, _none, soft=False)
    assert 2 == len(table.visible())


def test_deletes_that_are_soft(lake_of_format: Lake) -> None:
    """Swept rows stay with their values, and an old event does not bring them back."""
    lake, schema = lake_of_format, schema_of({"id": "int64", "name": "string"})
    lake.announce(schema)
    lake.use(TableRules(soft_deletes=True))
    old = [change("c", {"id": id}, {"name": f"n{id}"}, pos=id, schema=schema) for id in (1, 2)]
    lake.apply(0, old)
    lake.apply(1, [change("u", {"id": 1}, {"name": "later"}, pos=10, schema=schema)])
    assert "1 rows deleted" == lake.command("sweep", argument=position(10, 0)).result
    lake.apply(2, old)
    assert {1: ("later", True), 2: ("n2", False)} == {
        row["id"]: (row["name"], row["_cdc_deleted_at"] is None) for row in lake.stored().to_pylist()
    }
