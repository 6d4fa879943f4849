"""Single rules of the fold, each with a suitable history. test_model.py covers the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import pytest

from cdc_core.envelope import ChangeEvent
from cdc_core.position import position
from cdc_core.table_id import TableId
from spark_sink.apply.mirror import MirrorChanges, fold_into_changes
from spark_sink.apply.truncate import truncate
from spark_sink.errors import Reason, Refused
from spark_sink.model.event import Event, gap
from spark_sink.schema.evolution import Plan, evolve
from spark_sink.tables.changes import Marker
from tests.spark_sink.changes import OTHER_SCOPE, change, folding, schema_of
from tests.spark_sink.memory import MemoryTable

SCHEMA = schema_of({"id": "int64", "a": "string", "b": "string"})
PLAN: Plan = evolve(None, TableId.of(SCHEMA), [], SCHEMA)

NATIVE = "native:shop/task"


class Stored(MemoryTable):
    """A table that applies events one batch at a time."""

    def __init__(self) -> None:
        super().__init__(PLAN.shape)

    def apply(self, *events: Event) -> MirrorChanges:
        numbered = [msgspec.structs.replace(event, index=i) for i, event in enumerate(events)]
        settled = fold_into_changes(numbered, self, PLAN)
        if settled.changes:
            self.write(settled.changes, Marker("app", 0))
        return settled

    def told(self) -> list[tuple[int, str | None, str | None]]:
        """Return the existing complete rows by id."""
        known = [row for key, row in self.visible().items() if not self.remembered[key].incomplete]
        return sorted((row["id"], row["a"], row["b"]) for row in known)

    def flagged(self) -> list[tuple[int, str | None, str | None]]:
        """Return the existing incomplete rows by id."""
        unsure = [row for key, row in self.visible().items() if self.remembered[key].incomplete]
        return sorted((row["id"], row["a"], row["b"]) for row in unsure)


def arrived(made: ChangeEvent) -> Event:
    """Return an event with its position in the topic."""
    return folding(made)


def native(made: ChangeEvent, *, epoch: int = 0, offset: int = 0) -> Event:
    """Return an event with a native position as its `pos`. Snapshot rows have none."""
    number = int(made.pos.split(".")[2])
    at = position(offset, number if made.op == "r" else 0, native=0 if made.op == "r" else number, epoch=epoch)
    return msgspec.structs.replace(folding(made), pos=at, scope=NATIVE)


def insert(id: int, a: str | None, b: str | None, *, pos: int) -> ChangeEvent:
    return change("c", {"id": id}, {"a": a, "b": b}, pos=pos)


def patch(id: int, *, pos: int, **columns: str | None) -> ChangeEvent:
    return change("u", {"id": id}, columns, pos=pos, full=False)


def delete(id: int, *, pos: int) -> ChangeEvent:
    return change("d", {"id": id}, pos=pos)


def test_a_late_change_does_not_bring_a_row_back() -> None:
    """C4: a deleted row remains deleted when an earlier event arrives late, in either order."""
    for early in (insert(1, "x", "y", pos=1), patch(1, a="x", pos=2)):
        table = Stored()
        table.apply(native(delete(1, pos=3)))
        table.apply(native(early))
        assert {} == table.visible()
    table = Stored()
    table.apply(arrived(insert(1, "x", "y", pos=1)), arrived(delete(1, pos=3)))
    table.apply(arrived(insert(1, "x", "y", pos=1)))
    assert {} == table.visible()


def test_a_late_patch_is_not_lost() -> None:
    """Under native order, an earlier patch writes the columns that no later event wrote, including nulls."""
    table = Stored()
    table.apply(native(insert(1, "x", "y", pos=1)), native(patch(1, a="late wins", pos=9)))
    table.apply(native(patch(1, a="loses", b=None, pos=5)))
    assert [(1, "late wins", None)] == table.told()


def test_a_patch_before_its_insert() -> None:
    """C7: a patch of an unknown row creates a marked row. A late insert completes it without reverting anything."""
    table = Stored()
    table.apply(native(patch(1, a="x", pos=9)))
    assert [(1, "x", None)] == table.flagged()
    table.apply(native(insert(1, "old", "y", pos=5)))
    assert [(1, "x", "y")] == table.told()


def test_an_insert_on_its_way_after_a_delete() -> None:
    """A patch beyond a delete shows that the row exists again. A delete between them removes only earlier values."""
    table = Stored()
    table.apply(native(insert(1, "x", "y", pos=1)), native(patch(1, a="new", pos=9)))
    table.apply(native(delete(1, pos=5)))
    assert [(1, "new", None)] == table.flagged()
    table.apply(native(insert(1, "c", "c", pos=7)))
    assert [(1, "new", "c")] == table.told()
    table.apply(native(delete(1, pos=10)))
    table.apply(native(patch(1, a="again", pos=12)))
    assert [(1, "again", None)] == table.flagged()


def test_reset_with_a_withheld_value_is_incomplete() -> None:
    """An insert with a value without a faithful form creates a marked row. A full image completes it."""
    table = Stored()
    table.apply(arrived(change("c", {"id": 1}, {"b": "y"}, pos=1, full=False, issues=["a"])))
    assert [(1, None, "y")] == table.flagged()
    table.apply(arrived(change("u", {"id": 1}, {"a": "x", "b": "y"}, pos=2, issues=["a"])))
    assert [(1, "x", "y")] == table.told()


def test_a_gap_marks_its_row() -> None:
    """A row with a quarantined event is marked until a later full image, whichever arrives first."""
    bad = gap(arrived(patch(1, a="?", pos=2)))
    table = Stored()
    table.apply(arrived(insert(1, "x", "y", pos=1)), bad)
    assert [(1, "x", "y")] == table.flagged()
    table.apply(arrived(insert(1, "z", "z", pos=3)))
    table.apply(bad)
    assert [(1, "z", "z")] == table.told()
    table = Stored()
    table.apply(native(patch(1, a="x", pos=9)), gap(native(patch(1, a="?", pos=5))))
    table.apply(native(insert(1, "x", "y", pos=1)))
    assert [(1, "x", "y")] == table.flagged()
    table.apply(native(insert(1, "x", "z", pos=6)))
    assert [(1, "x", "z")] == table.told()


def test_a_gap_in_a_move_marks_the_row_that_stays() -> None:
    """A quarantined key change marks the row that should have been removed."""
    table = Stored()
    moved = change("u", {"id": 2}, {"a": "?"}, key_old={"id": 1}, pos=2)
    table.apply(arrived(insert(1, "x", "y", pos=1)), gap(arrived(moved)))
    assert ([], [(1, "x", "y")]) == (table.told(), table.flagged())


def test_move_onto_a_row_that_went_on() -> None:
    """Each side of a key change is checked separately: the old key's newer row remains and completes nothing."""
    table = Stored()
    table.apply(arrived(insert(1, "newer", "n", pos=9)))
    table.apply(arrived(change("u", {"id": 2}, {"b": "y"}, key_old={"id": 1}, pos=5, full=False)))
    assert ([(1, "newer", "n")], [(2, None, "y")]) == (table.told(), table.flagged())


