"""Canal: messages with SQL text in place of rows (formats/canal.md section 9)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translator.dialects._canal import of_type, other, refused, row
from translator.dialects.canal.decode import STATEMENTS
from translator.envelope import Ddl
from translator.message import TableName


@pytest.mark.parametrize("type_", sorted(STATEMENTS))
@pytest.mark.parametrize("is_ddl", [True, False, None])
def test_statements_are_schema_changes(type_: str, is_ddl: bool | None) -> None:
    """SQL text is carried verbatim, never parsed into rows, whatever isDdl says (section 3.2)."""
    sql = "/* x */ ALTER TABLE orders ADD c INT"
    change = other(of_type(type_, sql=sql, isDdl=is_ddl, mysqlType=None, pkNames=None))
    assert Ddl(type_, sql, None, False) == change.ddl
    assert ("schema", "shop", TableName("shop", None, "orders")) == (change.kind, change.db, change.table)
    assert (1700000000000000, 1700000000123000, "3") == (change.ts_commit_us, change.ts_capture_us, change.pos_native)


def test_a_statement_without_a_table() -> None:
    """CREATE DATABASE and what canal could not parse name no table (section 9)."""
    change = other(of_type("QUERY", sql="create database x", database="", table=""))
    assert (None, None) == (change.db, change.table)


@pytest.mark.parametrize(
    ("code", "members"),
    [
        ("MISSING_FIELD", {"sql": ""}),
        ("MISSING_FIELD", {"sql": None}),
        ("UNSUPPORTED_SHAPE", {"data": [{"id": "1"}]}),
        ("UNSUPPORTED_SHAPE", {"old": [{"id": "1"}]}),
    ],
)
def test_a_statement_has_text_and_no_rows(code: str, members: dict[str, Any]) -> None:
    """A statement without text says nothing, and one with rows says two things."""
    assert code == refused({**of_type("ALTER", sql="ALTER TABLE t ADD c INT"), **members}).code


@pytest.mark.parametrize("type_", ["INSERT", "UPDATE", "DELETE"])
def test_statement_format_is_refused(type_: str) -> None:
    """binlog_format STATEMENT gives SQL in place of rows; there is no row to translate."""
    error = refused(of_type(type_, sql="delete from orders"))
    assert "UNSUPPORTED_SHAPE" == error.code
    assert "binlog_format" in error.reason
    assert "delete from" not in error.reason


@pytest.mark.parametrize(
    "sql",
    [
        "TRUNCATE TABLE orders",
        "truncate orders;",
        "truncate table `shop`.`orders`",
        "/* by hand */ TRUNCATE TABLE shop.orders -- all of it",
    ],
)
@pytest.mark.parametrize(("type_", "profile"), [("TRUNCATE", "oss"), ("DDL", "dts")])
def test_a_truncate_of_the_named_table_empties_it(sql: str, type_: str, profile: str) -> None:
    """One statement, one table, and the table of the message: op t."""
    change = row(of_type(type_, sql=sql, isDdl=True), profile=profile)
    assert ("t", TableName("shop", None, "orders"), None, None) == (
        change.op,
        change.table,
        change.before,
        change.after,
    )
    assert (1700000000000000, "3") == (change.ts_commit_us, change.pos_native)


@pytest.mark.parametrize(
    "sql",
    [
        "TRUNCATE TABLE other",
        "TRUNCATE TABLE other.orders",
        "TRUNCATE TABLE orders, items",
        "TRUNCATE TABLE orders; DROP TABLE items",
        "TRUNCATE TABLE /*! items, */ orders",
        "ALTER TABLE orders TRUNCATE PARTITION p0",
        "TRUNCATE TABLE",
        "TRUNCATE TABLE a.shop.orders",
        "TRUNCATE TABLE 'orders",
        "TRUNCATE TABLE orders.",
    ],
)
def test_a_truncate_that_is_anything_more_stays_text(sql: str) -> None:
    """What does not agree with the message to the letter empties no table."""
    assert Ddl("TRUNCATE", sql) == other(of_type("TRUNCATE", sql=sql)).ddl
