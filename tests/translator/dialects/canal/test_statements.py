"""Canal: messages with SQL text in place of rows (§9)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import Ddl, Tx
from tests.translator.dialects.canal.messages import decode, of_type, other, refused, row, rows
from translator.dialects.canal.statement import STATEMENTS
from translator.message import Changes, TableName

OF_CLOUD = ("DDL", "INIT_DDL")


@pytest.mark.parametrize("type_", OF_CLOUD)
@pytest.mark.parametrize("sql", ["ALTER TABLE orders ADD c INT", "TRUNCATE TABLE orders", "TRUNCATE TABLE orders, b"])
def test_a_statement_of_another_writer(type_: str, sql: str) -> None:
    """canal has no such type (§6.5): the statement is read all the same, and the conflict noted."""
    (change,) = decode(of_type(type_, sql=sql)).changes  # type: ignore[union-attr]
    assert "VARIANT_CONFLICT" in (change.notes or ())
    (change,) = decode(of_type(type_, sql=sql), profile="dts").changes  # type: ignore[union-attr]
    assert "VARIANT_CONFLICT" not in (change.notes or ())


@pytest.mark.requirement("canal.do_not.2", "canal.produce.5")
@pytest.mark.parametrize("type_", sorted(STATEMENTS))
@pytest.mark.parametrize("is_ddl", [True, False, None])
def test_statements_are_schema_changes(type_: str, is_ddl: bool | None) -> None:
    """SQL text is carried verbatim, never as rows, whatever isDdl says (§3.2); canal#1408: it may be null."""
    sql = "/* x */ ALTER TABLE orders ADD c INT"
    body = of_type(type_, sql=sql, isDdl=is_ddl, mysqlType=None, pkNames=None)
    change = other(body, profile="dts" if type_ in OF_CLOUD else "oss")
    assert Ddl(type_, sql, ["shop.orders"], True) == change.ddl
    assert (["STATEMENT_NOT_APPLIED"] if type_ == "TRUNCATE" else None) == change.notes
    assert ("schema", "shop", TableName("shop", None, "orders")) == (change.kind, change.db, change.table)
    assert (1700000000000000, 1700000000123000, "3") == (change.ts_commit_us, change.ts_capture_us, change.pos_native)


def test_a_statement_without_a_table() -> None:
    """CREATE DATABASE and what canal could not parse name no table (§9)."""
    change = other(of_type("QUERY", sql="create database x", database="", table=""))
    assert (None, None) == (change.db, change.table)
    assert Ddl("QUERY", "create database x", [], True) == change.ddl


@pytest.mark.parametrize(
    ("type_", "table", "sql", "tables"),
    [
        ("ERASE", "a", "DROP TABLE `a`, `c`, x.d", ["a", "c", "x.d"]),
        ("ERASE", "a", "DROP TABLE `a`", ["shop.a"]),
        ("RENAME", "b", "RENAME TABLE a TO b, x.c TO x.d", ["a", "b", "x.c", "x.d"]),
        ("RENAME", "b", "ALTER TABLE shop.a RENAME TO b", ["shop.a", "b"]),
        ("CREATE", "a", "CREATE TABLE a LIKE b", ["shop.a"]),
        ("CINDEX", "a", "CREATE INDEX i ON a (x)", ["shop.a"]),
        ("CINDEX", "a", "ALTER TABLE a ADD INDEX i (x), ADD COLUMN y INT", ["shop.a"]),
        ("DINDEX", "a", "DROP INDEX i ON shop.a", ["shop.a"]),
        ("ALTER", "t", "ALTER TABLE other.t ADD c INT", ["other.t"]),
        ("CREATE", "v", "CREATE VIEW v AS SELECT * FROM orders", []),
        ("QUERY", "", "CREATE DATABASE shop", []),
        ("QUERY", "", "DROP DATABASE shop", []),
    ],
)
def test_affected_tables(type_: str, table: str, sql: str, tables: list[str]) -> None:
    """canal names the first table alone. A database that the text lacks is known where the one table is the message's;
    of several tables it is lost (§9)."""
    database = "other" if sql.startswith("ALTER TABLE other") else "shop"
    change = other(of_type(type_, sql=sql, table=table, database=database))
    assert Ddl(type_, sql, tables, True) == change.ddl
    assert change.notes is None


@pytest.mark.parametrize(
    ("type_", "sql", "tables"),
    [
        ("TRUNCATE", "TRUNCATE TABLE orders, b", ["orders", "b"]),
        ("DDL", "TRUNCATE TABLE orders, b", ["orders", "b"]),
        ("QUERY", "TRUNCATE TABLE orders", ["shop.orders"]),
    ],
)
def test_truncates_without_an_event_t(type_: str, sql: str, tables: list[str]) -> None:
    """Whatever the type, a truncate that empties no table by an event says that it changed rows."""
    change = other(of_type(type_, sql=sql), profile="dts" if type_ in OF_CLOUD else "oss")
    assert (Ddl(type_, sql, tables, True), ["STATEMENT_NOT_APPLIED"]) == (change.ddl, change.notes)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE orders DROP PARTITION p0",
        "ALTER TABLE orders ADD c INT; ALTER TABLE orders ADD d INT",
        "CREATE TABLE orders (a INT) /*!50100 PARTITION BY HASH (a) */",
        "GRANT ALL ON shop.* TO 'x'@'%'",
        "ALTER TABLE a.b.c ADD d INT",
        "ALTER TABLE orders ADD c INT " + " " * 20_000,
    ],
)
def test_what_no_parser_understands_is_text(sql: str) -> None:
    """Tables are named only where the whole text was understood (§9)."""
    assert Ddl("ALTER", sql, None, False) == other(of_type("ALTER", sql=sql)).ddl


