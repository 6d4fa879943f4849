"""When keys shift within a transaction, the reader ends with the rows of the source, in memory and in SQL.

`SHIFTS=100000` in the environment runs the number of transactions of an acceptance run.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from cdc_core.reader import Change, DictStore, RowStore, SqlStore, apply
from cdc_core.reader.kept_row import KeptRow, RowProgress
from cdc_core.transaction import Aside, SourceTransaction
from tests.cdc_core.reader.test_apply import TABLE, event_of
from tests.spark_sink.apply.test_key_shifts import COUNT, Found, difference, repeated
from tests.spark_sink.key_shifts import Shifts, shifts

COLUMNS = ("a", "b")


def read(made: Shifts, store: RowStore) -> None:
    for batch in made.batches:
        apply([Change.of(event_of(event), None) for event in batch], store)


def in_memory(made: Shifts) -> Found:
    store = DictStore()
    read(made, store)
    rows = {key[0]: {name: row[name] for name in COLUMNS if name in row} for key, row in store.rows(TABLE).items()}
    return rows, {key[0] for key in store.incomplete(TABLE)}


def in_sql(made: Shifts) -> Found:
    """Read each batch with a new reader that knows only what is stored."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for batch in made.batches:
            apply([Change.of(event_of(event), None) for event in batch], SqlStore(connection))
        found = connection.execute("SELECT id, a, b, _cdc_incomplete FROM shop_sales_t").fetchall()
    return {id: {"a": a, "b": b} for id, a, b, _ in found}, {id for id, *_, incomplete in found if incomplete}


@pytest.mark.parametrize("part", range(3))
def test_rows_in_memory(part: int) -> None:
    found = {seed: difference(made := shifts(seed), in_memory(made)) for seed in range(part, COUNT, 3)}
    assert {} == {seed: what for seed, what in found.items() if what is not None}


def test_rows_in_sql() -> None:
    found = {seed: difference(made := shifts(seed), in_sql(made)) for seed in range(0, COUNT, 10)}
    assert {} == {seed: what for seed, what in found.items() if what is not None}


def test_a_row_set_aside_in_sql() -> None:
    """The values of a row set aside are stored as text and are unchanged when written to the new key."""
    values: dict[str, Any] = {
        "amount": Decimal("12.50"),
        "at": datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        "data": b"\x00\xff",
        "huge": 2**63,
        "rate": float("nan"),
        "text": "ä",
        "nothing": None,
    }
    types = dict.fromkeys(values, "string")
    moved = KeptRow(RowProgress(), {**values})
    with closing(sqlite3.connect(":memory:")) as connection:
        SqlStore(connection).store(TABLE, (1,), moved, types)
        expected = SqlStore(connection).load(TABLE, (1,))
        assert expected is not None
        aside = Aside(SourceTransaction("scope", "tx"), expected.values or {}, incomplete=True)
        SqlStore(connection).store(TABLE, (2,), KeptRow(RowProgress(aside=aside), {**values}), types)
        found = SqlStore(connection).load(TABLE, (2,))
        assert found is not None
    assert aside == found.progress.aside


@pytest.mark.parametrize("tx", ["t", None])
def test_a_repeated_insert_is_no_second_row(tx: str | None) -> None:
    assert ({}, set()) == in_memory(repeated(tx)) == in_sql(repeated(tx))
