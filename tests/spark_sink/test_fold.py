"""The fold against a plain model: any history, cut anywhere, delivered again from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_sink.fold import Event, Folded, Key, Mark, Row, fold
from spark_sink.values import image
from tests.spark_sink.changes import OTHER_SCOPE, change, folding
from translator.envelope import position

Table = dict[Key, dict[str, Any]]


class Stored:
    """What a table does with folded rows, as a dictionary."""

    def __init__(self) -> None:
        self.rows: Table = {}
        self.marks: dict[Key, Mark] = {}

    def apply(self, events: Sequence[Event]) -> Folded:
        texts = {text for event in events for text in (event.key, event.key_old) if text}
        folded = fold(events, {text: tuple(image(text).values()) for text in texts}, self.marks)
        before = dict(self.rows)
        for key, row in folded.rows.items():
            self.rows.pop(key, None)
            self.marks.pop(key, None)
            if row.exists:
                self._write(key, row, before)
        return folded

    def _write(self, key: Key, row: Row, before: Table) -> None:
        written = dict(before[row.base]) if row.base is not None else {}
        for event in row.images:
            sent = image(event.after or "{}")
            written.update(sent)
        written["id"] = key[0]
        assert row.scope is not None
        seen = {scope: pos for scope, pos in row.positions.items() if scope != row.scope}
        self.rows[key] = written
        self.marks[key] = Mark(row.scope, row.positions[row.scope], seen, row.incomplete)


def model(events: Sequence[Event]) -> Table:
    """The table after the history, each event once, in order."""
    table: Table = {}
    for event in events:
        key = tuple(image(event.key).values())
        old = table.pop(tuple(image(event.key_old).values()), {}) if event.key_old else table.get(key, {})
        if event.op == "d":
            table.pop(key, None)
            continue
        sent = image(event.after or "{}")
        written = {} if event.resets else dict(old)
        table[key] = {**written, **sent, "id": key[0]}
    return table


@st.composite
def histories(draw: st.DrawFn, *, deletes: bool = True) -> list[Event]:
    """Changes of few rows, such as one source makes them: keys move only to keys that are free."""
    events: list[Event] = []
    alive: set[int] = set()
    for pos in range(draw(st.integers(1, 25))):
        key = draw(st.integers(0, 3))
        columns = draw(st.dictionaries(st.sampled_from("abc"), st.sampled_from([None, "x", "y", "z"])))
        free = [other for other in range(4) if other not in alive]
        if key not in alive:
            made = change("c", {"id": key}, columns, pos=pos)
            alive.add(key)
        elif deletes and draw(st.integers(0, 4)) == 0:
            made = change("d", {"id": key}, pos=pos)
            alive.discard(key)
        elif deletes and free and draw(st.integers(0, 3)) == 0:
            made = change("u", {"id": free[0]}, columns, key_old={"id": key}, pos=pos, full=draw(st.booleans()))
            alive ^= {key, free[0]}
        else:
            made = change("u", {"id": key}, columns, pos=pos, full=draw(st.booleans()))
        events.append(folding(made, index=pos))
    return events


@st.composite
def deliveries(draw: st.DrawFn, history: Sequence[Event]) -> list[list[Event]]:
    """The history in batches cut anywhere; some batches begin again at an earlier event, as after a restart."""
    batches = []
    reached = 0
    while reached < len(history):
        start = draw(st.integers(0, reached))
        end = draw(st.integers(reached + 1, len(history)))
        if draw(st.booleans()):
            batches.append([*history[reached:end], *history[start:end]])
        else:
            batches.append(list(history[start if draw(st.booleans()) else reached : end]))
        reached = end
    return batches


@settings(max_examples=300)
@given(st.data())
def test_any_delivery_gives_the_table(data: st.DataObject) -> None:
    """However a history is cut into batches, and wherever a delivery begins again, the table is that of the history."""
    history = data.draw(histories())
    stored = Stored()
    for batch in data.draw(deliveries(history)):
        stored.apply(batch)
    assert model(history) == stored.rows


@settings(max_examples=200)
@given(st.data())
def test_scopes_do_not_forget_each_other(data: st.DataObject) -> None:
    """A row that two scopes write takes each event once, although each scope is delivered again on its own."""
    history = data.draw(histories(deletes=False))
    scopes = [data.draw(st.sampled_from([event.scope, OTHER_SCOPE])) for event in history]
    history = [msgspec.structs.replace(e, scope=scope) for e, scope in zip(history, scopes, strict=True)]
    stored = Stored()
    for count, event in enumerate(history, 1):
        again = [e for e in history[:count] if e.scope == event.scope]
        stored.apply([event, *again[data.draw(st.integers(0, len(again))) :]])
    assert model(history) == stored.rows


def test_duplicates_and_scope_changes_are_counted() -> None:
    """What is not applied, and where the order of the topic decided, can be seen."""
    one = folding(change("c", {"id": 1}, {"a": "x"}, pos=1))
    two = folding(change("u", {"id": 1}, {"a": "y"}, pos=1, scope=OTHER_SCOPE))
    folded = Stored().apply([one, one, two])
    assert (1, 1) == (folded.duplicates, folded.scope_changes)


def test_reset_with_a_withheld_value_is_incomplete() -> None:
    """An insert whose value has no faithful form makes an incomplete row."""
    stored = Stored()
    stored.apply([folding(change("c", {"id": 1}, {"b": "y"}, pos=1, full=False, issues=["a"]))])
    assert stored.marks[(1,)].incomplete


def test_issue_of_the_old_value() -> None:
    """An issue of the image before takes nothing from the image after: the new value is written, the row is whole."""
    stored = Stored()
    stored.apply([folding(change("c", {"id": 1}, {"a": "x", "b": "y"}, pos=1))])
    stored.apply([folding(change("u", {"id": 1}, {"a": "new", "b": "z"}, pos=2, issues=["a"]))])
    assert {"id": 1, "a": "new", "b": "z"} == stored.rows[(1,)]
    assert not stored.marks[(1,)].incomplete
    stored.apply([folding(change("u", {"id": 1}, {"a": "newer"}, pos=3, full=False, issues=["a"]))])
    assert {"id": 1, "a": "newer", "b": "z"} == stored.rows[(1,)]


def test_move_onto_a_row_that_went_on() -> None:
    """Each side of a key change is guarded on its own: the old key's newer row stays, and completes nothing."""
    stored = Stored()
    stored.apply([folding(change("c", {"id": 1}, {"a": "newer"}, pos=9))])
    stored.apply([folding(change("u", {"id": 2}, {"b": "y"}, key_old={"id": 1}, pos=5, full=False))])
    assert {(1,): {"id": 1, "a": "newer"}, (2,): {"id": 2, "b": "y"}} == stored.rows
    assert stored.marks[(2,)].incomplete