def test_a_swap_of_two_keys() -> None:
    """C9: two rows swap their keys through a third one, in one batch or in three."""
    moves = [(1, 3), (2, 1), (3, 2)]
    for cuts in (False, True):
        table = Stored()
        table.apply(arrived(insert(1, "one", None, pos=1)), arrived(insert(2, "two", None, pos=2)))
        events = [
            arrived(change("u", {"id": new}, {}, key_old={"id": old}, pos=10 + i, full=False))
            for i, (old, new) in enumerate(moves)
        ]
        for batch in [[event] for event in events] if cuts else [events]:
            table.apply(*batch)
        assert [(1, "two", None), (2, "one", None)] == table.told()


def test_stale_events_are_counted_by_reason() -> None:
    """Events without effect are counted as known, overtaken by a later reset, or before a truncate."""
    table = Stored()
    table.floors = {NATIVE: native(delete(1, pos=3)).pos}
    settled = table.apply(
        native(insert(1, "x", "y", pos=6)),
        native(insert(1, "x", "y", pos=6)),
        native(patch(1, a="z", pos=9)),
        native(patch(1, a="z", pos=9)),
        native(patch(1, b="z", pos=8)),
        native(patch(1, b="z", pos=8)),
        native(insert(1, "x", "y", pos=5)),
        native(insert(1, "x", "y", pos=2)),
    )
    assert {"duplicate": 3, "superseded": 1, "truncated": 1} == settled.stale
    assert 1 == settled.late


def test_scope_changes_are_counted() -> None:
    """The metrics show where topic order decided. A scope that was left reverts nothing."""
    table = Stored()
    other = change("u", {"id": 1}, {"a": "other", "b": "o"}, pos=1, scope=OTHER_SCOPE)
    settled = table.apply(arrived(insert(1, "x", "y", pos=5)), arrived(other))
    assert (1, [(1, "other", "o")]) == (settled.scope_changes, table.told())
    settled = table.apply(arrived(insert(1, "x", "y", pos=5)))
    assert ({"duplicate": 1}, [(1, "other", "o")]) == (settled.stale, table.told())


