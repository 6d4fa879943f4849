"""Canal: messages with SQL text instead of rows (§9)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import Ddl, Tx
from tests.translator.dialects.canal.messages import decode, of_type, other, others, refused, row, rows
from tests.translator.dialects.made import made
from translator.dialects.canal.decode import Canal
from translator.dialects.canal.statement import STATEMENTS
from translator.message import Changes, Message, OtherChange, Setup, Skip, TableName

OF_CLOUD = ("DDL", "INIT_DDL")


@pytest.mark.parametrize("type_", OF_CLOUD)
@pytest.mark.parametrize("sql", ["ALTER TABLE orders ADD c INT", "TRUNCATE TABLE orders", "TRUNCATE TABLE orders, b"])
def test_a_statement_of_another_writer(type_: str, sql: str) -> None:
    """canal has no such type (§6.5). The statement is read, with a note about the conflict."""
    for change in decode(of_type(type_, sql=sql)).changes:  # type: ignore[union-attr]
        assert "VARIANT_CONFLICT" in (change.notes or ())
    for change in decode(of_type(type_, sql=sql), profile="dts").changes:  # type: ignore[union-attr]
        assert "VARIANT_CONFLICT" not in (change.notes or ())


@pytest.mark.requirement("canal.do_not.2", "canal.produce.5")
@pytest.mark.parametrize("type_", sorted(STATEMENTS))
@pytest.mark.parametrize("is_ddl", [True, False, None])
def test_statements_are_schema_changes(type_: str, is_ddl: bool | None) -> None:
    """SQL text is kept verbatim and never becomes rows, whatever isDdl says (§3.2). canal#1408: it can be null."""
    sql = "/* x */ ALTER TABLE orders ADD c INT"
    body = of_type(type_, sql=sql, isDdl=is_ddl, mysqlType=None, pkNames=None)
    change = other(body, profile="dts" if type_ in OF_CLOUD else "oss")
    assert Ddl(type_, sql, ["shop.orders"], True) == change.ddl
    assert (["STATEMENT_NOT_APPLIED"] if type_ == "TRUNCATE" else None) == change.notes
    assert ("schema", "shop", TableName("shop", None, "orders")) == (change.kind, change.db, change.table)
    assert (1700000000000000, 1700000000123000, "3") == (change.ts_commit_us, change.ts_capture_us, change.pos_native)


def test_a_statement_without_a_table() -> None:
    """CREATE DATABASE, and statements that canal could not parse, have no table (§9)."""
    change = other(of_type("QUERY", sql="create database x", database="", table=""))
    assert (None, None) == (change.db, change.table)
    assert Ddl("QUERY", "create database x", [], True) == change.ddl


@pytest.mark.parametrize(
    ("type_", "table", "sql", "tables"),
    [
        ("CREATE", "a", "CREATE TABLE a LIKE b", ["shop.a"]),
        ("CINDEX", "a", "CREATE INDEX i ON a (x)", ["shop.a"]),
        ("CINDEX", "a", "ALTER TABLE a ADD INDEX i (x), ADD COLUMN y INT", ["shop.a"]),
        ("DINDEX", "a", "DROP INDEX i ON shop.a", ["shop.a"]),
        ("ALTER", "t", "ALTER TABLE other.t ADD c INT", ["other.t"]),
        ("CREATE", "v", "CREATE VIEW v AS SELECT * FROM orders", []),
        ("QUERY", "", "CREATE DATABASE shop", []),
    ],
)
def test_affected_tables(type_: str, table: str, sql: str, tables: list[str]) -> None:
    """canal names only the first table. A database missing in the text is known if the only table is the message's. For
    several tables it is lost (§9).
    """
    database = "other" if sql.startswith("ALTER TABLE other") else "shop"
    change = other(of_type(type_, sql=sql, table=table, database=database))
    assert Ddl(type_, sql, tables, True) == change.ddl
    assert change.notes is None


GONE, DROPPED = ["STATEMENT_NOT_APPLIED"], ["TABLE_DROPPED"]


