"""The names, types and transactions of a store in a database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from itertools import count
from typing import Any

import duckdb
import msgspec
import pytest

from cdc_core.envelope import ChangeEvent, Column, TableSchema
from cdc_core.position import position
from cdc_core.reader import SQLITE, ApplyError, Change, DictStore, KnownSchemas, SqlDialect, SqlStore, apply
from tests.cdc_core.reader.test_apply import delivered, in_memory, in_sql
from tests.repository.pages import blocks, page, run, section
from tests.spark_sink.histories import history
from tests.translator.examples import BLANK


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:")
    yield opened
    opened.close()


def insert(number: int, after: dict[str, Any], **fields: Any) -> ChangeEvent:
    return msgspec.structs.replace(
        BLANK,
        **{
            "kind": "row",
            "op": "c",
            "source": "shop",
            "table": "t",
            "pos": position(number, 0),
            "key": json.dumps({"id": number}),
            "after": json.dumps({"id": number, **after}),
            "after_state": "full",
            **fields,
        },
    )


def read(*events: ChangeEvent, schema: TableSchema | None = None) -> list[Change]:
    known = KnownSchemas()
    if schema is not None:
        known.add(schema)
    return [Change.of(event, known) for event in events]


VALUES = {
    "b": ("boolean", True, 1),
    "i": ("uint64", "18446744073709551615", "18446744073709551615"),
    "d": ("decimal(9,2)", "12.50", "12.50"),
    "f": ("float64", 0.1, 0.1),
    "n": ("float64", "NaN", "NaN"),
    "s": ("string", "007", "007"),
    "x": ("bytes", "AP8=", b"\x00\xff"),
    "t": ("time", "-838:59:59.5", "-838:59:59.5"),
    "l": ("timestamp", "2020-01-01T00:00:00.123456789", "2020-01-01T00:00:00.123456789"),
    "z": ("timestamptz", "2020-01-01T00:00:00.5Z", "2020-01-01T00:00:00.500000Z"),
    "e": ("string", None, None),
}


def test_sqlite_keeps_values(connection: sqlite3.Connection) -> None:
    """Numbers, texts and bytes are stored unchanged, anything else as canonical text. No text becomes a number."""
    columns = [Column("id", "int64", key=1), *(Column(name, type_) for name, (type_, *_) in VALUES.items())]
    schema = TableSchema.of("shop", None, None, "t", columns, "primary")
    after = {name: value for name, (_, value, _) in VALUES.items()}
    apply(read(insert(1, after, schema_id=schema.id), schema=schema), SqlStore(connection))
    ((*found,),) = connection.execute(f"SELECT {', '.join(VALUES)} FROM shop_t")
    assert [expected for *_, expected in VALUES.values()] == found


LONG = "1" * 40 + ".5"


def test_duckdb_rounds_nothing() -> None:
    """With the dialect of docs/reading.md, a value that the driver would round is stored as text or rejected."""
    dialect = run(*blocks(section(page("reading.md"), "Python"), "python"))["DUCKDB"]
    sent: dict[str, tuple[str, Any, Any]] = {
        "i": ("uint64", "18446744073709551615", "18446744073709551615"),
        "d": ("decimal(9,2)", "12.50", Decimal("12.50")),
        "l": ("decimal(65,1)", LONG, LONG),
        "u": ("decimal", LONG, LONG),
        "t": ("time", "-838:59:59.5", "-838:59:59.5"),
        "z": ("timestamp", "2020-01-01T00:00:00.123456", datetime(2020, 1, 1, 0, 0, 0, 123456)),
    }
    columns = [Column("id", "int64", key=1), *(Column(name, type_) for name, (type_, *_) in sent.items())]
    schema = TableSchema.of("shop", None, None, "t", columns, "primary")
    after = {name: value for name, (_, value, _) in sent.items()}
    connection = duckdb.connect()
    apply(read(insert(1, after, schema_id=schema.id), schema=schema), SqlStore(connection, dialect))
    ((*found,),) = connection.execute(f"SELECT {', '.join(sent)} FROM shop_t").fetchall()
    assert [expected for *_, expected in sent.values()] == found
    fine = insert(2, {**after, "z": "2020-01-01T00:00:00.123456789"}, schema_id=schema.id)
    with pytest.raises(ValueError, match="would cut this time"):
        apply(read(fine, schema=schema), SqlStore(connection, dialect))
    connection.close()


def test_names(connection: sqlite3.Connection) -> None:
    """Tables and columns can have any name that the source uses."""
    table, column = 'a"; drop ?', 'x"y ?'
    apply(read(insert(1, {column: "?"}, table=table)), SqlStore(connection))
    assert [("?",)] == connection.execute('SELECT "x""y ?" FROM "shop_a""; drop ?"').fetchall()


def test_two_tables_of_one_name(connection: sqlite3.Connection) -> None:
    """The second table is rejected, even after reopening the store, unless it is given its own name."""
    first, second = insert(1, {}, db="a", table="b_c"), insert(2, {}, db="a_b", table="c")
    apply(read(first), SqlStore(connection))
    with pytest.raises(ApplyError, match="shop_a_b_c is the name of both shop/a_b//c and"):
        apply(read(second), SqlStore(connection))
    apply(read(second), SqlStore(connection, name=lambda table: f"{table.db}.{table.table}"))
    assert [(2,)] == connection.execute('SELECT id FROM "a_b.c"').fetchall()


def test_a_column_that_comes_later(connection: sqlite3.Connection) -> None:
    """The column is added and is NULL in rows that do not have it yet."""
    store = SqlStore(connection)
    apply(read(insert(1, {}), insert(2, {"a": 1})), store)
    assert [(1, None), (2, 1)] == connection.execute("SELECT id, a FROM shop_t ORDER BY id").fetchall()


def test_a_column_of_another_type(connection: sqlite3.Connection) -> None:
    """If the database has types, the operator has to change the column. Nothing is written before that."""
    dialect = SqlDialect(lambda canonical: "TEXT" if canonical == "string" else "INTEGER", SQLITE.parameter_of)
    schemas = [
        TableSchema.of("shop", None, None, "t", [Column("id", "int64"), Column("a", type_)], "primary")
        for type_ in ("int64", "string")
    ]
    changes = [
        read(insert(n, {"a": value}, schema_id=schema.id), schema=schema)
        for n, value, schema in zip((1, 2), (1, "x"), schemas, strict=True)
    ]
    store = SqlStore(connection, dialect)
    apply(changes[0], store)
    with pytest.raises(ApplyError, match="'a' of shop///t has type TEXT at the source but INTEGER"):
        apply(changes[1], store)
    assert [(1,)] == connection.execute("SELECT a FROM shop_t").fetchall()


class _FailingCursor:
    """A cursor that fails at a statement, like a lost connection."""

    def __init__(self, cursor: sqlite3.Cursor, allowed: int) -> None:
        self._cursor = cursor
        self._left = count(allowed, -1)

    def execute(self, statement: str, parameters: Any = ()) -> Any:
        if next(self._left) == 0:
            raise ConnectionError
        return self._cursor.execute(statement, parameters)

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()


class _FailingConnection:
    def __init__(self, connection: sqlite3.Connection, allowed: int) -> None:
        self._connection = connection
        self._allowed = allowed

    def cursor(self) -> Any:
        return _FailingCursor(self._connection.cursor(), self._allowed)


def test_all_or_nothing(connection: sqlite3.Connection) -> None:
    """A batch that is interrupted and rolled back anywhere leaves nothing, and can be applied in full later."""
    made, store = history(11), DictStore()
    changes = [*delivered(made)]
    apply(changes, store)
    for allowed in count(0, 5):
        fresh = sqlite3.connect(":memory:")
        try:
            with fresh:
                apply(changes, SqlStore(_FailingConnection(fresh, allowed)))
        except ConnectionError:
            assert ({}, set()) == in_sql(fresh)
            with fresh:
                apply(changes, SqlStore(fresh))
            assert in_memory(store) == in_sql(fresh)
        else:
            break
        finally:
            fresh.close()
    assert allowed > 3 * len(changes)