def test_an_undecided_removal() -> None:
    """If two rows had a key at the same commit time, a removal is counted, because it can be for either row."""
    table = Stored()
    events = [insert(1, "first", "f", pos=1), insert(1, "second", "s", pos=2), delete(1, pos=3)]
    made = [arrived(msgspec.structs.replace(event, ts_commit_us=5)) for event in events]
    assert [0, 0, 1] == [table.apply(event).undecided for event in made]
    assert [(1, "second", "s")] == table.flagged()
    later = [msgspec.structs.replace(delete(id, pos=4), ts_commit_us=6) for id in (1, 2)]
    assert ([0, 0], {}) == ([table.apply(arrived(event)).undecided for event in later], table.visible())


def test_untouched_rows_are_not_written() -> None:
    """A batch of duplicates changes no row, so nothing is committed."""
    table = Stored()
    table.apply(arrived(insert(1, "x", "y", pos=1)))
    assert not table.apply(arrived(insert(1, "x", "y", pos=1))).changes


@pytest.mark.parametrize("before", ["row", "deleted", "truncated"])
def test_an_unannounced_reload_stops_the_table(before: str) -> None:
    """If a snapshot row without a native position meets changed rows, it is unknown which is newer."""
    table = Stored()
    reloaded = native(change("r", {"id": 1}, {"a": "r", "b": "r"}, pos=99), offset=7)
    if before == "truncated":
        table.floors = {NATIVE: native(delete(1, pos=3)).pos}
    else:
        table.apply(native(insert(1, "x", "y", pos=6)))
    if before == "deleted":
        table.apply(native(delete(1, pos=7)))
    with pytest.raises(Refused, match="epochs") as refused:
        table.apply(reloaded)
    assert Reason.RELOAD_UNANNOUNCED == refused.value.reason


def test_an_announced_reload() -> None:
    """In a new epoch, a snapshot row overrides all earlier changes, and their duplicates have no effect."""
    table = Stored()
    table.apply(native(insert(1, "x", "y", pos=6)))
    table.apply(native(change("r", {"id": 1}, {"a": "r", "b": "r"}, pos=1), epoch=1))
    table.apply(native(insert(1, "x", "y", pos=6)), native(patch(1, a="late", pos=8)))
    assert [(1, "r", "r")] == table.told()
    table.apply(native(patch(1, a="next", pos=2), epoch=1))
    table.apply(native(change("r", {"id": 1}, {"a": "old load", "b": "r"}, pos=1)))
    assert [(1, "next", "r")] == table.told()


def test_the_load_that_a_row_began_with_may_come_again() -> None:
    """A replayed load is not a reload: the row remembers the snapshot row that it began with, even if deleted."""
    table = Stored()
    load = native(change("r", {"id": 1}, {"a": "r", "b": "r"}, pos=1))
    table.apply(load)
    table.apply(native(patch(1, a="x", pos=5)))
    assert {"duplicate": 1} == table.apply(load).stale
    table.apply(native(delete(1, pos=6)))
    assert {"duplicate": 1} == table.apply(load).stale
    assert {} == table.visible()


def test_arrival_order_remembers_no_columns() -> None:
    """Column positions are stored only for native order. Rows of other scopes have no such state."""
    table = Stored()
    events: Iterable[ChangeEvent] = (insert(1, "x", "y", pos=1), patch(1, a="z", pos=2))
    table.apply(*map(arrived, events))
    (mark,) = table.remembered.values()
    assert ({}, None) == (mark.memory.columns, mark.memory.reset)


@pytest.mark.parametrize("scopes", [(arrived, OTHER_SCOPE), (native, "native:shop/other")])
def test_positions_of_another_scope_say_nothing(scopes: tuple[Callable[[ChangeEvent], Event], str]) -> None:
    """A reset of another scope overrides everything before it, although its position is lower."""
    make, other = scopes
    reset = change("c", {"id": 1}, {"b": "z"}, pos=3, full=False, issues=["a"])
    first = make(insert(1, "x", "y", pos=1)), make(patch(1, a="late", pos=9))
    then = msgspec.structs.replace(make(reset), scope=other)
    for batches in ([[*first, then]], [first, [then]]):
        table = Stored()
        for batch in batches:
            table.apply(*batch)
        assert [(1, None, "z")] == table.flagged()


def test_a_scope_that_comes_back() -> None:
    """If a scope writes again after another one, its events from before the end of its first turn remain stale."""
    table = Stored()
    first = native(insert(1, "first", "f", pos=5))
    table.apply(first)
    other = native(change("u", {"id": 1}, {"a": "other", "b": "o"}, pos=1))
    table.apply(msgspec.structs.replace(other, scope="native:shop/other"))
    table.apply(native(patch(1, a="again", pos=9)))
    table.apply(native(patch(1, b="late", pos=4)), first)
    assert [(1, "again", "o")] == table.told()