def test_untouched_rows_are_not_written() -> None:
    """A batch of duplicates touches no row, so nothing is committed."""
    stored = Stored()
    event = folding(change("c", {"id": 1}, {"a": "x"}, pos=1))
    stored.apply([event])
    assert {} == stored.apply([event]).rows


@settings(max_examples=100)
@given(st.data())
def test_native_positions(data: st.DataObject) -> None:
    """`order: native`: full rows of one scope come in any order, from several partitions; the latest sequence stands.

    A reload in a new epoch stands over everything before it, though its rows have no sequence.
    """
    count = data.draw(st.integers(1, 6))
    changes = [change("u" if number else "c", {"id": 1}, {"a": str(number)}, pos=number) for number in range(count)]
    places = [position(data.draw(st.integers(0, 99)), 0, native=10**34 + number) for number in range(count)]
    if data.draw(st.booleans()):
        changes.append(change("r", {"id": 1}, {"a": "reloaded"}, pos=count))
        places.append(position(0, 0, native=0, epoch=1))
    events = [
        msgspec.structs.replace(folding(made), pos=place, scope="native:erp/t")
        for made, place in zip(changes, places, strict=True)
    ]
    stored = Stored()
    for event in data.draw(st.permutations(events)):
        stored.apply([event])
    assert model(events) == stored.rows
