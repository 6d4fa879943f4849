"""The quick fold gives what the plain one gives, and steps back where it cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from spark_sink.model.event import (
    GAP,
    Event,
    Key,
)
from spark_sink.model.fold import Folded, fold
from spark_sink.model.fold_in_order import quick_fold
from spark_sink.model.row import (
    FoldedRow,
    Memory,
    RowMark,
)
from tests.spark_sink.changes import OTHER_SCOPE, SCOPE
from tests.spark_sink.histories import History, history

SEEDS = range(1500)

KEY: Key = (1,)
EVENT = Event(0, "r", '{"id":1}', None, SCOPE, "2", b'{"id":1,"a":"x"}', True, False, None, 7)


def test_any_history() -> None:
    """Batch after batch onto what the plain fold has left: the same rows, or none."""
    taken = sum(compared(history(seed)) for seed in SEEDS)
    assert 100 < taken, "histories have changed: too few of them are for the quick fold"


def compared(made: History) -> int:
    """How many batches the quick fold took."""
    marks: dict[Key, RowMark] = {}
    taken = 0
    for batch in made.batches:
        events = [event for event in batch if event.op != "t"]
        keys = {text: (json.loads(text)["id"],) for e in events for text in (e.key, e.key_old) if text is not None}
        plain = fold(events, keys, marks, {})
        quick = quick_fold(events, keys, marks, {})
        if quick is not None:
            taken += 1
            assert seen(plain) == seen(quick), made.seed
        for key, row in plain.rows.items():
            # as a table gives it back
            marks[key] = msgspec.convert(msgspec.to_builtins(row.mark(row.content(read).columns)), RowMark)
    return taken


def read(event: Event) -> Mapping[str, Any]:
    image: dict[str, Any] = json.loads(event.after or "{}")
    return image


def seen(folded: Folded[FoldedRow]) -> object:
    """All that is asked of folded rows, and what was counted."""
    rows = {}
    for key, row in folded.rows.items():
        content = row.content(read)
        kept = row.stored is not None and row.keeps("a")
        rows[key] = (row.exists, row.stored, row.deleted_at, content, kept, row.mark(content.columns))
    return rows, folded.stale, folded.late, folded.scope_changes


@pytest.mark.parametrize(
    "mark", [None, RowMark(SCOPE, "1", deleted=True), RowMark(SCOPE, "1"), RowMark(SCOPE, "1", True)]
)
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"op": "u", "full": False},
        {"op": "u", "full": False, "withholds": True},
        {"op": "u", "full": False, "schema_id": "1"},
        {"withholds": True},
        {"withholds": True, "full": False},
        {"full": False, "schema_id": "1"},
        {"op": "d"},
    ],
)
def test_one_event(change: Mapping[str, Any], mark: RowMark | None) -> None:
    """Whatever is stored, and whatever comes: also a patch of a row that is unknown, or deleted."""
    event = msgspec.structs.replace(EVENT, **change)
    given: Any = ([event], {event.key: KEY}, {} if mark is None else {KEY: mark}, {})
    quick = quick_fold(*given)
    assert quick is not None
    assert seen(fold(*given)) == seen(quick)


@pytest.mark.parametrize(
    ("change", "mark"),
    [
        ({"op": GAP}, None),
        ({"key_old": '{"id":2}'}, None),
        ({"scope": "native:shop/task"}, None),
        ({"op": "c"}, RowMark(SCOPE, "1")),
        ({}, RowMark(OTHER_SCOPE, "1")),
        ({}, RowMark(SCOPE, "1", memory=Memory(seen={OTHER_SCOPE: "1"}))),
    ],
    ids=["quarantine", "key change", "any order", "key of another row", "other scope before", "memory"],
)
def test_what_it_leaves_to_the_plain_fold(change: Mapping[str, Any], mark: RowMark | None) -> None:
    event = msgspec.structs.replace(EVENT, **change)
    assert quick_fold([event], {event.key: KEY}, {} if mark is None else {KEY: mark}, {}) is None
    assert quick_fold([EVENT], {EVENT.key: KEY}, {}, {}) is not None


def test_a_floor() -> None:
    """What lies up to a truncate is counted, and changes nothing."""
    for floor in ("1", "2"):
        quick = quick_fold([EVENT], {EVENT.key: KEY}, {}, {SCOPE: floor})
        assert quick is not None
        assert seen(fold([EVENT], {EVENT.key: KEY}, {}, {SCOPE: floor})) == seen(quick)