@pytest.mark.parametrize("make", [arrived, native])
def test_a_partial_key_change(make: Callable[[ChangeEvent], Event]) -> None:
    """The new row is completed from the old one. Under native order it is marked, because a later-arriving change of
    the old row would not reach the new one.
    """
    table = Stored()
    moved = change("u", {"id": 2}, {"b": "z"}, key_old={"id": 1}, pos=5, full=False)
    table.apply(make(insert(1, "x", "y", pos=1)))
    table.apply(make(moved))
    row = [(2, "x", "z")]
    assert (([], row) if make is native else (row, [])) == (table.told(), table.flagged())
    table.apply(make(insert(2, "x", "w", pos=9)))
    assert [(2, "x", "w")] == table.told()


def test_a_key_change_begins_a_turn() -> None:
    """A full image after a key change replaces everything, including a patch at a higher position in another scope."""
    table = Stored()
    other = "native:shop/other"
    table.apply(
        native(insert(1, "x", "y", pos=1)),
        msgspec.structs.replace(native(patch(1, a="other", pos=90)), scope=other),
        native(patch(1, b="z", pos=5)),
        native(change("u", {"id": 2}, {"b": "moved"}, key_old={"id": 1}, pos=6, full=False)),
        native(insert(2, "new", "n", pos=7)),
    )
    assert [(2, "new", "n")] == table.told()


def test_a_late_key_change_keeps_what_is_later() -> None:
    """A partial key change that arrives after later patches of its new row reverts none of them."""
    table = Stored()
    table.apply(native(insert(1, "x", "y", pos=1)), native(patch(2, a="later", pos=9)))
    table.apply(native(change("u", {"id": 2}, {"a": "m", "b": "m"}, key_old={"id": 1}, pos=5, full=False)))
    assert ([], [(2, "later", "m")]) == (table.told(), table.flagged())


def test_positions_of_columns_end_with_their_turn() -> None:
    """What another scope's patch wrote in the same batch does not block a patch of the current scope."""
    table = Stored()
    other = "native:shop/other"
    table.apply(
        native(insert(1, "x", "y", pos=5)),
        native(patch(1, a="first", pos=9)),
        msgspec.structs.replace(native(patch(1, b="second", pos=3)), scope=other),
    )
    table.apply(msgspec.structs.replace(native(patch(1, a="third", pos=4)), scope=other))
    assert [(1, "third", "second")] == table.told()


def test_a_late_truncate() -> None:
    """A truncate between an insert and an earlier patch keeps the patch's values, marked, even if it is repeated."""
    table = Stored()
    table.apply(
        native(insert(1, "x", "y", pos=1)), native(patch(1, a="new", pos=9)), native(insert(2, "x", "y", pos=2))
    )
    late = native(change("t", None, pos=5))
    for _ in range(2):
        truncate(late, table, PLAN, Marker("app", 1), 7, all_scopes=False)
        assert ([], [(1, "new", None)]) == (table.told(), table.flagged())
    table.apply(native(insert(1, "c", "c", pos=7)))
    truncate(late, table, PLAN, Marker("app", 1), 7, all_scopes=False)
    assert [(1, "new", "c")] == table.told()


def test_a_truncate_lowers_no_floor() -> None:
    """A row can have a lower floor for another scope than an earlier truncate set. The truncate's floor remains."""
    table = Stored()
    other = "native:shop/other"
    floor = native(delete(1, pos=9)).pos
    table.apply(msgspec.structs.replace(native(insert(1, "x", "y", pos=3)), scope=other))
    table.apply(native(patch(1, a="new", pos=20)))
    table.floors = {other: floor}
    truncate(native(change("t", None, pos=15)), table, PLAN, Marker("app", 1), 7, all_scopes=True)
    assert floor == table.floors[other]


def test_a_truncate_met_again_spares_a_later_turn() -> None:
    """After a truncate, another scope writes a row, and then the truncate's scope. A duplicate truncate keeps it."""
    table = Stored()
    other = "native:shop/other"
    late = native(change("t", None, pos=5))
    table.apply(native(insert(2, "x", "y", pos=1)))
    truncate(late, table, PLAN, Marker("app", 1), 7, all_scopes=True)
    table.apply(msgspec.structs.replace(native(insert(1, "x", "y", pos=3)), scope=other))
    table.apply(native(patch(1, a="new", pos=9)))
    truncate(late, table, PLAN, Marker("app", 1), 7, all_scopes=True)
    assert [(1, "new", "y")] == table.told()
