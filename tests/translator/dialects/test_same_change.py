"""The same history through all four dialects gives the same canonical rows.

The tools write different things about a change, but what all of them provide must be the same. Only the differences
listed here, with a reason, are allowed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent
from dev.demo.shop import Shop, ShopChange, ShopTable
from dev.demo.writers import Raw
from dev.demo.writers.canal import CanalWriter
from dev.demo.writers.dts_avro import DtsAvroWriter
from dev.demo.writers.qlik import QlikWriter
from tests.translator.dialects.shareplex.history import (
    DTS,
    QUEST,
    TABLES,
    Form,
    canonical,
    declared,
    events_of,
    objects,
    rows_of,
    text,
)
from translator.dialects import DIALECTS, build
from translator.message import Message, Setup

SEEDS = range(12)
CHANGES = 60
TOPIC = "raw.shop"

Event = dict[str, Any]
Write = Callable[[ShopChange], Iterator[Raw]]

SOURCE_SPECIFIC: Mapping[str, str] = {
    "dialect": "names the format",
    "variant": "names the form inside the format",
    "variant_basis": "some forms are told by the messages, others by the operator",
    "dbms": "DTS says it, Canal is for one; Qlik and SharePlex do not say",
    "server": "Qlik says it",
    "task": "Qlik says it",
    "db": "MySQL has a database and no schema, Oracle a schema and no database",
    "schema": "as db",
    "pos_native": "each tool has its own token, or none",
    "ts_commit_us": "Canal and DTS send whole seconds, Qlik milliseconds; a full load of Qlik has no time",
    "ts_capture_us": "Canal has one, SharePlex has one when told to",
    "key_kind": "messages name the primary key, but SharePlex' do not: there the operator does",
    "schema_id": "fingerprint of a schema that has the tool's own types, length and nullability",
    "tx": "Qlik sends transactions, SharePlex when told to",
    "changed": "DTS sends two whole images and does not say",
    "before_state": "Canal sends old values of what changed and, of a delete, no proof that all columns are there",
    "notes": "decisions on what a tool does not say",
    "ext": "leftovers of a tool's own",
}
"""Fields that can differ between sources of one change, and why."""

_OP_OF_A_LOAD = {"r": "c"}
"""Canal and SharePlex write a row of the full load as an insert."""


def _shareplex(form: Form) -> Callable[[], Write]:
    def writer() -> Write:
        numbers = iter(range(1, 10_000))
        return lambda change: iter([Raw(TOPIC, 0, None, text(objects(change, form, next(numbers)), form))])

    return writer


_WRITERS: Mapping[str, tuple[str, Callable[[], Write], dict[str, Any]]] = {
    "canal": ("canal", lambda: CanalWriter(TOPIC).write, {"profile": "oss"}),
    "dts_avro": ("dts_avro", lambda: DtsAvroWriter(TOPIC).write, {}),
    "qlik": ("qlik", lambda: QlikWriter(TOPIC, f"{TOPIC}.metadata").write, {}),
    "shareplex": ("shareplex", _shareplex(DTS), {"preset": "dts"}),
    "shareplex of Quest": ("shareplex", _shareplex(QUEST), {"preset": "quest"}),
}
"""Dialect, writer and options. Native Quest sends partial rows, so its rows are compared and not its images."""

WHOLE = ("canal", "dts_avro", "qlik", "shareplex")
"""Those whose messages provide both full images in some way."""


@cache
def history(seed: int) -> tuple[Shop, list[ShopChange]]:
    """The final state of the shop, and its history."""
    shop = Shop(seed, TABLES)
    return shop, list(shop.history(CHANGES))


@cache
def events(source: str, seed: int) -> list[Event]:
    """Return one event for each change."""
    dialect, writer, options = _WRITERS[source]
    tables = tuple(map(declared, TABLES)) if dialect == "shareplex" else ()
    learned: dict[str, object] = {}
    reader = build(dialect, Setup("shop", tables=tables, lookup=learned.get), options)
    write = writer()
    made = []
    for number, change in enumerate(history(seed)[1]):
        messages = [Message(TOPIC, 0, number, 0, raw.key, raw.value) for raw in write(change)]
        made += events_of(reader, messages, learned)
    return made


def comparable(event: Event) -> Event:
    """Return what must be the same of an event: images in any column order, and fractions without trailing zeros."""
    alike = {name: value for name, value in event.items() if name not in SOURCE_SPECIFIC}
    for image in ("before", "after"):
        if alike[image] is not None:
            alike[image] = _without_needless_digits(alike[image])
    alike["op"] = _OP_OF_A_LOAD.get(event["op"], event["op"])
    return alike


def _without_needless_digits(row: Mapping[str, Any]) -> dict[str, Any]:
    """Remove trailing zeros of times, because digits are kept as sent and Quest sends nine."""
    return {name: _shortened(value) if name in _TIMES else value for name, value in row.items()}


_TIMES = {column.name for table in TABLES for column in table.columns if column.kind == "datetime"}


def _shortened(value: str | None) -> str | None:
    return value.rstrip("0").rstrip(".") if value and "." in value else value


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("source", [source for source in WHOLE if source != "qlik"])
def test_events_are_equal_but_for_what_is_listed(source: str, seed: int) -> None:
    """Operation, table, key, old key, images, position and all fields that the table does not exempt are equal."""
    pairs = zip(events("qlik", seed), events(source, seed), strict=True)
    for change, (theirs, ours) in zip(history(seed)[1], pairs, strict=True):
        expected, found = comparable(theirs), comparable(ours)
        if source == "canal" and change.op == "update" and change.before == change.after:
            # its `old` lists the changes and is empty here, so there is no old image
            assert found.pop("before") is None
            del expected["before"]
        assert expected == found, change


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("source", _WRITERS)
def test_rows_are_those_of_the_source(source: str, seed: int) -> None:
    """With any tool, a consumer of the events ends with the source's tables."""
    shop, _ = history(seed)
    for table in TABLES:
        rows = rows_of(event for event in events(source, seed) if event["table"] == table.name)
        expected = {_key(table, row): canonical(row, table) for row in shop.rows[table.name].values()}
        assert {key: _without_needless_digits(row) for key, row in expected.items()} == {
            key: _without_needless_digits(row) for key, row in rows.items()
        }


