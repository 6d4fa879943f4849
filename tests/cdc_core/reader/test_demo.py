"""The five demo histories, read in every form into memory and databases, produce the rows of the shops."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import duckdb
import pytest

from cdc_core.reader import SQLITE, Change, ChangeReader, DictStore, SqlDialect, SqlStore, TableId, Value, apply
from dev.demo.compare import differences
from dev.demo.shop import ShopTable
from dev.demo.sources import ShopSource, shop_sources
from tests.cdc_core.reader.sources import FORMS, known, translated, value_of
from tests.repository.pages import blocks, page, run, section
from translator.codecs import Codec

CHANGES = 300
SOURCES = [source.name for source in shop_sources(0)]


def _read(
    source: ShopSource, codec: Codec, again: random.Random | None = None, length: int = CHANGES
) -> Iterator[Change]:
    """Return the changes of a shop. With `again`, a partition is sometimes read again from an earlier offset."""
    events = translated(source, source.messages(length, grow=True))
    reader = ChangeReader(known(events))
    changes = [reader.read(value_of(codec, event, schema)) for event, schema in events]
    for number, change in enumerate(changes):
        yield change
        if again is not None and again.random() < 0.02:
            scope = change.event.pos_scope
            yield from (old for old in changes[again.randint(0, number) : number + 1] if old.event.pos_scope == scope)


def _tables(source: ShopSource, found: Sequence[TableId]) -> Iterator[tuple[TableId, ShopTable]]:
    assert sorted(source.shop.rows) == sorted(table.table for table in found)
    for table in found:
        yield table, source.shop.shape(table.table)


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("number", range(len(SOURCES)), ids=SOURCES)
def test_rows_of_the_source(number: int, make: Callable[[], Codec]) -> None:
    """In memory, every cell matches the source with its type, and no row is incomplete."""
    source, store = shop_sources(2022)[number], DictStore()
    account = apply(_read(source, make()), store)
    assert (0, 0) == (account.stale, account.keyless)
    for table, shape in _tables(source, store.tables()):
        # A row has a column that was added later only from its next change on.
        nulls: dict[str, Value] = {column.name: None for column in shape.columns}
        assert source.shop.rows[table.table] == {key: nulls | {**row} for key, row in store.rows(table).items()}
        assert set() == store.incomplete(table)


def _duckdb() -> SqlDialect:
    """Return the DuckDB store of docs/reading.md."""
    found: SqlDialect = run(*blocks(section(page("reading.md"), "Python"), "python"))["DUCKDB"]
    return found


@pytest.mark.parametrize("number", range(len(SOURCES)), ids=SOURCES)
def test_sqlite_has_the_same_rows(number: int) -> None:
    """SQLite has the rows of the source despite duplicates, and none is marked."""
    with closing(sqlite3.connect(":memory:")) as connection:
        _check_database(number, connection, SQLITE, CHANGES)


def test_another_database_has_them() -> None:
    """DuckDB, with typed columns, has the same rows. It takes milliseconds per row, so one shop is enough."""
    _check_database(3, duckdb.connect(), _duckdb(), CHANGES // 4)


def _check_database(number: int, connection: Any, dialect: SqlDialect, length: int) -> None:
    source = shop_sources(2023)[number]
    store = SqlStore(connection, dialect)
    changes = [*_read(source, FORMS["avro"](), random.Random(number), length)]
    account = apply(changes, store)
    assert account.stale
    again = apply(changes, store)
    assert 0 == again.applied
    for shape in map(source.shop.shape, source.shop.rows):
        (name,) = {change.table for change in changes if change.table and change.table.table == shape.name}
        cursor = connection.execute(f"SELECT * FROM {'_'.join(level for level in name if level)}")
        names = [column[0] for column in cursor.description]
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        assert [] == differences(shape, source.shop.rows[shape.name].values(), found)
        assert {0} >= {row["_cdc_incomplete"] for row in found}
    connection.close()
