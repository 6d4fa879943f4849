"""Nullable unique keys: with every dialect, readers keep exactly the rows that have a key.

Random histories of tables without a primary key are written as each tool does, and read by the rules of
docs/reading.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.demo.shop import START, Row, ShopChange, ShopColumn, ShopTable
from dev.demo.writers import Raw
from dev.demo.writers.canal import DTS_FULL, DTS_LEGACY, OSS, CanalForm, CanalWriter
from dev.demo.writers.dts_avro import DtsAvroWriter
from dev.demo.writers.qlik import QlikWriter
from tests.reading import ReadTable
from tests.translator.dialects.shareplex import history as shareplex
from translator.dialects import DIALECTS, build
from translator.message import DeclaredTable, Message, Setup

TOPIC = "raw.t"
COLUMNS = (ShopColumn("u", "bigint"), ShopColumn("w", "int"), ShopColumn("v", "varchar"))
TABLES = (ShopTable("t", COLUMNS, ("u",)), ShopTable("t", COLUMNS, ("u", "w")))


@dataclass
class History:
    """A table without a primary key, its rows in any order, and its changes so far."""

    table: ShopTable
    rows: list[Row] = field(default_factory=list)
    changes: list[ShopChange] = field(default_factory=list)

    def change(self, op: str, before: Row | None, after: Row | None) -> None:
        at = START + timedelta(seconds=len(self.changes))
        self.changes.append(ShopChange(op, self.table, at, before, after))
        if before is not None:
            self.rows.remove(before)
        if after is not None:
            self.rows.append(after)

    def keyed(self) -> dict[str, Row]:
        """Return the rows with a key, by its text."""
        return {key: row for row in self.rows if (key := self.key(row)) is not None}

    def key(self, row: Row) -> str | None:
        values = {name: row[name] for name in self.table.key}
        return None if None in values.values() else json.dumps(values)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Random histories. The index of the key is unique, ignoring NULLs."""
    history = History(draw(st.sampled_from(TABLES)))
    values = {"u": st.none() | st.integers(1, 3), "w": st.none() | st.integers(1, 2), "v": st.sampled_from("xyz")}
    for _ in range(draw(st.integers(1, 12))):
        row = draw(st.sampled_from(history.rows)) if history.rows and draw(st.integers(0, 3)) else None
        if row is not None and draw(st.integers(0, 4)) == 0:
            history.change("delete", row, None)
            continue
        names = draw(st.sets(st.sampled_from(sorted(values)), min_size=1)) if row is not None else values
        new = {**(row or {}), **{name: draw(values[name]) for name in ("u", "w", "v") if name in names}}
        if new == row or history.key(new) in history.keyed().keys() - {row and history.key(row)}:
            continue
        history.change("insert" if row is None else "update", row, new)
    return history


@dataclass(frozen=True)
class Source:
    """A tool that writes the changes. `sparse`: its updates have only the changes and the key columns."""

    dialect: str
    options: dict[str, Any]
    writer: Callable[[], Callable[[ShopChange], Iterator[Raw]]]
    table: str
    types: Mapping[str, str] | None = None
    sparse: bool = False


def _without_key(write: Callable[[ShopChange], Iterator[Raw]]) -> Callable[[ShopChange], Iterator[Raw]]:
    """Return a writer of a table without a primary key."""
    return lambda change: write(replace(change, table=replace(change.table, key=())))


def _canal(form: CanalForm) -> Callable[[], Callable[[ShopChange], Iterator[Raw]]]:
    return lambda: _without_key(CanalWriter(TOPIC, form).write)


def _shareplex(form: shareplex.Form) -> Callable[[], Callable[[ShopChange], Iterator[Raw]]]:
    def writer() -> Callable[[ShopChange], Iterator[Raw]]:
        numbers = iter(range(1, 10_000))
        return lambda change: iter(
            [Raw(TOPIC, 0, None, shareplex.text(shareplex.objects(change, form, next(numbers)), form))]
        )

    return writer


_TYPES = {"u": "int64", "w": "int32", "v": "string"}
SOURCES = {
    "canal": Source("canal", {"profile": "oss"}, _canal(OSS), "shop.t"),
    "canal of DTS": Source("canal", {"profile": "dts"}, _canal(DTS_FULL), "shop.t"),
    "canal of DTS before March 2022": Source("canal", {"profile": "dts_legacy"}, _canal(DTS_LEGACY), "shop.t"),
    "dts_avro, declared": Source("dts_avro", {}, lambda: _without_key(DtsAvroWriter(TOPIC).write), "shop.t"),
    "dts_avro, unique_key_as_key": Source(
        "dts_avro", {"unique_key_as_key": True}, lambda: DtsAvroWriter(TOPIC, index="u_key").write, "-"
    ),
    "qlik": Source("qlik", {}, lambda: QlikWriter(TOPIC, f"{TOPIC}.metadata").write, "-"),
    "shareplex": Source(
        "shareplex", {"preset": "dts"}, _shareplex(replace(shareplex.DTS, text=False)), "SHOP.t", _TYPES
    ),
    "shareplex of Quest": Source(
        "shareplex", {"preset": "quest"}, _shareplex(shareplex.QUEST), "SHOP.t", _TYPES, sparse=True
    ),
    "shareplex, pairs": Source(
        "shareplex", {"preset": "quest"}, _shareplex(shareplex.Form(pairs=True)), "SHOP.t", _TYPES, sparse=True
    ),
}


def events_of(source: Source, history: History) -> list[dict[str, Any]]:
    """Return the events of a history. No message is rejected."""
    learned: dict[str, object] = {}
    declared = DeclaredTable(source.table, history.table.key, source.types)
    dialect = build(source.dialect, Setup("s", tables=(declared,), lookup=learned.get), source.options)
    write = source.writer()
    sent = [raw for change in history.changes for raw in write(change)]
    messages = [Message(TOPIC, 0, offset, 0, raw.key, raw.value) for offset, raw in enumerate(sent)]
    return shareplex.events_of(dialect, messages, learned)


@pytest.mark.parametrize("name", SOURCES)
@given(history=histories())
def test_readers_have_the_rows_that_have_a_key(name: str, history: History) -> None:
    """No row is stale, surplus or missing. A row of a sparse source can lack columns."""
    source, table = SOURCES[name], ReadTable()
    events = events_of(source, history)
    for event in events:
        table.apply(event)
    expected = history.keyed()
    if source.sparse:
        assert expected.keys() == table.rows.keys()
        assert all(row.items() <= expected[key].items() for key, row in table.rows.items())
    else:
        assert expected == table.rows
    keyless = [change for change in history.changes if history.key(change.after or change.before or {}) is None]
    assert len(keyless) == table.left_out


@pytest.mark.parametrize("name", SOURCES)
@given(history=histories())
def test_no_key_holds_null(name: str, history: History) -> None:
    """An event has the keys of the row before and after, except keys that contain NULL."""
    for change, event in zip(history.changes, events_of(SOURCES[name], history), strict=True):
        before, after = (row and history.key(row) for row in (change.before, change.after))
        named = before if change.op == "delete" else after
        left = before if change.op == "update" and before != after else None
        assert (named, left) == tuple(event[key] and json.dumps(event[key]) for key in ("key", "key_old"))


def test_every_dialect_takes_part() -> None:
    """Every dialect takes part. A new one has to be added."""
    assert set(DIALECTS) == {source.dialect for source in SOURCES.values()}
