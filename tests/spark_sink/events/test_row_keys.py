"""A row is identified by its own key or by declared columns."""

from __future__ import annotations

import msgspec

from cdc_core.envelope import ChangeEvent
from cdc_core.table_id import TableId
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.evolution import TableColumn, TableShape
from tests.spark_sink.changes import change, schema_of, text
from tests.spark_sink.memory import MemoryTable, MemoryTables
from tests.spark_sink.records import created, reports

KEYLESS = schema_of({"id": "string", "line": "decimal(38,2)", "a": "string"}, ())
DECLARED = TableRules(keys={"shop_sales.orders": ("id", "line")})
COLUMNS = (TableColumn("id", "string"), TableColumn("line", "decimal(38,2)"), TableColumn("a", "string"))
SHAPE = TableShape(TableId.of(KEYLESS), COLUMNS, ("id", "line"))


def _event(op: str, pos: int, after: dict[str, object] | None, before: dict[str, object] | None = None) -> ChangeEvent:
    """Return an event of a table without a key."""
    blank = change(op, None, {} if after is None else after, pos=pos, schema=KEYLESS, full=False)
    written = None if after is None else text(after)
    return msgspec.structs.replace(blank, after=written, before=None if before is None else text(before))


def test_declared_columns_are_the_key() -> None:
    """If events have no key, the declared columns identify the rows, also in updates, deletes and key changes."""
    (report,) = reports(
        MemoryTables(), [_event("c", 1, {"id": "x", "line": "1.00", "a": "v"})], DECLARED, schemas=[KEYLESS]
    )
    assert ("id", "line") == created(report).key
    table = MemoryTable(SHAPE)
    events = [
        _event("c", 1, {"id": "x", "line": "1.00", "a": "one"}),
        _event("c", 2, {"id": "x", "line": "2.00", "a": "two"}),
        _event("c", 3, {"id": "y", "line": "12345678901234567890123456789012345.67", "a": "three"}),
        _event("u", 4, {"id": "x", "line": "1.0", "a": "patched"}),
        _event("d", 5, None, {"id": "x", "line": "2.00", "a": "two"}),
        _event("u", 6, {"id": "z"}, {"id": "y", "line": "12345678901234567890123456789012345.67"}),
    ]
    (report,) = reports(MemoryTables(orders=table), events, DECLARED, schemas=[KEYLESS])
    assert {} == report.counters.rejected
    assert {("x", "1.00"): "patched", ("z", "12345678901234567890123456789012345.67"): "three"} == {
        (key[0], str(key[1])): row["a"] for key, row in table.visible().items()
    }


def test_an_event_without_the_declared_columns() -> None:
    """Only that event is quarantined, with the columns that it lacks."""
    table = MemoryTable(SHAPE)
    events = [
        _event("c", 1, {"id": "x", "line": "1.00"}),
        _event("d", 2, None, {"id": "x"}),
        _event("u", 3, {"a": "b"}),
    ]
    (report,) = reports(MemoryTables(orders=table), events, DECLARED, schemas=[KEYLESS])
    assert (1, {"KEY_UNKNOWN": 2}) == (report.counters.rows, report.counters.rejected)


def test_declared_columns_stand_over_the_key_of_events() -> None:
    """Declared columns override the key of events. A delete can have them in its key alone."""
    table = MemoryTable(TableShape(TableId.of(KEYLESS), COLUMNS, ("id",)))
    keyed = schema_of({"id": "string", "line": "decimal(38,2)", "a": "string"}, ("line",))
    events = [
        change("c", {"line": "1.00"}, {"id": "x", "a": "v"}, pos=1, schema=keyed),
        change("c", {"line": "2.00"}, {"id": "y", "a": "v"}, pos=2, schema=keyed),
        change("d", {"id": "y"}, pos=3, schema=keyed),
    ]
    (report,) = reports(MemoryTables(orders=table), events, TableRules(keys={"*": ("id",)}), schemas=[keyed])
    assert ({}, [("x",)]) == (report.counters.rejected, list(table.visible()))


UNIQUE = schema_of({"u": "int64", "a": "string"}, ("u",))
UNIQUE_SHAPE = TableShape(TableId.of(UNIQUE), (TableColumn("u", "bigint"), TableColumn("a", "string")), ("u",))


def _of_unique(op: str, pos: int, *, key: int | None, key_old: int | None = None, a: str = "") -> ChangeEvent:
    """Return an event of a table with a nullable key, as the translator writes it."""
    key_text, old_text = (None if value is None else {"u": value} for value in (key, key_old))
    after = None if op == "d" else {"u": key, "a": a}
    return change(op, key_text, after, pos=pos, key_old=old_text, schema=UNIQUE)


def test_a_key_that_becomes_null() -> None:
    """The row of the old key is removed. The row without a key is quarantined, like all such rows."""
    table = MemoryTable(UNIQUE_SHAPE)
    events = [
        _of_unique("c", 1, key=5, a="five"),
        _of_unique("c", 2, key=6, a="six"),
        _of_unique("u", 3, key=None, key_old=5, a="none"),
        _of_unique("u", 4, key=None, a="still none"),
    ]
    (report,) = reports(MemoryTables(orders=table), events, TableRules(), schemas=[UNIQUE])
    assert {(6,): "six"} == {key: row["a"] for key, row in table.visible().items()}
    assert (2, {"KEY_UNKNOWN": 2}) == (report.counters.rows, report.counters.rejected)
    (report,) = reports(
        MemoryTables(orders=table), [_of_unique("u", 5, key=7, a="seven")], TableRules(), batch=1, schemas=[UNIQUE]
    )
    assert {(6,): "six", (7,): "seven"} == {key: row["a"] for key, row in table.visible().items()}
    assert {} == report.counters.rejected


def test_a_key_that_becomes_null_before_there_is_a_table() -> None:
    """The old key provides the key columns, so the table is created."""
    tables = MemoryTables()
    (report,) = reports(tables, [_of_unique("u", 1, key=None, key_old=5)], TableRules(), schemas=[UNIQUE])
    assert ("u",) == created(report).key


def test_a_declared_key_that_is_null() -> None:
    """As with keys of events, the old row is removed and the new one is written."""
    table = MemoryTable(SHAPE)
    named, unnamed = {"id": "x", "line": "1.00"}, {"id": "x", "line": None}
    events = [
        _event("c", 1, {**named, "a": "one"}),
        _event("u", 2, {**unnamed, "a": "two"}, named),
    ]
    (report,) = reports(MemoryTables(orders=table), events, DECLARED, schemas=[KEYLESS])
    assert ({}, {"KEY_UNKNOWN": 1}) == (table.visible(), report.counters.rejected)
    again = [_event("u", 3, {**named, "a": "three"}, unnamed), _event("c", 4, {**unnamed, "a": "four"})]
    (report,) = reports(MemoryTables(orders=table), again, DECLARED, batch=1, schemas=[KEYLESS])
    assert ["three"] == [row["a"] for row in table.visible().values()]
    assert {"KEY_UNKNOWN": 1} == report.counters.rejected
