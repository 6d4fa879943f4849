"""The swap of March 2022 in a stream: the right declaration gives the table, and a wrong one stops in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.demo.writers.canal import DTS, DTS_FULL, DTS_LEGACY, FULL_OLD, OSS, CanalForm
from tests.sizes import examples
from tests.translator.dialects.canal.history import (
    RIGHT,
    History,
    Sent,
    histories,
    messages,
    offsets_named,
    sent,
    swapped,
    table_of,
    translated,
)

CURRENT = st.sampled_from([DTS, DTS_FULL])


def stream(history: History, swap: int, again: int, current: CanalForm) -> list[Sent]:
    swap = min(swap, len(history.changes))
    return swapped(history.changes, swap, min(again, swap), current)


class TestStream:
    """One topic that changes from the legacy to the current form, with a resent batch (issue 5)."""

    def history(self) -> History:
        history = History()
        history.new(1, 1, load=True)
        history.new(2, 2)
        history.update(1, a=3)
        history.update(2, a=None, b=None)
        history.update(2)
        history.new(3, 4, None)
        history.update(3, b="y")
        history.delete(2)
        history.update(1, a=5, b="z")
        # the restart
        history.new(4, 6)
        history.update(1, a=7, b=None)
        history.update(3, b=None, a=None)
        history.update(4)
        history.delete(3)
        history.update(4, id=5, a=8, b="w")
        return history

    @pytest.mark.parametrize("current", [DTS, DTS_FULL], ids=["changed", "full"])
    @pytest.mark.parametrize("again", [0, 1, 4, 9])
    def test_the_right_declaration_gives_the_table(self, current: CanalForm, again: int) -> None:
        """Every message is read right, including those resent in the other form."""
        history = self.history()
        result = translated(messages(stream(history, 9, again, current)), **RIGHT)
        assert (None, [], []) == (result.stopped, result.dead, result.warnings)
        assert table_of(history) == result.rows

    def test_read_as_current_it_stops_at_the_first_legacy_update(self) -> None:
        """The row was known from INIT, so nothing before it was read wrong."""
        result = translated(messages(stream(self.history(), 9, 2, DTS_FULL)), profile="dts")
        assert [0, 1] == result.offsets
        assert result.stopped is not None
        assert "offset 2 (row 0) contradicts the change at offset 0" in result.stopped
        assert [] == offsets_named(result.stopped)

    @pytest.mark.requirement("canal.reject.8")
    def test_read_as_legacy_it_stops_after_the_restart(self) -> None:
        """Resent messages can be read either way, and the error lists their offsets."""
        result = translated(messages(stream(self.history(), 9, 1, DTS_FULL)), profile="dts_legacy")
        assert result.stopped is not None
        assert "offset 11 (row 0) contradicts the change at offset 9" in result.stopped
        assert "As declared, in the message at offset 11 data contains the row before the change" in result.stopped
        assert [9] == offsets_named(result.stopped)
        assert 10 == result.offsets[-1]

    def test_without_the_rows_before(self) -> None:
        """Two updates of one key suffice. The error lists the first, already written one. Others can be wrong too."""
        history = self.history()
        part = sent((change, DTS_LEGACY, None) for change in history.changes[2:9])
        result = translated(messages(part), profile="dts")
        assert result.stopped is not None
        # update 1, update 2, and its no-op, whose row is certain and differs from the apparent result of update 2
        assert "offset 2 (row 0) contradicts the change at offset 1" in result.stopped
        assert [0, 1] == offsets_named(result.stopped)
        assert [0, 1] == result.offsets

    def test_the_direction_of_legacy_updates(self) -> None:
        """`legacy_update_direction` is also refuted, and named."""
        part = messages(sent((change, DTS_LEGACY, None) for change in self.history().changes))
        result = translated(part, profile="dts_legacy", legacy_update_direction="old_is_before")
        assert result.stopped is not None
        assert result.stopped.endswith("or legacy_update_direction, then translate these offsets again")
        assert [0, 1] == result.offsets


@given(histories(), st.integers(1, 14), st.integers(0, 6), CURRENT, st.integers(1, 14))
@examples(3)
def test_a_right_declaration_is_never_contradicted(
    history: History, swap: int, again: int, current: CanalForm, start: int
) -> None:
    """Returning rows, many changes in a second, a resent batch and a start in the middle are not evidence."""
    stream_ = messages(stream(history, swap, again, current))
    result = translated(stream_, **RIGHT)
    assert (None, []) == (result.stopped, result.dead)
    assert table_of(history) == result.rows
    assert translated(stream_[start:], **RIGHT).stopped is None


WRONG: list[dict[str, Any]] = [{"profile": "dts"}, {"profile": "dts_legacy"}]


def first_contrary(stream_: Sequence[Sent], declared_legacy: bool, current: CanalForm) -> tuple[int | None, list[int]]:
    """Return the offset at which it must stop and those read wrong before, based only on the writer's intent.

    Rows never return, and no two changes share a second. A message contradicts what is known if it or the previous one
    of its key was read wrong. A message older than that was resent and does not count. A message that only the other
    form can have is always proof.
    """
    last: dict[int, tuple[Any, bool]] = {}
    wrong: list[int] = []
    for one in stream_:
        change, row = one.change, one.change.before or one.change.after or {}
        if _proves(one, declared_legacy, current):
            return one.message.offset, wrong
        open_ = one.two_images and (one.legacy or (current.full_old or _all_changed(change)))
        misread = open_ and one.legacy != declared_legacy
        known = last.get(row["id"])
        certain = change.op in ("insert", "load")
        if known is not None and not certain and change.at > known[0] and (misread or known[1]):
            return one.message.offset, wrong
        if misread:
            wrong.append(one.message.offset)
        last[row["id"]] = change.at, misread
        if change.op == "delete":
            del last[row["id"]]
    return None, wrong


def _proves(one: Sent, declared_legacy: bool, current: CanalForm) -> bool:
    if one.change.op == "delete":
        return one.legacy != declared_legacy
    sparse = one.two_images and not one.legacy and not current.full_old and not _all_changed(one.change)
    return sparse and declared_legacy


def _all_changed(change: Any) -> bool:
    return all(change.before[name] != value for name, value in change.after.items())


@given(
    histories(unique=True, key_changes=False), st.integers(1, 14), st.integers(0, 6), CURRENT, st.sampled_from(WRONG)
)
@examples(3)
def test_a_wrong_declaration_stops_at_the_first_contrary_row(
    history: History, swap: int, again: int, current: CanalForm, wrong: dict[str, Any]
) -> None:
    """Nothing is written from the contrary message on, and the offsets to repair are those read wrong.

    A proof of the other form can come before correctly read updates are confirmed. The error then lists those too.
    """
    stream_ = stream(history, swap, again, current)
    result = translated(messages(stream_), **wrong)
    stop, misread = first_contrary(stream_, wrong["profile"] == "dts_legacy", current)
    assert (stop is None) == (result.stopped is None), result.stopped
    if result.stopped is not None:
        assert f"offset {stop} (row 0)" in result.stopped
        named = offsets_named(result.stopped)
        assert misread == named or (" contradicts " not in result.stopped and set(misread) <= set(named))
        # An UPDATE without changes has nothing in old. It may be the old row, so it is a dead letter.
        empty = {one.message.offset for one in stream_ if one.change.op == "update" and not one.two_images}
        written = [offset for offset in range(int(stop or 0)) if offset in result.offsets or offset not in empty]
        assert written == result.offsets
        assert len(result.dead) == int(stop or 0) - len(written)


_OF_THE_WRITER = ("variant", "variant_basis", "notes", "before_state")


def canonical(sent_: Sequence[Sent], profile: str) -> list[dict[str, Any]]:
    """Return the events without fields that identify the writer or depend on it.

    Open-source canal has no type for a row of a full load. For an update without changes, it has an empty `old`, and
    then the old row is unknown.
    """
    result = translated(messages(sent_), profile=profile)
    assert (None, []) == (result.stopped, result.dead)
    events = [{name: event[name] for name in event if name not in _OF_THE_WRITER} for event in result.events]
    for one, event in zip(sent_, events, strict=True):
        event["op"] = "c" if event["op"] == "r" else event["op"]
        if one.change.before == one.change.after:
            assert event.pop("before") in (None, event["after"])
            assert not event.pop("changed")
    return events


@given(histories(), st.booleans())
def test_one_history_in_all_forms_is_one_sequence_of_rows(history: History, twice: bool) -> None:
    """Open-source canal, both kinds of DTS and full images in `old` give the same old and new rows."""
    forms = {
        "oss": OSS,
        "dts": DTS_FULL if twice else DTS,
        "dts_legacy": DTS_LEGACY,
        "flink_cdc": FULL_OLD,
    }
    results = {
        profile: canonical(sent((change, form, None) for change in history.changes), profile)
        for profile, form in forms.items()
    }
    for profile, events in results.items():
        assert results["oss"] == events, profile
