"""Canal: messages without a table, as Flink's and SeaTunnel's own sinks write them (§1)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.translator.dialects.canal.messages import canal, message
from translator.dialects.canal import Canal
from translator.errors import ConfigError, MessageError
from translator.message import Changes, DeclaredTable, RowChange, TableName

BARE: dict[str, Any] = {"data": [{"id": 7, "name": "new"}], "type": "INSERT"}
ORDERS = TableName("shop", None, "orders")


def read(body: Any, dialect: Canal, topic: str = "raw.orders") -> RowChange:
    outcome = dialect.decode(msgspec.structs.replace(message(json.dumps(body).encode()), topic=topic))
    assert isinstance(outcome, Changes)
    (change,) = outcome.changes
    assert isinstance(change, RowChange)
    return change


def refused(body: Any, dialect: Canal, topic: str = "raw.orders") -> MessageError:
    with pytest.raises(MessageError) as caught:
        read(body, dialect, topic)
    return caught.value


@pytest.mark.parametrize("profile", ["flink_cdc", "auto"])
@pytest.mark.parametrize(
    ("topics", "table"),
    [
        ("shop.orders", ORDERS),
        ("orders", TableName(None, None, "orders")),
        ("other=a.b, raw.*=shop.orders,raw.orders=c.d", ORDERS),
        ({"raw.?rders": "shop.orders", "*": "a.b"}, ORDERS),
    ],
)
def test_the_topic_names_the_table(profile: str, topics: Any, table: TableName) -> None:
    """The option has the same forms as its namesake for Qlik, and the first matching pattern counts."""
    change = read(BARE, canal(profile=profile, topics=topics))
    assert (table, "c", {"id": "7", "name": "new"}) == (change.table, change.op, change.after)


@pytest.mark.parametrize("profile", ["flink_cdc", "auto"])
def test_both_sinks(profile: str) -> None:
    """Flink writes an array of one row, SeaTunnel the row or, in newer versions, the array and a nullable table. In
    both, an UPDATE is a DELETE and an INSERT. Key and types come from `tables:`.
    """
    declared = DeclaredTable("shop.orders", ("id",), {"id": "int64", "name": "string"})
    dialect = canal(declared, profile=profile, topics="shop.orders", object_rows=True)
    for type_, op in (("INSERT", "c"), ("DELETE", "d")):
        for data in (BARE["data"], BARE["data"][0]):
            change = read({"data": data, "type": type_}, dialect)
            assert change == read(
                {"data": data, "type": type_, "database": None, "table": None, "ts": None, "old": None}, dialect
            )
            assert (op, ORDERS, ("id",), "configured") == (
                change.op,
                change.table,
                change.key_columns,
                change.key_kind,
            )
            assert {"id": 7, "name": "new"} == (change.after or change.before)
            assert ("flink_cdc", change.notes) == (change.writer.variant, None)


def test_a_message_that_names_its_table() -> None:
    """The message's table takes precedence over its topic. A database alone counts if the option has none."""
    dialect = canal(profile="flink_cdc", topics="x")
    assert ORDERS == read({**BARE, "database": "shop", "table": "orders"}, dialect).table
    assert TableName("shop", None, "x") == read({**BARE, "database": "shop", "table": ""}, dialect).table
    assert ORDERS == read({**BARE, "database": "other"}, canal(profile="flink_cdc", topics="shop.orders")).table


def test_what_holds_a_table_back_knows_it_too() -> None:
    """A rejected message is held with those of its table."""
    dialect = canal(profile="flink_cdc", topics="raw.orders=shop.orders")
    bad = msgspec.structs.replace(message(b'{"data":[1],"type":"INSERT"}'), topic="raw.orders")
    assert [ORDERS] == dialect.tables(bad)
    with pytest.raises(MessageError):
        dialect.tables(msgspec.structs.replace(bad, topic="other"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"profile": "flink_cdc"}, ["'raw.orders'", "option topics"]),
        ({"profile": "auto"}, ["'raw.orders'", "option topics"]),
        ({"profile": "flink_cdc", "topics": "other=a.b"}, ["'raw.orders'", "option topics"]),
        ({}, ["profile oss", "profile flink_cdc", "option topics"]),
        ({"profile": "dts"}, ["profile dts", "profile flink_cdc", "option topics"]),
    ],
)
def test_the_refusal_names_the_option(options: dict[str, Any], words: list[str]) -> None:
    """Otherwise nobody would find the option."""
    error = refused({**BARE, "data": [{"id": "7"}]}, canal(**options))
    assert ("TABLE_UNKNOWN", "$.table") == (error.code, error.path)
    assert [] == [word for word in words if word not in error.reason]


def test_the_refusal_of_a_row_without_its_array_names_the_option() -> None:
    """SeaTunnel's form is an option, and the message says which."""
    error = refused({"data": {"id": 7}, "type": "INSERT"}, canal(profile="flink_cdc", topics="shop.orders"))
    assert ("INVALID_FIELD", "$.data") == (error.code, error.path)
    assert "object_rows: true" in error.reason


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topics": "shop.orders"}, "profiles flink_cdc, ckafka and auto"),
        ({"profile": "flink_cdc", "topics": "a.b.c"}, "canal: topics: 'a.b.c' is not in the form DB.TABLE or TABLE"),
        ({"profile": "flink_cdc", "topics": "x=a.b,c.d"}, "'c.d' is not in the form PATTERN=DB.TABLE; expected DB"),
        ({"profile": "flink_cdc", "topics": {"x": ""}}, "'' is not in the form DB.TABLE or TABLE"),
    ],
)
def test_wrong_options(options: dict[str, Any], words: str) -> None:
    """Wrong options are reported before the first message."""
    with pytest.raises(ConfigError, match=words):
        canal(**options)
