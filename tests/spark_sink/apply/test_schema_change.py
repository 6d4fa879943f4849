"""Schema changes on real Delta tables: the tables accept what evolve.py plans."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.config.table_rules import TableRules
from spark_sink.operations.status import status
from spark_sink.schema.evolution import DEFAULTS, Policy, ShapeChange
from spark_sink.schema.table_naming import TablePattern
from spark_sink.schema.table_spec import Mode
from tests.sizes import examples
from tests.spark_sink.changes import OTHER_SCOPE, change, schema_of
from tests.spark_sink.lake import PATTERN, Lake

ODD = ["a b", "", "_cdc_pos", "x", "X", "it's", 'q"', "`", "\n", "a.b", "名", "n;", "back\\slash", "%", "${x}"]


def test_old_and_new_versions_in_one_batch(lake: Lake) -> None:
    """C11, C12: mixed events of two schemas in one batch are each read by their own schema. A row has its value in one
    column, the old one if it can hold the value.
    """
    old = lake.announce(schema_of({"id": "int64", "n": "int32", "v": "string"}))
    lake.apply(0, [change("c", {"id": id}, {"n": id, "v": "x"}, pos=id, schema=old) for id in (1, 2, 3)])
    new = lake.announce(schema_of({"id": "int64", "n": "decimal(20,2)", "v": "string", "w": "int16"}))
    lake.apply(
        1,
        [
            change("u", {"id": 1}, {"n": "0.25"}, pos=4, full=False, schema=new),
            change("u", {"id": 2}, {"n": 7}, pos=5, full=False, schema=old),
            change("u", {"id": 2}, {"n": "9.50", "w": 1}, pos=6, full=False, schema=new),
            change("c", {"id": 4}, {"n": 8, "v": "old"}, pos=7, schema=old),
        ],
    )
    assert [
        {"id": 1, "n": None, "v": "x", "n__v2": Decimal("0.25"), "w": None},
        {"id": 2, "n": None, "v": "x", "n__v2": Decimal("9.50"), "w": 1},
        {"id": 3, "n": 3, "v": "x", "n__v2": None, "w": None},
        {"id": 4, "n": 8, "v": "old", "n__v2": None, "w": None},
    ] == lake.rows()
    assert [] == lake.quarantine()
    assert 1 == lake.metrics.registry.get_sample_value("cdc_sink_columns_beside_total")
    (told,) = status(lake.tables, "test", TablePattern.parse(PATTERN))["tables"]
    assert {"n__v2": "n"} == told["beside"]


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
@examples(0.2)
@given(
    st.lists(
        st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-40_000, 40_000), st.none()), min_size=1, max_size=6
    )
)
def test_values_of_a_wider_type(tmp_path_factory: pytest.TempPathFactory, mode: Mode, values: list[int | None]) -> None:
    """The old column has every value that it can hold. Together, the two columns have each value once."""
    lake = Lake(tmp_path_factory.mktemp("lake") / "warehouse")
    lake.use(TableRules(modes={"*": mode}))
    old = lake.announce(schema_of({"id": "int64", "n": "int16"}))
    lake.apply(0, [change("c", {"id": 0}, {"n": 1}, pos=1, schema=old)])
    new = lake.announce(schema_of({"id": "int64", "n": "int64"}))
    changes = [
        change("u", {"id": number % 2}, {"n": value}, pos=number + 2, full=bool(number % 3), schema=new)
        for number, value in enumerate(values)
    ]
    lake.apply(1, changes)
    last = {0: 1} | {number % 2: value for number, value in enumerate(values)}
    found = {row["id"]: (row["n"], row["n__v2"]) for row in _present(lake, mode)}
    narrow = {id: value is None or -(2**15) <= value < 2**15 for id, value in last.items()}
    assert {id: (value, None) if narrow[id] else (None, value) for id, value in last.items()} == found


def _present(lake: Lake, mode: Mode) -> list[dict[str, Any]]:
    rows = DeltaTable(lake.path()).to_pyarrow_table().to_pylist()
    return [row for row in rows if mode is not Mode.HISTORY or row["_cdc_current"]]


def test_any_name_and_many_columns(lake: Lake) -> None:
    """Columns with any name, including key columns, and hundreds of columns are created, added, written and patched."""
    many = {f"c{n}": "int32" for n in range(300)}
    one = lake.announce(schema_of({"k y": "string", "x": "string"}, ("k y",)))
    lake.apply(0, [change("c", {"k y": "1"}, {"x": "first"}, pos=1, schema=one)])
    two = lake.announce(schema_of({"k y": "string"} | dict.fromkeys(ODD, "string") | many, ("k y",)))
    values = {name: f"{n}" for n, name in enumerate(ODD)}
    lake.apply(1, [change("c", {"k y": "2"}, values | {"c299": 9}, pos=2, schema=two)])
    lake.apply(2, [change("u", {"k y": "2"}, {"": "patched", "c0": 1}, pos=3, full=False, schema=two)])
    assert [] == lake.quarantine()
    first, second = lake.rows()
    written = {"k~20~y", "a~20~b", "~~", "~5f~cdc_pos", "X__v2", "it's", "n~3b~", "~60~", "~a~"}
    assert written <= second.keys()
    assert (301 + len(ODD), "first", None) == (len(first), first["x"], first["c299"])
    assert ("patched", "3", "4", 1, 9) == tuple(second[name] for name in ("~~", "x", "X__v2", "c0", "c299"))


def test_a_change_that_the_policy_forbids(lake: Lake) -> None:
    """A forbidden change stops the table or leaves it unchanged, and so does a truncate of one scope."""
    lake.use(TableRules(policies=DEFAULTS | {ShapeChange.ADD: Policy.FAIL, ShapeChange.WIDEN: Policy.IGNORE}))
    one = lake.announce(schema_of({"id": "int64", "n": "int32"}))
    lake.apply(0, [change("c", {"id": 1}, {"n": 1}, pos=1, schema=one)])
    two = lake.announce(schema_of({"id": "int64", "n": "int64"}))
    lake.apply(
        1,
        [
            change("u", {"id": 1}, {"n": 2}, pos=2, schema=two),
            change("u", {"id": 1}, {"n": 2**40}, pos=3, schema=two),
            change("c", {"id": 2}, {"n": 2}, pos=4, schema=two, scope=OTHER_SCOPE),
            change("t", None, pos=5),
            change("c", {"id": 3}, {"n": 3}, pos=6, schema=two),
        ],
    )
    three = lake.announce(schema_of({"id": "int64", "n": "int64", "x": "string"}))
    lake.apply(2, [change("u", {"id": 1}, {"n": 9, "x": ""}, pos=7, schema=three)])
    assert [{"id": 1, "n": 2}, {"id": 2, "n": 2}] == lake.rows()
    assert ["VALUE_INVALID"] == [reason for reason, _, _ in lake.quarantine()]
    assert [("TRUNCATE_SCOPES", 3), ("TRUNCATE_SCOPES", 4), ("TRUNCATE_SCOPES", 0)] == lake.parked()
    other = [schema_of({"id": "int64", "n": "int32", name: "string"}, table="other") for name in ("x", "y")]
    for batch, schema in enumerate(other, 3):
        lake.announce(schema)
        lake.apply(batch, [change("c", {"id": batch}, {"n": 1}, pos=batch, table="other", schema=schema)])
    assert (("SCHEMA_REFUSED", 0), 1) == (lake.parked()[-1], len(lake.rows("shop_sales.other")))