@pytest.mark.parametrize(
    ("type_", "table", "sql", "tables", "events"),
    [
        (
            "ERASE",
            "a",
            "DROP TABLE `a`, `c`, x.d",
            ["a", "c", "x.d"],
            {"a": ("shop", DROPPED), "c": ("shop", DROPPED), "d": ("x", DROPPED)},
        ),
        ("ERASE", "a", "DROP TABLE `a`", ["shop.a"], {"a": ("shop", DROPPED)}),
        ("ERASE", "a", "DROP TABLE a EVENTUALLY", None, {"a": ("shop", DROPPED)}),
        ("ERASE", "v", "DROP VIEW v", [], {"v": ("shop", None)}),
        (
            "RENAME",
            "b",
            "RENAME TABLE a TO b, x.c TO x.d",
            ["a", "b", "x.c", "x.d"],
            {"a": ("shop", GONE), "b": ("shop", GONE), "c": ("x", GONE), "d": ("x", GONE)},
        ),
        ("RENAME", "b", "ALTER TABLE shop.a RENAME TO b", ["shop.a", "b"], {"a": ("shop", GONE), "b": ("shop", GONE)}),
        ("RENAME", "b", "rename it", None, {"it": ("shop", GONE), "b": ("shop", GONE)}),
        ("RENAME", "b", "EXCHANGE a, b", None, {"b": ("shop", GONE)}),
        ("QUERY", "", "DROP DATABASE crm", [], {None: ("crm", DROPPED)}),
        ("ALTER", "orders", "ALTER TABLE orders DROP PARTITION p0", None, {"orders": ("shop", GONE)}),
        (
            "ALTER",
            "orders",
            "ALTER TABLE orders EXCHANGE PARTITION p0 WITH TABLE crm.old",
            None,
            {"orders": ("shop", GONE), "old": ("crm", GONE)},
        ),
    ],
)
def test_one_event_for_each_table_whose_rows_change(
    type_: str, table: str, sql: str, tables: list[str] | None, events: dict[str | None, Any]
) -> None:
    """No reader has to parse `ddl.tables`. If the text is not understood, the writer's own type counts."""
    body = of_type(type_, sql=sql, table=table)
    assert events == others(body)
    outcome = decode(body)
    assert isinstance(outcome, Changes)
    for change in outcome.changes:
        assert isinstance(change, OtherChange)
        assert Ddl(type_, sql, tables, tables is not None) == change.ddl


def test_a_statement_without_a_database_concerns_all_of_the_source() -> None:
    """The name alone does not say where the table is."""
    assert {None: (None, GONE)} == others(of_type("QUERY", sql="TRUNCATE orders", database="", table=""))


@pytest.mark.parametrize(
    ("sql", "after", "notes"),
    [
        ("ADD x varchar(10) NOT NULL DEFAULT 'dd'", {"x": "dd"}, ["DEFAULT_FILLED=x:string"]),
        (
            "ADD COLUMN a int unsigned DEFAULT 5, ADD b decimal(9,2) NOT NULL",
            {"a": 5, "b": "0.00"},
            ["DEFAULT_FILLED=a:uint32", "DEFAULT_FILLED=b:decimal(9,2)"],
        ),
        ("ADD e enum('a','b') NOT NULL", {"e": "a"}, ["DEFAULT_FILLED=e:enum"]),
        ("ADD t datetime DEFAULT '2024-02-29'", {"t": "2024-02-29T00:00:00"}, ["DEFAULT_FILLED=t:timestamp"]),
        ("ADD c int", None, None),
        ("ADD c int DEFAULT NULL, ADD INDEX (c)", None, None),
        ("ADD t datetime NOT NULL DEFAULT CURRENT_TIMESTAMP", None, ["COLUMN_REWRITTEN=t"]),
        ("ADD t timestamp NOT NULL DEFAULT '2020-01-01 00:00:00'", None, ["COLUMN_REWRITTEN=t"]),
        ("ADD t date NOT NULL", None, ["COLUMN_REWRITTEN=t"]),
        ("ADD n tinyint DEFAULT 300", None, ["COLUMN_REWRITTEN=n"]),
        ("MODIFY x varchar(1)", None, ["COLUMN_RETYPED=x:varchar(1)"]),
        ("ENGINE=InnoDB, AUTO_INCREMENT = 7, COMMENT 'add x int default 1'", None, None),
    ],
)
def test_values_that_an_alter_changes(sql: str, after: Any, notes: list[str] | None) -> None:
    """A constant default is in the image, in the form that rows have."""
    change = other(of_type("ALTER", sql=f"ALTER TABLE orders {sql}"))
    assert (after, notes) == (change.after, change.notes)


