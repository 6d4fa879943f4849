"""A key column gets a wider type, in every mode with keys, in both formats and with both engines."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_sink.config.table_rules import TableRules
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.evolution import DEFAULTS, Policy, ShapeChange
from spark_sink.schema.table_spec import Format, Mode
from tests.spark_sink.apply.test_structure_changes_in_a_batch import DyingDdl, Killed
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import MergingLake, read_by_spark

COLUMNS = {"id": "int32", "n": "int32", "v": "string"}


@pytest.mark.parametrize(
    ("before", "after", "stored"),
    [("int32", "int64", "bigint"), ("decimal(10,0)", "decimal(12,0)", "decimal(12,0)")],
)
@pytest.mark.parametrize(
    ("format", "engine", "mode"),
    [
        (Format.DELTA, Engine.FUSED, Mode.MIRROR),
        (Format.DELTA, Engine.FUSED, Mode.HISTORY),
        (Format.DELTA, Engine.SPARK, Mode.MIRROR),
        (Format.ICEBERG, Engine.SPARK, Mode.MIRROR),
        (Format.ICEBERG, Engine.SPARK, Mode.HISTORY),
    ],
)
def test_a_key_gets_a_wider_type(
    merging_lake: MergingLake, format: Format, engine: Engine, mode: Mode, before: str, after: str, stored: str
) -> None:
    """Rows keep their keys, late events of the older schema find them, and a kill after the change loses nothing. A
    deltalake table keeps its properties, markers and features.
    """
    lake, kind = merging_lake, Decimal if "decimal" in after else int
    lake.use(TableRules(modes={"*": mode}, formats={"*": format}, engines=EngineRules({"*": engine})))
    old = lake.announce(schema_of({**COLUMNS, "id": before}))
    lake.apply(0, [change("c", _id(id, kind), {"n": id, "v": "x"}, pos=id, schema=old) for id in (1, 2, 3, 4)])
    table = _about(lake)
    new = lake.announce(schema_of({**COLUMNS, "id": after, "n": "int64"}))
    batch = [
        change("u", _id(1, kind), {"v": "y"}, pos=5, full=False, schema=new),
        change("c", _id(10**11, kind), {"n": 2**40, "v": "new"}, pos=6, schema=new),
        change("u", _id(2, kind), {"v": "late"}, pos=7, full=False, schema=old),
        change("u", _id(30, kind), {"v": "moved"}, key_old=_id(3, kind), pos=8, full=False, schema=old),
        change("d", _id(4, kind), pos=9, schema=new),
    ]
    lake.applier = lake.new_applier("checkpoint-1")
    lake.applier._ddl = DyingDdl(lake.ddl)
    with pytest.raises(Killed):
        lake.apply(1, batch)
    lake.applier = lake.new_applier("checkpoint-1")
    for _ in range(2):
        lake.apply(1, batch)
    lake.apply(2, [change("u", _id(10**11, kind), {"v": "z"}, pos=10, full=False, schema=new)])
    lake.apply(3, [change("u", _id(2, kind), {"v": "last"}, pos=11, full=False, schema=old)])
    assert ([], []) == (lake.quarantine(), lake.parked())
    expected = {1: (1, "y"), 2: (2, "last"), 30: (3, "moved"), 10**11: (2**40, "z")}
    spark = read_by_spark(lake.spark, lake)
    assert expected == _present([row.asDict() for row in spark.collect()], mode)
    assert stored == dict(spark.dtypes)["id"]
    assert 1 == spark.where(f"id = {10**11} AND v = 'z'").count()
    if engine is Engine.FUSED:
        assert table == _about(lake)
        assert expected == _present(lake.stored().to_pylist(), mode)  # by deltalake
    if mode is Mode.HISTORY:
        ended = [row for row in spark.collect() if row["id"] == 4 and row["_cdc_end_op"] == "d"]
        assert [(4, "x")] == [(row["n"], row["v"]) for row in ended]


def test_statistics_of_a_wider_key(merging_lake: MergingLake) -> None:
    """deltalake stores inexact statistics of decimals, so a key widened to a decimal no longer has any."""
    lake = merging_lake
    old = lake.announce(schema_of(COLUMNS))
    lake.apply(0, [change("c", {"id": 1}, {"n": 1, "v": "x"}, pos=1, schema=old)])
    new = lake.announce(schema_of({**COLUMNS, "id": "decimal(20,0)"}))
    lake.apply(1, [change("u", {"id": "1"}, {"v": "y"}, pos=2, full=False, schema=new)])
    table = DeltaTable(lake.path())
    assert "n,v" == table.metadata().configuration["delta.dataSkippingStatsColumns"]
    assert [{"id": Decimal(1), "n": 1, "v": "y"}] == lake.rows()


@pytest.mark.parametrize("policy", [Policy.FAIL, Policy.LENIENT])
def test_a_policy_that_forbids_it(lake: Any, policy: Policy) -> None:
    """The table is parked unchanged."""
    lake.use(TableRules(policies=DEFAULTS | {ShapeChange.WIDEN: policy}))
    old = lake.announce(schema_of(COLUMNS))
    lake.apply(0, [change("c", {"id": 1}, {"n": 1, "v": "x"}, pos=1, schema=old)])
    new = lake.announce(schema_of({**COLUMNS, "id": "int64"}))
    lake.apply(1, [change("u", {"id": 1}, {"v": "y"}, pos=2, full=False, schema=new)])
    assert [("SCHEMA_REFUSED", 0)] == lake.parked()
    assert [{"id": 1, "n": 1, "v": "x"}] == lake.rows()


def _id(id: int, kind: type) -> dict[str, Any]:
    return {"id": str(id) if kind is Decimal else id}


def _present(rows: list[dict[str, Any]], mode: Mode) -> dict[int, tuple[Any, Any]]:
    """Return the existing rows by key."""
    if mode is Mode.HISTORY:
        rows = [row for row in rows if row["_cdc_current"]]
    names = [name for name in ("n__v2", "n") if name in rows[0]]
    numbers = [next((row[name] for name in names if row[name] is not None), None) for row in rows]
    return {int(row["id"]): (number, row["v"]) for row, number in zip(rows, numbers, strict=True)}


def _about(lake: MergingLake) -> Any:
    """Return the identity, features and properties of a Delta table, without the names of added columns."""
    if lake.tables.format("shop_sales.orders") is not Format.DELTA:
        return None
    table = DeltaTable(lake.path())
    metadata, protocol = table.metadata(), table.protocol()
    added = ("cdc.source.", "cdc.columns")
    properties = {k: v for k, v in metadata.configuration.items() if not k.startswith(added)}
    return metadata.id, metadata.partition_columns, properties, protocol, min(lake.commit_markers())
