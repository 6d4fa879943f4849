"""Table names: where a source table is written."""

from __future__ import annotations

import pytest

from spark_sink.names import TableId, TablePattern

DEFAULT = TablePattern.parse("{source}_{db}_{schema}.{table}")


@pytest.mark.parametrize(
    ("table", "target"),
    [
        (TableId("s", "db", None, "t"), "s_db.t"),
        (TableId("s", "db", "dbo", "t"), "s_db_dbo.t"),
        (TableId("s", None, None, "t"), "s.t"),
        (TableId("s", "db", None, "订单"), "s_db.订单"),
        (TableId("s", "db", None, "../../etc"), "s_db.~2e~~2e~~2f~~2e~~2e~~2f~etc"),
        (TableId("s", "a.b", None, "c~d e"), "s_a~2e~b.c~7e~d~20~e"),
    ],
)
def test_targets(table: TableId, target: str) -> None:
    """An absent part goes with the text before it; a name cannot leave its folder or look like another."""
    assert target == DEFAULT.target(table)


@pytest.mark.parametrize(
    "text",
    [
        "{source}",
        "{table}{tabel}",
        "{table}.parquet",
        "../{table}",
        "a/{table}",
        "_cdc.{table}",
        "a..{table}",
        "{table!r}",
    ],
)
def test_patterns_that_are_none(text: str) -> None:
    """A pattern names known parts, and cannot point out of the warehouse or at our own tables."""
    with pytest.raises(ValueError, match=r"part|pattern|text"):
        TablePattern.parse(text)
