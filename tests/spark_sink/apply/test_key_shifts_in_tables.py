"""Keys that move within a transaction, in real tables of both formats. test_key_shifts.py covers them in memory.

`DELTA_SHIFTS=200` in the environment runs the number of an acceptance run, and `ICEBERG_SHIFTS=40` for Iceberg tables.
"""

from __future__ import annotations

import os
from itertools import zip_longest
from typing import Any

import msgspec
import pytest

from cdc_core.envelope import ChangeEvent
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.table_spec import Mode
from tests.spark_sink.apply.test_key_shifts import difference
from tests.spark_sink.changes import OTHER_SCOPE, change, schema_of, sent
from tests.spark_sink.key_shifts import Shifts, shifts
from tests.spark_sink.lake import Lake

COUNT = int(os.environ.get("DELTA_SHIFTS", "12"))
ICEBERG_COUNT = int(os.environ.get("ICEBERG_SHIFTS", "3"))
COLUMNS = {"id": "int64", "a": "string", "b": "string"}
NAMES = ("a", "b")


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
def test_tables_end_with_the_rows_of_the_source(lake_of_format: Lake, mode: Mode) -> None:
    """Batches end within transactions, so a row set aside is read back from the table."""
    lake = lake_of_format
    lake.use(TableRules(modes={"*": mode}))
    count = ICEBERG_COUNT if lake.formats else COUNT
    made = [one for seed in range(50 * count) if 3 <= len((one := shifts(seed)).batches) <= 6][:count]
    assert count == len(made)
    for one in made:
        lake.announce(schema_of(COLUMNS, table=_table(one)))
    for number, batches in enumerate(zip_longest(*(one.batches for one in made), fillvalue=())):
        lake.apply(
            number, [sent(event, _table(one)) for one, batch in zip(made, batches, strict=True) for event in batch]
        )
    wrong = {one.seed: what for one in made if (what := difference(one, _found(lake, one, mode))) is not None}
    assert {} == wrong


def _table(made: Shifts) -> str:
    return f"s{made.seed}"


def _found(lake: Lake, made: Shifts, mode: Mode) -> tuple[dict[int, dict[str, Any]], set[int]]:
    rows = lake.stored(f"shop_sales.{_table(made)}").to_pylist()
    live = [row for row in rows if mode is not Mode.HISTORY or row["_cdc_current"]]
    found = {row["id"]: {name: row[name] for name in NAMES} for row in live}
    return found, {row["id"] for row in live if row["_cdc_incomplete"]}


def test_a_partial_move_across_batches_keeps_every_type(lake_of_format: Lake) -> None:
    """The row set aside is stored by value, so the moved row has exactly the values that it had."""
    types = {
        "id": "int64",
        "amount": "decimal(20,4)",
        "at": "timestamptz",
        "day": "date",
        "data": "bytes",
        "rate": "float64",
        "small": "float32",
        "flag": "boolean",
        "local": "timestamp",
    }
    row = {
        "amount": "-12.5000",
        "at": "0001-01-01T00:00:00.000001Z",
        "day": "9999-12-31",
        "data": "AP8=",
        "rate": "NaN",
        "small": 0.1,
        "flag": True,
        "local": "2024-02-29T23:59:59.999999",
    }
    lake = lake_of_format
    schema = lake.announce(schema_of(types))
    made = [change("c", {"id": key}, row | {"flag": key == 2}, pos=key, schema=schema) for key in (1, 2)]
    lake.apply(0, made)
    before = {one["id"]: _values(one, types) for one in lake.stored("shop_sales.orders").to_pylist()}
    for number, (old, new) in enumerate([(1, 2), (2, 3)], start=1):
        moved = change("u", {"id": new}, {}, pos=10 + number, key_old={"id": old}, full=False, schema=schema, tx="t")
        lake.apply(number, [moved])
    rows = lake.stored("shop_sales.orders").to_pylist()
    after = {one["id"]: _values(one, types) for one in rows}
    assert {2: before[1], 3: before[2]} == after
    assert not any(one["_cdc_incomplete"] for one in rows)
    assert all(one["_cdc_state"] is None for one in rows)


def _values(row: dict[str, Any], types: dict[str, str]) -> str:
    """Compare values as text, because NaN is not equal to itself."""
    return repr([row[name] for name in types if name != "id"])


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
def test_a_late_change_of_another_partition_brings_no_row_back(lake_of_format: Lake, mode: Mode) -> None:
    """With hashing by key, row 1 became 2 in another partition before a change of 1 arrives in its own."""
    lake = lake_of_format
    lake.use(TableRules(modes={"*": mode}))
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [_at(10, change("c", {"id": 1}, {"a": "x"}, pos=1))])
    lake.apply(1, [_at(30, change("u", {"id": 2}, {"a": "x"}, pos=1, key_old={"id": 1}, scope=OTHER_SCOPE))])
    lake.apply(2, [_at(20, change("u", {"id": 1}, {"a": "y"}, pos=2))])
    rows = lake.stored("shop_sales.orders").to_pylist()
    live = [one["id"] for one in rows if mode is not Mode.HISTORY or one["_cdc_current"]]
    assert [2] == live
    assert ["ROW_OUTLIVED"] == [reason for reason, *_ in lake.quarantine()]


def _at(time: int, event: ChangeEvent) -> ChangeEvent:
    return msgspec.structs.replace(event, ts_commit_us=time, ts_origin_us=time)
