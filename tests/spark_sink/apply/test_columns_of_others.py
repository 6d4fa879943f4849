"""Somebody adds a column to a table, and later the source adds the same one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from cdc_core.envelope import TableSchema
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.evolution import Policy, ShapeChange
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.spark.session import sibling
from spark_sink.table_report import Done, Outcome, Parked
from spark_sink.tables.iceberg.catalogs import quoted
from spark_sink.tables.table_properties import COLUMNS_PROPERTY
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, MergingLake, Topic

ORDERS = "shop_sales.orders"
SMALL = schema_of({"id": "int64", "name": "string"})
WITH_NOTE = schema_of({"id": "int64", "name": "string", "note": "string"})


def _apply(topic: Topic, batch: int, schema: TableSchema, **columns: Any) -> Outcome:
    event = change("c", {"id": batch}, {"name": "a", **columns}, pos=batch + 1, schema=schema)
    (report,) = topic.apply(batch, [event])
    return report.outcome


def _add_note(lake: Lake, type: str = "string") -> None:
    if lake.tables.format(ORDERS) is Format.DELTA:
        DeltaTable(lake.path()).alter.add_columns([Field("note", PrimitiveType(type))])
    else:
        _sql(lake, f"ADD COLUMN note {type}")


def _sql(lake: Lake, change: str) -> None:
    assert isinstance(lake, MergingLake)
    catalog = lake.tables.iceberg_catalog
    sibling(lake.spark, catalog.spark).sql(f"ALTER TABLE {quoted(catalog, ORDERS)} {change}")


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("type", ["string", "binary"])
def test_a_column_of_somebody_else_is_not_taken_over(lake_of_format: Lake, mode: Mode, type: str) -> None:
    """The column has the same or another type. Events with only known columns are applied. The first event with the
    added column parks the table.
    """
    lake = lake_of_format
    lake.announce(SMALL)
    lake.use(TableRules(modes={"*": mode}))
    topic = Topic(lake)
    assert Done() == _apply(topic, 0, SMALL)
    _add_note(lake, type)
    assert Done() == _apply(topic, 1, SMALL)
    lake.announce(WITH_NOTE)
    parked = _apply(topic, 2, WITH_NOTE, note="theirs")
    assert isinstance(parked, Parked)
    assert "the table already has a column note that was not added by this sink" in parked.refusal
    assert [None, None] == lake.stored().column("note").to_pylist()
    asked = lake.command("rebuild", ORDERS)
    assert ("done", None) == (asked.state, asked.error)
    assert [None, None, "theirs"] == sorted(lake.stored().column("note").to_pylist(), key=str)[-3:]


def test_a_column_that_was_dropped_again(lake_of_format: Lake) -> None:
    """After the user drops the column, or the configuration excludes it, the table can be resumed."""
    lake = lake_of_format
    lake.announce(SMALL)
    lake.use(TableRules())
    topic = Topic(lake)
    _apply(topic, 0, SMALL)
    _add_note(lake)
    lake.announce(WITH_NOTE)
    assert isinstance(_apply(topic, 1, WITH_NOTE, note="theirs"), Parked)
    if isinstance(lake, MergingLake):
        _sql(lake, "DROP COLUMN note")
        expected: list[str | None] = [None, "theirs"]
    else:
        lake.use(TableRules(policies={**lake.rules.policies, ShapeChange.ADD: Policy.IGNORE}))
        expected = [None, None]
    assert "done" == lake.command("resume").state
    assert expected == [row["note"] for row in lake.rows()]


def test_columns_that_the_sink_adds_are_its_own(lake_of_format: Lake) -> None:
    """The sink owns columns that it adds. In a table of an earlier release, which lists none, it owns all columns."""
    lake = lake_of_format
    topic = Topic(lake)
    lake.announce(SMALL)
    _apply(topic, 0, SMALL)
    lake.announce(WITH_NOTE)
    assert Done() == _apply(topic, 1, WITH_NOTE, note="ours")
    wide = lake.announce(schema_of({"id": "int64", "name": "string", "note": "string", "more": "int32"}))
    assert Done() == _apply(topic, 2, wide, note="ours", more=1)
    assert [None, "ours", "ours"] == [row["note"] for row in lake.rows()]
    _forget_list(lake)
    assert Done() == _apply(topic, 3, wide, note="ours", more=2)
    wider = lake.announce(schema_of({**dict.fromkeys(("name", "note"), "string"), "id": "int64", "last": "int32"}))
    assert Done() == _apply(topic, 4, wider, note="ours", last=1)
    assert [None, None, 1, 2, None] == [row["more"] for row in lake.rows()]
    assert [] == lake.parked()


def _forget_list(lake: Lake) -> None:
    if isinstance(lake, MergingLake):
        _sql(lake, f"UNSET TBLPROPERTIES ('{COLUMNS_PROPERTY}')")
    else:
        _without_list(f"{lake.path()}/_delta_log")


def _without_list(log: str) -> None:
    """Remove the list from the log, because deltalake cannot unset a property."""
    for file in sorted(Path(log).glob("*.json")):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.get("metaData", {}).get("configuration", {}).pop(COLUMNS_PROPERTY, None)
        file.write_text("\n".join(map(json.dumps, lines)) + "\n")