def test_the_default_as_the_source_is_read() -> None:
    """Options apply to values in a statement as in rows."""
    body = of_type("ALTER", sql="ALTER TABLE orders ADD b tinyint(1) DEFAULT 1")
    assert ({"b": True}, ["DEFAULT_FILLED=b:boolean"]) == (
        (change := other(body, tinyint1_as_boolean=True)).after,
        change.notes,
    )


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE orders (p int, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
        "ALTER TABLE orders ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES x.parent (id) ON UPDATE SET NULL",
    ],
)
def test_cascades_are_a_note_on_the_child(sql: str) -> None:
    """InnoDB executes them below the binary log, so no message contains their changes."""
    assert ["CASCADE_NOT_LOGGED"] == other(of_type("ALTER", sql=sql)).notes


def test_tidb_sends_what_cascades_change() -> None:
    """There, they are normal row changes."""
    sql = "CREATE TABLE orders (p int, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)"
    change = other(of_type("CREATE", sql=sql, _tidb={"commitTs": 1}), profile="ticdc")
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
    """A truncate of any type without a truncate event has a note that it changed rows."""
    outcome = decode(of_type(type_, sql=sql), profile="dts" if type_ in OF_CLOUD else "oss")
    assert isinstance(outcome, Changes)
    assert len(tables) == len(outcome.changes)
    for change in outcome.changes:
        assert isinstance(change, OtherChange)
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
    """Tables are listed only if the whole text was understood (§9)."""
    assert Ddl("ALTER", sql, None, False) == other(of_type("ALTER", sql=sql)).ddl


@pytest.mark.parametrize("sql", ["CREATE TABLE xj_.orders (a INT)", "CREATE TABLE `order` (a INT)"])
def test_samples_themselves_sql_and_table_disagree(sql: str) -> None:
    """Section 12, "samples themselves": Flink's contain such messages. The event has what was sent, and a note."""
    change = other(of_type("CREATE", sql=sql))
    assert (TableName("shop", None, "orders"), ["SQL_NAMES_ANOTHER_TABLE"]) == (change.table, change.notes)


def test_a_dropped_table_of_another_name() -> None:
    """The task can map names. Then the rows of the message's table are those of the named one."""
    notes = ["TABLE_DROPPED", "SQL_NAMES_ANOTHER_TABLE"]
    expected = {"a": ("shop", notes), "b": ("shop", notes), "orders": ("shop", notes)}
    assert expected == others(of_type("ERASE", sql="DROP TABLE a, b"))


ECHO = {"database": "", "table": "", "isDdl": False}


@pytest.mark.requirement("canal.produce.5")
@pytest.mark.parametrize(
    "sql", ["UPDATE orders SET n = 1", "insert into `orders` values (1)", "/* x */ DELETE FROM orders"]
)
def test_rows_query_echo(sql: str) -> None:
    """The text next to row events has type QUERY and no table (§2). Its rows arrive as rows."""
    assert Skip("statement_of_rows") == decode(of_type("QUERY", sql=sql, **ECHO))


@pytest.mark.parametrize(
    ("members", "notes"),
    [
        ({"sql": "REPLACE INTO orders VALUES (1)", "isDdl": True}, GONE),
        ({"sql": "REPLACE INTO orders VALUES (1)", "isDdl": False}, GONE),
        ({**ECHO, "sql": "REPLACE INTO orders VALUES (1)", "isDdl": True}, GONE),
        ({"sql": "GRANT x TO y", **ECHO}, None),
        ({"sql": "update_statistics()", **ECHO}, None),
    ],
)
def test_what_is_no_echo_of_rows(members: dict[str, Any], notes: list[str] | None) -> None:
    """canal sends a statement that its parser does not know as a QUERY with its database."""
    assert notes == other(of_type("QUERY", **members)).notes


def test_an_echo_in_a_record_of_several_messages() -> None:
    """The echo is omitted, and the other messages count."""
    bodies = [of_type("QUERY", sql="DELETE FROM orders", **ECHO), of_type("DELETE", [{"id": "1"}])]
    value = "\n".join(map(json.dumps, bodies)).encode()
    outcome = made(Canal, Setup("s"), {"profile": "oss", "newline_batches": True}).decode(
        Message("t", 0, 0, 0, None, value)
    )
    assert isinstance(outcome, Changes)
    assert 1 == len(outcome.changes)


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
    """A statement without text is empty, and one with rows is contradictory."""
    assert code == refused({**of_type("ALTER", sql="ALTER TABLE t ADD c INT"), **members}).code


