"""The model check in real tables of both formats, with many histories in parallel, each in its own table.

`DELTA_HISTORIES=200` in the environment runs the number of an acceptance run, `ICEBERG_HISTORIES=40` for Iceberg
tables, and `VECTORS_HISTORIES=40` for Delta tables with deletion vectors. With `DELTA_ENGINE=spark`, Spark merges the
Delta tables, which takes a hundred times as long.
"""

from __future__ import annotations

import os
from itertools import zip_longest
from typing import Any

from spark_sink.config.table_rules import TableRules
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.table_spec import Mode
from tests.spark_sink.apply.test_history_model import difference
from tests.spark_sink.changes import schema_of, sent
from tests.spark_sink.histories import History, history
from tests.spark_sink.lake import Lake, MergingLake
from tests.spark_sink.oracle import table_after

COUNT = int(os.environ.get("DELTA_HISTORIES", "20"))
# Spark writes each of their batches, which takes about a hundred times as long.
ICEBERG_COUNT = int(os.environ.get("ICEBERG_HISTORIES", "4"))
VECTORS_COUNT = int(os.environ.get("VECTORS_HISTORIES", "8"))
ENGINE = Engine(os.environ.get("DELTA_ENGINE", "fused"))
COLUMNS = {"id": "int64", "a": "string", "b": "string", "c": "string"}


def test_any_delivery_gives_the_table(each_lake_of_rows: Lake) -> None:
    """What test_model.py shows for tables in memory holds for real tables."""
    lake = each_lake_of_rows
    rules = TableRules(all_scopes=True, engines=EngineRules({"*": ENGINE}))
    lake.use(TableRules(all_scopes=True) if lake.formats else rules)
    histories = _delivered(lake, _count(lake, COUNT))
    wrong = {made.seed for made in histories if not is_right(lake, made)}
    assert set() == wrong


def test_any_delivery_gives_the_table_with_deletion_vectors(vectors_lake: MergingLake) -> None:
    vectors_lake.use(TableRules(all_scopes=True))
    histories = _delivered(vectors_lake, VECTORS_COUNT)
    assert set() == {made.seed for made in histories if not is_right(vectors_lake, made)}


def test_any_delivery_gives_the_versions(each_lake_of_rows: Lake) -> None:
    """What test_history_model.py shows for versions holds for real tables."""
    lake = each_lake_of_rows
    lake.use(TableRules(all_scopes=True, modes={"*": Mode.HISTORY}))
    wrong = {}
    for made in _delivered(lake, _count(lake, -(-COUNT // 4))):
        name = f"shop_sales.{made.table}"
        rows = lake.stored(name).to_pylist() if lake.tables.exists(name) else []
        what = difference(made, rows)
        if what is not None:
            wrong[made.seed] = what
    assert {} == wrong


def _count(lake: Lake, of_delta: int) -> int:
    """Return the number of histories for a lake."""
    return ICEBERG_COUNT if lake.formats else of_delta


def _delivered(lake: Lake, count: int) -> list[History]:
    """Apply that many histories, each to its own table. They have few batches, because a batch is what costs time."""
    histories = [made for seed in range(50 * count) if len((made := history(seed)).batches) in (2, 3)][:count]
    assert count == len(histories)
    for made in histories:
        lake.announce(schema_of(COLUMNS, table=made.table))
    for number, batches in enumerate(zip_longest(*(made.batches for made in histories), fillvalue=())):
        told = [sent(event, made.table) for made, batch in zip(histories, batches, strict=True) for event in batch]
        lake.apply(number, told)
    assert [] == lake.quarantine()
    return histories


def is_right(lake: Lake, made: History) -> bool:
    rows, incomplete = table_after(made.events)
    name = f"shop_sales.{made.table}"
    if not lake.tables.exists(name):
        return not rows
    present: list[dict[str, Any]] = lake.stored(name).to_pylist()
    flagged = {row["id"] for row in present if row["_cdc_incomplete"]}
    found = {row["id"]: {name: row[name] for name in COLUMNS} for row in present}
    if not made.sure:
        rows = {id: row for id, row in rows.items() if id not in flagged}
        found = {id: row for id, row in found.items() if id not in flagged}
        return rows == found and incomplete <= flagged
    return (rows, incomplete) == (found, flagged)
