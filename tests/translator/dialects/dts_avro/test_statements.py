"""DDL and other records without rows: statements, transactions and progress (§3 and 11)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import Ddl, Tx
from tests.translator.dialects.dts_avro.composer import compose
from tests.translator.dialects.dts_avro.messages import (
    MYSQL,
    ORACLE,
    POSTGRESQL,
    SQL_SERVER,
    decode,
    other_of,
    refused,
    row_of,
)
from translator.dialects.dts_avro.decode import TRANSACTIONS
from translator.message import Changes, OtherChange, Skip, TableName

ORDERS = TableName("shop", None, "orders")


def ddl(sql: str, name: str | None = "shop", source: tuple[str, str] = MYSQL, **given: Any) -> bytes:
    """Return a DDL record like the published one, with the text in the after image and the database as objectName."""
    return compose("DDL", objectName=name, source=source, afterImages=sql, **given)


@pytest.mark.requirement("dts_avro.map.1")
@pytest.mark.parametrize(
    ("db", "table", "name", "tables"),
    [
        ("shop", ORDERS, "shop", ["shop.orders"]),
        ("shop", ORDERS, "shop.orders", ["shop.orders"]),
        (None, None, None, ["orders"]),
    ],
)
@pytest.mark.parametrize("image", ["afterImages", "beforeImages"])
def test_statements(db: str | None, table: TableName | None, name: str | None, tables: list[str], image: str) -> None:
    """DDL is plain text from either image, and objectName provides the place."""
    change = other_of(compose("DDL", objectName=name, **{image: "drop table orders"}))
    assert ("schema", Ddl("DDL", "drop table orders", tables, True)) == (change.kind, change.ddl)
    assert ["TABLE_DROPPED"] == change.notes
    assert (db, table) == (change.db, change.table)
    assert (1_697_526_120_000_000, 1_697_526_120_531_000, "72469@78") == (
        change.ts_commit_us,
        change.ts_capture_us,
        change.pos_native,
    )


def test_the_transaction_of_a_statement() -> None:
    """The transaction is in the tag GTID, as in the published record."""
    assert Tx("0e2b1c42:7") == other_of(ddl("drop table t", tags={"GTID": "0e2b1c42:7"})).tx


@pytest.mark.parametrize(
    ("sql", "source", "tables"),
    [
        ("ALTER TABLE `orders` ADD COLUMN note text", MYSQL, ["shop.orders"]),
        ("ALTER TABLE crm.orders ADD COLUMN note text", MYSQL, ["crm.orders"]),
        ("CREATE DATABASE shop", MYSQL, []),
        ("ALTER TABLE orders ADD (note varchar2(10))", ORACLE, ["ORDERS"]),
        ('ALTER TABLE "Orders" ADD (note varchar2(10))', ORACLE, ["Orders"]),
        ("ALTER TABLE Public.Orders ADD COLUMN note text", POSTGRESQL, ["public.orders"]),
        ("ALTER TABLE orders ADD note varchar(10)", SQL_SERVER, ["orders"]),
    ],
)
def test_affected_tables(sql: str, source: tuple[str, str], tables: list[str]) -> None:
    """Each source has its own grammar and rule for unquoted names. A database missing in MySQL's text is known."""
    assert Ddl("DDL", sql, tables, True) == other_of(ddl(sql, source=source)).ddl


@pytest.mark.parametrize(
    ("sql", "source"),
    [
        ("GRANT ALL ON shop.* TO 'x'@'%'", MYSQL),
        ("ALTER TABLE orders ADD COLUMN note text", ("DB2", "11")),
        ("ALTER TABLE a.b.c.d ADD COLUMN note text", POSTGRESQL),
    ],
)
def test_what_is_not_understood_is_text(sql: str, source: tuple[str, str]) -> None:
    """Tables are listed only if the whole text was understood in a known grammar."""
    change = other_of(ddl(sql, source=source))
    assert (Ddl("DDL", sql, None, False), None) == (change.ddl, change.notes)


def test_a_statement_of_another_table_is_noted() -> None:
    """The event has what was sent. The task can map names, so the table of the record is also affected."""
    notes = ["TABLE_DROPPED", "SQL_NAMES_ANOTHER_TABLE"]
    expected = [(TableName("shop", None, "items"), notes), (ORDERS, notes)]
    assert expected == noted(ddl("DROP TABLE items", "shop.orders"))


def noted(value: bytes, **options: Any) -> list[tuple[TableName | str | None, list[str] | None]]:
    """Return the table, or else the database, and the notes of each event."""
    outcome = decode(value, **options)
    assert isinstance(outcome, Changes)
    assert all(isinstance(change, OtherChange) for change in outcome.changes)
    return [(change.table or change.db, change.notes) for change in outcome.changes if isinstance(change, OtherChange)]


