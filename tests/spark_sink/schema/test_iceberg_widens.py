"""The columns that Iceberg can change in place."""

from __future__ import annotations

import pytest

from spark_sink.schema.column_types import iceberg_widens

WIDENS = {
    ("int", "bigint"): True,
    ("bigint", "int"): False,
    ("float", "double"): True,
    ("double", "float"): False,
    ("int", "double"): False,
    ("decimal(9,2)", "decimal(12,2)"): True,
    ("decimal(12,2)", "decimal(9,2)"): False,
    ("decimal(9,2)", "decimal(9,2)"): False,
    ("decimal(9,2)", "decimal(12,3)"): False,
}


@pytest.mark.parametrize(("sql", "wanted"), WIDENS)
def test_a_column_changes_in_place(sql: str, wanted: str) -> None:
    assert iceberg_widens(sql, wanted) is WIDENS[sql, wanted]