@pytest.mark.parametrize("sql", ["CREATE TABLE xj_.orders (a INT)", "CREATE TABLE `order` (a INT)", "DROP TABLE a, b"])
def test_samples_themselves_sql_and_table_disagree(sql: str) -> None:
    """Section 12, "samples themselves": Flink's have such messages. The event has what was sent, and a note."""
    change = other(of_type("CREATE", sql=sql))
    assert (TableName("shop", None, "orders"), ["SQL_NAMES_ANOTHER_TABLE"]) == (change.table, change.notes)


@pytest.mark.requirement("canal.produce.5")
def test_rows_query_echo() -> None:
    """The text beside row events is of type QUERY and without a table (§2); its rows come as rows."""
    sql = "UPDATE orders SET n = 1"
    change = other(of_type("QUERY", sql=sql, database="", table=""))
    assert ("schema", Ddl("QUERY", sql, ["orders"], True), None) == (change.kind, change.ddl, change.notes)


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


DML = {"INSERT": "insert into orders values (1)", "UPDATE": "update orders set n = 1", "DELETE": "delete from orders"}


@pytest.mark.requirement("canal.produce.5")
@pytest.mark.parametrize("type_", DML)
@pytest.mark.parametrize(("data", "old"), [(None, None), ([], None), (None, [{}])])
@pytest.mark.parametrize("is_ddl", [False, None])
def test_a_statement_in_place_of_rows(type_: str, data: Any, old: Any, is_ddl: bool | None) -> None:
    """binlog_format STATEMENT (§6.5): rows changed, and none can be applied; the event says so."""
    sql = DML[type_]
    change = other(of_type(type_, data, old, sql=sql, isDdl=is_ddl, mysqlType=None, pkNames=None))
    assert ("schema", TableName("shop", None, "orders")) == (change.kind, change.table)
    assert Ddl(type_, sql, ["shop.orders"], True) == change.ddl
    assert ["STATEMENT_NOT_APPLIED"] == change.notes
    assert (1700000000000000, "3") == (change.ts_commit_us, change.pos_native)


def test_a_statement_of_several_tables_in_place_of_rows() -> None:
    """Which of them it changed is not known; the note stands whatever was understood."""
    sql = "update orders join items on orders.id = items.o set n = 1"
    change = other(of_type("UPDATE", sql=sql))
    assert (Ddl("UPDATE", sql), ["STATEMENT_NOT_APPLIED"]) == (change.ddl, change.notes)
    disagrees = other(of_type("DELETE", sql="delete from items"))
    assert ["STATEMENT_NOT_APPLIED", "SQL_NAMES_ANOTHER_TABLE"] == disagrees.notes


@pytest.mark.requirement("canal.do_not.2", "canal.reject.2")
@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("MISSING_FIELD", of_type("UPDATE", sql="")),
        ("MISSING_FIELD", of_type("DELETE", sql=None)),
        ("INVALID_FIELD", of_type("UPDATE", sql="update orders set n = 1", isDdl=True)),
        ("UNSUPPORTED_SHAPE", of_type("INIT", sql="insert into orders values (1)")),
    ],
)
def test_neither_rows_nor_a_statement(code: str, body: Any) -> None:
    """Section 15: DML without image and text is rejected, and so is isDdl true on it."""
    assert code == refused(body, profile="dts").code


def test_sql_beside_rows_changes_nothing() -> None:
    """A text beside rows is a comment: the rows count."""
    assert 1 == len(rows(of_type("DELETE", [{"id": "1"}], sql="delete from orders")))


@pytest.mark.parametrize(("sql", "tx"), [("X'6162',X'',1", Tx("X'6162',X'',1")), ("", None), (None, None)])
def test_the_end_of_an_xa_transaction(sql: str | None, tx: Tx | None) -> None:
    """XACOMMIT: the rows sent at its prepare stand. The text is the xid, or empty (§2)."""
    change = other(of_type("XACOMMIT", sql=sql, database="", table=""))
    assert ("tx", tx, ["XA_COMMITTED"], None) == (change.kind, change.tx, change.notes, change.ddl)


def test_a_rolled_back_xa_transaction_is_for_the_operator() -> None:
    """XAROLLBACK: rows that were sent never came to be. No event undoes them, so that a dead letter tells it."""
    error = refused(of_type("XAROLLBACK", sql="X'6162',X'',1"))
    assert "UNSUPPORTED_SHAPE" == error.code
    assert "never committed" in error.reason


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
        "TRUNCATE TABLE orders PARTITION (p0)",
        "DROP TABLE orders",
        "RENAME TABLE orders TO orders",
    ],
)
def test_a_truncate_that_is_anything_more_stays_text(sql: str) -> None:
    """What does not agree with the message to the letter empties no table."""
    change = other(of_type("TRUNCATE", sql=sql))
    assert change.ddl is not None
    assert ("TRUNCATE", sql) == (change.ddl.type, change.ddl.sql)
    assert "STATEMENT_NOT_APPLIED" in (change.notes or ())


@given(st.text(max_size=40), st.sampled_from([*sorted(STATEMENTS), *DML]))
def test_no_text_refuses_a_statement(sql: str, type_: str) -> None:
    """Whatever the text: an event, or a truncate of the one table."""
    outcome = decode(of_type(type_, sql=sql or "?"), profile="dts")
    assert isinstance(outcome, Changes)
    assert 1 == len(outcome.changes)