DML = {"INSERT": "insert into orders values (1)", "UPDATE": "update orders set n = 1", "DELETE": "delete from orders"}


@pytest.mark.requirement("canal.produce.5")
@pytest.mark.parametrize("type_", DML)
@pytest.mark.parametrize(("data", "old"), [(None, None), ([], None), (None, [{}])])
@pytest.mark.parametrize("is_ddl", [False, None])
def test_a_statement_in_place_of_rows(type_: str, data: Any, old: Any, is_ddl: bool | None) -> None:
    """binlog_format STATEMENT (§6.5): rows changed but cannot be applied, and the event says so."""
    sql = DML[type_]
    change = other(of_type(type_, data, old, sql=sql, isDdl=is_ddl, mysqlType=None, pkNames=None))
    assert ("schema", TableName("shop", None, "orders")) == (change.kind, change.table)
    assert Ddl(type_, sql, ["shop.orders"], True) == change.ddl
    assert ["STATEMENT_NOT_APPLIED"] == change.notes
    assert (1700000000000000, "3") == (change.ts_commit_us, change.pos_native)


def test_a_statement_of_several_tables_in_place_of_rows() -> None:
    """It is unknown which tables changed, possibly any of the database."""
    sql = "update orders join items on orders.id = items.o set n = 1"
    change = other(of_type("UPDATE", sql=sql))
    assert (Ddl("UPDATE", sql), GONE, None, "shop") == (change.ddl, change.notes, change.table, change.db)
    notes = ["STATEMENT_NOT_APPLIED", "SQL_NAMES_ANOTHER_TABLE"]
    assert {"items": ("shop", notes), "orders": ("shop", notes)} == others(of_type("DELETE", sql="delete from items"))


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
    """A text next to rows is a comment, and the rows count."""
    assert 1 == len(rows(of_type("DELETE", [{"id": "1"}], sql="delete from orders")))


XID = "X'6162',X'',1"


@pytest.mark.parametrize(("sql", "tx"), [(XID, Tx(XID)), (f"XA COMMIT {XID}", Tx(XID)), ("", None), (None, None)])
def test_the_end_of_an_xa_transaction(sql: str | None, tx: Tx | None) -> None:
    """XACOMMIT: the rows sent at its prepare are final. The text is the xid, the statement with it, or empty (§2)."""
    change = other(of_type("XACOMMIT", sql=sql, database="", table=""))
    assert ("tx", tx, ["XA_COMMITTED"], None) == (change.kind, change.tx, change.notes, change.ddl)


def test_a_rolled_back_xa_transaction_is_for_the_operator() -> None:
    """XAROLLBACK: the rows sent before were rolled back. No event undoes them, so a dead letter reports it."""
    error = refused(of_type("XAROLLBACK", sql="X'6162',X'',1"))
    assert "UNSUPPORTED_SHAPE" == error.code
    assert "rolled back" in error.reason


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
    """One statement for exactly the message's table becomes op t."""
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
    """A statement that does not match the message exactly empties no table."""
    outcome = decode(of_type("TRUNCATE", sql=sql))
    assert isinstance(outcome, Changes)
    noted = {}
    for change in outcome.changes:
        assert isinstance(change, OtherChange)
        assert change.ddl is not None
        assert ("TRUNCATE", sql) == (change.ddl.type, change.ddl.sql)
        noted[change.table] = change.notes or ()
    concerned = noted.get(TableName("shop", None, "orders"), noted.get(None))
    assert concerned is not None
    assert "STATEMENT_NOT_APPLIED" in concerned


@given(st.text(max_size=40), st.sampled_from([*sorted(STATEMENTS), *DML]))
def test_no_text_refuses_a_statement(sql: str, type_: str) -> None:
    """Any text gives events, or a truncate of the only table."""
    outcome = decode(of_type(type_, sql=sql or "?"), profile="dts")
    assert isinstance(outcome, Changes)
    assert outcome.changes