GONE, DROPPED = ["STATEMENT_NOT_APPLIED"], ["TABLE_DROPPED"]


@pytest.mark.parametrize(
    ("sql", "name", "source", "expected"),
    [
        ("ALTER TABLE orders DROP PARTITION p0", "shop", MYSQL, [(ORDERS, GONE)]),
        ("ALTER TABLE orders DROP PARTITION p0", "SHOP", ORACLE, [(TableName("SHOP", None, "ORDERS"), GONE)]),
        ("RENAME TABLE a TO b", "shop", MYSQL, [(TableName("shop", None, n), GONE) for n in "ab"]),
        ("DROP DATABASE crm", "shop", MYSQL, [("crm", DROPPED)]),
        ("DROP SCHEMA sales CASCADE", "db", POSTGRESQL, [("db", DROPPED)]),
        ("DROP USER crm CASCADE", "SHOP", ORACLE, [("CRM", DROPPED)]),
        ("DROP TABLE sales.Orders", "db", POSTGRESQL, [(TableName("db", "sales", "orders"), DROPPED)]),
        ("DROP TABLE orders", "db", POSTGRESQL, [(TableName("db", "public", "orders"), DROPPED)]),
        ("DROP TABLE [orders]", "db", SQL_SERVER, [(TableName("db", "dbo", "orders"), DROPPED)]),
        ("DROP TABLE #orders", "db", SQL_SERVER, [("db", None)]),
        ("DROP TABLE orders", None, MYSQL, [(None, DROPPED)]),
        ("DROP TABLE orders", None, POSTGRESQL, [(None, DROPPED)]),
        ("ALTER TABLE orders DROP PARTITION p0", "db.orders", ("DB2", "11"), [(TableName("db", None, "orders"), GONE)]),
    ],
)
def test_one_event_for_each_table_whose_rows_change(
    sql: str, name: str | None, source: tuple[str, str], expected: list[Any]
) -> None:
    """The classification is that of canal's messages, with each source's names."""
    assert expected == noted(ddl(sql, name, source))


@pytest.mark.parametrize(
    ("sql", "source", "after", "notes"),
    [
        ("ADD x varchar(10) NOT NULL DEFAULT 'dd'", MYSQL, {"x": "dd"}, ["DEFAULT_FILLED=x:string"]),
        ("ADD x int NOT NULL", MYSQL, {"x": 0}, ["DEFAULT_FILLED=x:int64"]),
        ("ADD x decimal(9,2) DEFAULT 1", MYSQL, {"x": "1.00"}, ["DEFAULT_FILLED=x:decimal(9,2)"]),
        ("ADD (x number(5) DEFAULT 3)", ORACLE, {"X": "3"}, ["DEFAULT_FILLED=X:decimal(5,0)"]),
        ("ADD x varchar2(9) DEFAULT ''", ORACLE, None, None),
        ("ADD x date DEFAULT sysdate", ORACLE, None, ["COLUMN_REWRITTEN=X"]),
        ("MODIFY (x varchar2(20))", ORACLE, None, None),
        ("ADD COLUMN x boolean DEFAULT true", POSTGRESQL, {"x": True}, ["DEFAULT_FILLED=x:boolean"]),
        ("ADD COLUMN x int DEFAULT now()", POSTGRESQL, None, ["COLUMN_REWRITTEN=x"]),
        ("ALTER COLUMN x TYPE bigint", POSTGRESQL, None, ["COLUMN_RETYPED=x:bigint"]),
        ("ALTER COLUMN x TYPE int USING x::int", POSTGRESQL, None, ["COLUMN_REWRITTEN=x"]),
        ("ADD x int NOT NULL DEFAULT ((7))", SQL_SERVER, {"x": 7}, ["DEFAULT_FILLED=x:int32"]),
        ("ADD x int DEFAULT 7", SQL_SERVER, None, None),
        ("ADD x int DEFAULT 7", ("DB2", "11"), None, ["COLUMN_REWRITTEN=x"]),
        ("ADD p int REFERENCES parent (id) ON DELETE CASCADE", ORACLE, None, None),
        ("ADD FOREIGN KEY (p) REFERENCES q (id) ON DELETE CASCADE", MYSQL, None, ["CASCADE_NOT_LOGGED"]),
    ],
)
def test_values_that_an_alter_changes(sql: str, source: tuple[str, str], after: Any, notes: list[str] | None) -> None:
    """Each source has its own rules: SQL Server fills only on demand, and Oracle's empty text is NULL."""
    name = "PUBLIC.ORDERS" if source == ORACLE else "db.public.orders"
    change = other_of(ddl(f"ALTER TABLE public.orders {sql}", name, source))
    assert (after, notes) == (change.after, change.notes)


