"""The reader and the sink fold with separate code and produce the same rows from the same changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import Tx
from cdc_core.position import position
from cdc_core.reader import Change, DictStore, apply
from spark_sink.model.event import Event
from spark_sink.model.fold import fold
from spark_sink.model.row import Row
from tests.spark_sink.apply.test_model import applied
from tests.spark_sink.histories import COLUMNS, history
from tests.translator.examples import BLANK

HISTORIES = 100

KEYS = st.sampled_from(["1", "2", "3"])
CELLS = st.none() | st.integers(0, 9)
# Column c was dropped from the table last, so an image without it can be full.
AFTERS = st.fixed_dictionaries({}, optional={"a": CELLS, "b": CELLS, "c": CELLS})


@st.composite
def _changes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return row events of one table in canonical order, from two scopes, with some duplicates."""
    made: list[dict[str, Any]] = []
    for n in range(draw(st.integers(1, 12))):
        if made and draw(st.integers(0, 3)) == 0:
            made.append(draw(st.sampled_from(made)))
            continue
        op, key, after = draw(st.sampled_from("rcuud")), draw(KEYS), draw(AFTERS)
        old = draw(st.none() | KEYS) if op == "u" else None
        made.append(
            {
                "id": str(n),
                "kind": "row",
                "op": op,
                "pos": position(n, 0),
                "pos_scope": draw(st.sampled_from(["x", "y"])),
                "tx": draw(st.sampled_from([None, Tx("1"), Tx("2")])),
                "ts_commit_us": draw(st.sampled_from([None, 1, 2])),
                "key": {"id": key},
                "key_old": {"id": old} if old not in (None, key) else None,
                "after": None if op == "d" else after,
                "after_state": "full" if after.keys() >= {"a", "b"} else "partial",
            }
        )
    return made


def _by_the_sink(changes: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the rows that spark_sink produces by folding the events in one batch."""
    events = [
        Event(
            n,
            change["op"],
            json.dumps(change["key"]),
            change["key_old"] and json.dumps(change["key_old"]),
            change["pos_scope"],
            change["pos"],
            json.dumps(change["after"]),
            change["after_state"] == "full",
            False,
            None,
            0,
            change["ts_commit_us"],
            None if change["tx"] is None else change["tx"].id,
        )
        for n, change in enumerate(changes)
    ]
    texts = {text for event in events for text in (event.key, event.key_old) if text is not None}
    keys = {text: (text,) for text in texts}
    rows = fold(events, keys, {}, {}, is_repeat=lambda row, aside: _told(row) == _told(aside)).rows
    return {key: {**json.loads(key), **_values(row)} for (key,), row in rows.items() if row.exists}


def _values(row: Row) -> Mapping[str, Any]:
    return row.content(lambda event: json.loads(event.after or "")).sent


def _told(row: Row) -> dict[str, Any]:
    return {name: value for name, value in _values(row).items() if value is not None}


def _by_the_reader(changes: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    store = DictStore()
    for change in changes:
        images = ((name, change[name]) for name in ("key", "key_old", "after"))
        texts = {name: None if image is None else json.dumps(image) for name, image in images}
        event = msgspec.structs.replace(BLANK, table="t", **{**change, **texts})
        apply([Change.of(event, None)], store)
    (table,) = store.tables()
    return {json.dumps({"id": key[0]}): {**row} for key, row in store.rows(table).items()}


@given(_changes())
def test_as_the_sink(changes: list[dict[str, Any]]) -> None:
    """Duplicates, key changes and partial images of two scopes produce the same rows."""
    assert _by_the_sink(changes) == _by_the_reader(changes)


@pytest.mark.parametrize("part", range(4))
def test_histories_as_the_sink(part: int) -> None:
    """Reader and sink produce the same table in either order, with truncates, withheld columns and repeats."""
    differing = []
    for seed in range(part * HISTORIES, (part + 1) * HISTORIES):
        made = history(seed)
        table = applied(made)
        store = DictStore()
        apply([_change(event) for batch in made.batches for event in batch], store)
        by_reader: list[Any] = [{}, set()]
        for id in store.tables():
            by_reader = [_told_rows(store.rows(id)), {key[0] for key in store.incomplete(id)}]
        visible = table.visible()
        by_sink = [_told_rows(visible), {key[0] for key in visible if table.remembered[key].incomplete}]
        if by_reader != by_sink:
            differing.append((seed, by_reader, by_sink))
    assert differing == []


def _told_rows(rows: Mapping[Any, Mapping[str, Any]]) -> dict[Any, dict[str, Any]]:
    return {key[0]: {name: row.get(name) for name in COLUMNS} for key, row in rows.items()}


def _change(event: Event) -> Change:
    """Return the change from which the sink's event was read."""
    after = None if event.after is None else event.after.decode()
    made = msgspec.structs.replace(
        BLANK,
        id=str(event.index),
        table="t",
        kind="row",
        op=event.op,
        pos=event.pos,
        pos_scope=event.scope,
        ts_commit_us=event.committed,
        key=None if event.op == "t" else event.key,
        key_old=event.key_old,
        after=after,
        after_state="full" if event.full else "partial",
        unavailable=["d"] if event.withholds else None,
    )
    return Change.of(made, None)