@pytest.mark.parametrize("seed", SEEDS)
def test_what_quest_sends_agrees_with_the_whole_images(seed: int) -> None:
    """Native SharePlex omits unchanged columns and NULLs. What it sends matches the others."""
    for change, whole, sparse in zip(
        history(seed)[1], events("qlik", seed), events("shareplex of Quest", seed), strict=True
    ):
        for name in ("op", "table", "key", "key_old"):
            assert comparable(whole)[name] == comparable(sparse)[name], change
        for image in ("before", "after"):
            known = comparable(whole)[image] or {}
            assert (comparable(sparse)[image] or {}).items() <= known.items(), change


def test_the_table_lists_what_differs_and_nothing_more() -> None:
    """An exempted field that is equal everywhere would hide the day on which it changes."""
    met = [[events(source, seed) for source in WHOLE] for seed in SEEDS]
    differing = {
        name
        for sources in met
        for same in zip(*sources, strict=True)
        for name in same[0]
        if any(event[name] != same[0][name] for event in same)
    }
    assert set(SOURCE_SPECIFIC) == differing - {"op", "before", "after"}
    assert set(SOURCE_SPECIFIC) <= set(ChangeEvent.__struct_fields__)


def test_every_dialect_takes_part() -> None:
    """Every dialect takes part, and the histories contain every kind of change. A new dialect has to be added."""
    assert set(DIALECTS) == {dialect for dialect, _, _ in _WRITERS.values()}
    changes = [change for seed in SEEDS for change in history(seed)[1]]
    assert {"load", "insert", "update", "delete"} == {change.op for change in changes}
    assert any(event["key_old"] for seed in SEEDS for event in events("qlik", seed))


def _key(table: ShopTable, row: Mapping[str, Any]) -> str:
    return json.dumps({name: row[name] for name in table.key})