@pytest.mark.requirement("dts_avro.map.1")
def test_a_command_is_a_statement() -> None:
    """MongoDB's command is not SQL, and its text is passed on."""
    change = other_of(compose("COMMAND", source=("MongoDB", "6.0"), objectName="shop", afterImages='{"drop": "t"}'))
    assert ("schema", "shop", Ddl("COMMAND", '{"drop": "t"}')) == (change.kind, change.db, change.ddl)


# -- truncate


@pytest.mark.requirement("dts_avro.map.1")
@pytest.mark.parametrize(
    ("table", "sql", "name", "source"),
    [
        (ORDERS, "TRUNCATE TABLE orders", "shop", MYSQL),
        (ORDERS, "truncate `shop`.`orders`;", "shop", MYSQL),
        (ORDERS, "TRUNCATE TABLE orders", "shop.orders", MYSQL),
        (ORDERS, "TRUNCATE TABLE shop.orders", "shop.orders", ("DRDS", "5.7")),
        (TableName("SHOP", None, "ORDERS"), "truncate table orders", "SHOP.ORDERS", ORACLE),
        (TableName("SHOP", None, "orders"), 'truncate table "orders"', "SHOP.orders", ORACLE),
        (TableName("db", "public", "orders"), "TRUNCATE Orders", "db.public.orders", POSTGRESQL),
        (TableName("db", "public", "orders"), "TRUNCATE public.orders", "db.public.orders", POSTGRESQL),
        (TableName("db", "dbo", "orders"), "TRUNCATE TABLE dbo.orders", "db.dbo.orders", SQL_SERVER),
    ],
)
def test_a_truncate_of_the_named_table_empties_it(
    table: TableName, sql: str, name: str, source: tuple[str, str]
) -> None:
    """One statement for exactly the record's table, or for MySQL in its database, becomes op t."""
    change = row_of(ddl(sql, name, source))
    assert ("t", table, None, None) == (change.op, change.table, change.before, change.after)
    assert (1_697_526_120_000_000, "72469@78", "v3") == (change.ts_commit_us, change.pos_native, change.writer.variant)


def test_a_truncate_of_a_part_empties_no_table() -> None:
    """With `logical_names`, the event's table has other parts whose rows still exist."""
    change = other_of(ddl("TRUNCATE TABLE orders", "shop.orders"), logical_names=True)
    assert (["STATEMENT_NOT_APPLIED"], ORDERS) == (change.notes, change.table)


def test_a_dropped_part_takes_rows_of_its_table() -> None:
    """The event's table has other parts, so it is not dropped. The event has the physical name if it is known."""
    dropped = ddl("DROP TABLE orders_7", "shop_2.orders_7", tags={"l_db_name": "shop", "l_tb_name": "orders"})
    found = noted(dropped, logical_names=True)
    assert (ORDERS, ["STATEMENT_NOT_APPLIED"]) in found
    assert all("TABLE_DROPPED" not in (notes or ()) for _, notes in found)


@pytest.mark.parametrize(
    ("sql", "name", "source"),
    [
        ("TRUNCATE TABLE orders, items", "shop", MYSQL),
        ("TRUNCATE TABLE crm.orders", "shop", MYSQL),
        ("TRUNCATE TABLE orders", None, MYSQL),
        ("TRUNCATE TABLE items", "shop.orders", MYSQL),
        ("TRUNCATE TABLE Orders", "shop.orders", MYSQL),
        ('TRUNCATE TABLE "orders"', "SHOP.ORDERS", ORACLE),
        ("TRUNCATE TABLE orders", "SHOP", ORACLE),
        ("TRUNCATE orders", "db", POSTGRESQL),
    ],
)
def test_a_truncate_that_does_not_agree_stays_text(sql: str, name: str | None, source: tuple[str, str]) -> None:
    """Rows were deleted without an event. A note that every consumer checks reports that."""
    found = noted(ddl(sql, name, source))
    assert found
    assert all("STATEMENT_NOT_APPLIED" in (notes or ()) for _, notes in found)


@pytest.mark.requirement("dts_avro.map.1")
@pytest.mark.parametrize(
    ("sql", "source"),
    [
        ("TRUNCATE orders CASCADE", POSTGRESQL),
        ("TRUNCATE ONLY orders", POSTGRESQL),
        ("truncate table orders restart identity", POSTGRESQL),
        ("TRUNCATE TABLE orders PARTITION (p0)", POSTGRESQL),
        ("truncate table orders drop storage", ORACLE),
        ("ALTER TABLE orders TRUNCATE PARTITION p0", MYSQL),
        ("/*!50000 TRUNCATE TABLE orders */", MYSQL),
        ("TRUNCATE TABLE orders; DROP TABLE items", MYSQL),
        ("TRUNCATE TABLE orders IMMEDIATE", ("DB2", "11")),
    ],
)
def test_a_truncate_that_is_anything_more_stays_text(sql: str, source: tuple[str, str]) -> None:
    """A statement not fully understood empties no table, but a note says that rows may have been deleted."""
    outcome = decode(ddl(sql, "shop.orders" if source == MYSQL else "db.public.orders", source))
    assert isinstance(outcome, Changes)
    (change, *_) = outcome.changes
    assert isinstance(change, OtherChange)
    assert (Ddl("DDL", sql), ["STATEMENT_NOT_APPLIED"]) == (change.ddl, change.notes)


@pytest.mark.parametrize("sql", ["CREATE TABLE orders (a int)", "ALTER TABLE orders ADD truncated int", "GRANT x TO y"])
def test_what_is_no_truncate_is_not_noted(sql: str) -> None:
    """A longer word with the same prefix is another word."""
    assert other_of(ddl(sql, "db.public.orders", POSTGRESQL)).notes is None


@given(st.text(min_size=1, max_size=40), st.sampled_from([MYSQL, ORACLE, POSTGRESQL, SQL_SERVER]))
def test_no_text_refuses_a_statement(sql: str, source: tuple[str, str]) -> None:
    """Any text gives at least an event."""
    outcome = decode(ddl(sql, source=source))
    assert isinstance(outcome, Changes)
    assert outcome.changes


# -- marks


@pytest.mark.requirement("dts_avro.map.2")
@pytest.mark.parametrize("operation", TRANSACTIONS)
def test_transaction_marks_are_an_option(operation: str) -> None:
    """They are skipped and counted unless `transactions` is set. Then each is a tx event whose note names the mark."""
    value = compose(operation, objectName=None, tags={"GTID": "0e2b1c42:7"})
    assert Skip("transaction_mark") == decode(value)
    change = other_of(value, transactions=True)
    assert ("tx", [f"TRANSACTION_{operation}"], Tx("0e2b1c42:7")) == (change.kind, change.notes, change.tx)
    assert (None, None, "72469@78", 1_697_526_120_000_000) == (
        change.db,
        change.table,
        change.pos_native,
        change.ts_commit_us,
    )


@pytest.mark.requirement("dts_avro.map.2")
@pytest.mark.parametrize("operation", ["HEARTBEAT", "CHECKPOINT"])
@pytest.mark.parametrize(
    ("expected", "given_"),
    [
        (1_697_526_120_000_000, {"schema": "v2"}),
        (1_697_526_180_000_000, {"bornTimestamp": 1_697_526_180}),
        (1_697_526_180_123_000, {"bornTimestamp": 1_697_526_180_123}),
        (1_697_526_120_000_000, {"bornTimestamp": 0}),
        (1_697_526_120_000_000, {"bornTimestamp": 7}),
        (None, {"sourceTimestamp": 0, "bornTimestamp": 0}),
    ],
)
def test_progress(operation: str, expected: int | None, given_: dict[str, Any]) -> None:
    """Heartbeats and checkpoints are watermarks with the later of two times, as an idle source moves only the last."""
    change = other_of(compose(operation, objectName=None, **given_))
    assert ("watermark", expected, "72469@78", None) == (
        change.kind,
        change.ts_commit_us,
        change.pos_native,
        change.notes,
    )


def test_a_mark_names_its_place_where_it_has_one() -> None:
    """objectName is null in every sample. If it is set, the event has it, and an invalid one is rejected."""
    assert ("shop", ORDERS) == (
        (change := other_of(compose("HEARTBEAT", objectName="shop.orders"))).db,
        change.table,
    )
    assert ("INVALID_FIELD", "$.objectName") == refused(compose("HEARTBEAT", objectName="a..b"))


@pytest.mark.requirement("dts_avro.map.2")
@pytest.mark.parametrize("image", [None, "text", []])
@pytest.mark.parametrize("fields", [None, "text", []])
def test_images_and_fields_of_marks_are_read_and_left(image: Any, fields: Any) -> None:
    """The vendor's code reads text and lists there and discards them (§3)."""
    given_ = {"fields": fields, "beforeImages": image, "afterImages": image}
    assert "watermark" == other_of(compose("CHECKPOINT", **given_)).kind
    assert Skip("noop") == decode(compose("NOOP", **given_))
