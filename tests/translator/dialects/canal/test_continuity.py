"""The continuity check: what counts as evidence of a wrong declaration, what does not, and what it reports."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec import structs

from dev.demo.shop import START, Row, ShopChange
from dev.demo.writers.canal import DTS, DTS_FULL, DTS_LEGACY, OSS, CanalForm
from tests.translator.dialects.canal.history import (
    RIGHT,
    TABLE,
    History,
    Result,
    legacy,
    messages,
    offsets_named,
    sent,
    swapped,
    translated,
)
from tests.translator.dialects.canal.messages import UPDATE, canal, message, update
from translator.dialects.canal.continuity import ContinuityGuard
from translator.dialects.canal.unconfirmed import LISTED, Unconfirmed, unconfirmed_text
from translator.message import Changes


class TestWithoutTheRowsBefore:
    """If a topic is read from the middle, only later changes can show how to read the first update of a key."""

    def read(self, history: History, *forms: CanalForm, profile: str = "dts") -> Result:
        """Read the changes without the first, each in its form."""
        return translated(
            messages(sent(zip(history.changes[1:], forms, [None] * len(forms), strict=True))), profile=profile
        )

    def history(self, *values: int) -> History:
        history = History()
        history.new(1, values[0])
        for value in values[1:]:
            history.update(1, a=value)
        return history

    @pytest.mark.parametrize("form", [DTS, DTS_FULL, DTS_LEGACY], ids=["changed", "current", "legacy"])
    def test_the_next_update_tells(self, form: CanalForm) -> None:
        """The next update shows that the previous one was read wrong, in whichever way it is read itself."""
        result = self.read(self.history(1, 2, 3), DTS_LEGACY, form)
        assert result.stopped is not None
        assert "offset 1 (row 0) contradicts the change at offset 0" in result.stopped
        assert [0] == offsets_named(result.stopped)
        assert [0] == result.offsets

    def test_there_and_back(self) -> None:
        """A row that changes back fits both readings and confirms neither."""
        result = self.read(self.history(1, 2, 1, 3), *[DTS_LEGACY] * 3)
        assert result.stopped is not None
        assert [0, 1] == offsets_named(result.stopped)
        assert [0, 1] == result.offsets

    def test_a_confirmed_legacy_update_confirms_those_before(self) -> None:
        """The form changes only once, so every update before a legacy one is legacy."""
        history = self.history(0, 1)
        history.new(2, 1)
        history.update(2, a=2)
        history.update(2, a=3)
        result = self.read(history, DTS_LEGACY, DTS_LEGACY, DTS_LEGACY, DTS_FULL, profile="dts_legacy")
        assert result.stopped is not None
        assert "offset 3 (row 0) contradicts the change at offset 2" in result.stopped
        assert [] == offsets_named(result.stopped)

    def test_what_a_current_update_confirms(self) -> None:
        """A current update confirms itself and the previous one. Earlier ones can be from before the swap."""
        history = self.history(0, 1)
        history.new(2, 1)
        history.update(2, a=2)
        history.update(1, a=3)
        result = self.read(history, DTS_LEGACY, DTS, DTS_FULL, DTS_FULL)
        assert result.stopped is not None
        assert [0] == offsets_named(result.stopped)


@pytest.mark.parametrize("form", [DTS_FULL, DTS_LEGACY], ids=["current", "legacy"])
def test_a_key_that_was_null_for_a_while_is_no_contradiction(form: CanalForm) -> None:
    """While it contained NULL, the row had no key, so the last known row of the key is outdated."""
    rows: list[Row] = [
        {"id": 5, "a": 1},
        {"id": None, "a": 1},
        {"id": None, "a": 2},
        {"id": 5, "a": 2},
        {"id": 5, "a": 1},
    ]
    changes = [
        ShopChange("update" if before else "insert", TABLE, START + timedelta(seconds=n), before, after)
        for n, (before, after) in enumerate(zip([None, *rows], rows, strict=False))
    ]
    profile = "dts_legacy" if form.legacy else "dts"
    result = translated(messages(sent((change, form, None) for change in changes)), profile=profile)
    assert (None, 5) == (result.stopped, len(result.events))


def test_a_key_change_is_judged_by_the_rows_of_both_keys() -> None:
    """The old row is the one whose key is known."""
    history = History()
    history.new(1, 1)
    history.update(1, id=2, a=5)
    result = translated(legacy(history), profile="dts")
    assert result.stopped is not None
    assert "offset 1 (row 0) contradicts the change at offset 0" in result.stopped


class TestOption:
    def history(self) -> History:
        history = History()
        history.new(1, 1)
        for number in range(2, 8):
            history.update(1, a=number)
        return history

    def test_warn(self) -> None:
        """With `warn`, every event is written, and contradictions 1, 2 and 4 of the six are reported."""
        result = translated(legacy(self.history()), profile="dts", continuity={"action": "warn"})
        assert list(range(7)) == result.offsets
        assert ["offset 1", "offset 2", "offset 4"] == [
            re.search(r"change at (offset \d+) \(row", warning)[1]  # type: ignore[index]
            for warning in result.warnings
        ]
        assert [1, 2, 3] == offsets_named(result.warnings[-1])

    @pytest.mark.parametrize("options", [{"profile": "dts", "continuity": {"action": "off"}}, {"profile": "flink_cdc"}])
    def test_off(self, options: dict[str, Any]) -> None:
        """The check is off by setting, or because the writer is not DTS."""
        result = translated(legacy(self.history()), **options)
        assert (None, []) == (result.stopped, result.warnings)
        assert 7 == len(result.events)

    def test_on_by_setting(self) -> None:
        """The setting also enables it for other writers."""
        assert translated(legacy(self.history()), profile="flink_cdc", continuity={}).stopped

    def test_without_es_all_updates_are_of_one_second(self) -> None:
        """The state of a key does not grow with its updates."""
        dialect = canal(profile="dts")
        guard = dialect.guard()
        assert isinstance(guard, ContinuityGuard)
        for number in range(40):
            row = {"id": "1", "name": "x", "n": str(number)}
            one = message(json.dumps(update(es=None, data=[{**row, "n": str(number + 1)}], old=[row])).encode())
            outcome = dialect.decode(one)
            assert isinstance(outcome, Changes)
            assert [] == guard.inspect(one, outcome.changes)
        known = guard._known.get(outcome.changes[0].table, b'{"id":1}')
        assert known is not None
        assert 16 == len(known.pairs)

    def test_the_rows_that_are_remembered(self) -> None:
        """With room for one key, the evidence of the other is lost. The report lists the changes read meanwhile."""
        history = History()
        history.new(1, 1)
        history.new(2, 1)
        history.update(1, a=2)
        history.update(2, a=2)
        history.update(2, a=3)
        result = translated(legacy(history), profile="dts", continuity={"keys": 1})
        assert result.stopped is not None
        assert "offset 4 (row 0) contradicts the change at offset 3" in result.stopped
        assert [2, 3] == offsets_named(result.stopped)


class TestEvidence:
    """Cases that are not evidence, so the process must not stop."""

    def read(self, history: History) -> Result:
        return translated(legacy(history), profile="dts")

    def test_a_full_load_overlaps_with_its_changes(self) -> None:
        """A row of a full load can include a change that follows it in the topic."""
        history = History()
        history.new(1, 1, seconds=5)
        history.update(1, a=2, seconds=0)
        new, update = history.changes
        load = History(now=update.at)
        load.new(1, 2, load=True, seconds=0)
        part = messages(sent([(load.changes[0], DTS_FULL, None), (update, DTS_FULL, None)]))
        assert translated(part, profile="dts").stopped is None
        assert new.op == "insert"

    def test_what_is_sent_again_is_older(self) -> None:
        """A row that changed back before the restart looks like the new row of a resent change."""
        history = History()
        history.new(1, 1)
        for value in (2, 3, 2):
            history.update(1, a=value)
        assert translated(messages(swapped(history.changes, 4, 3, DTS_FULL)), **RIGHT).stopped is None

    def test_one_row_of_the_same_second_proves_nothing(self) -> None:
        """A resent update without changes contains the row from before the next change."""
        history = History()
        history.new(1, 1, seconds=0)
        for value in (2, 2, 1):
            history.update(1, a=value, seconds=0)
        assert translated(messages(swapped(history.changes, 4, 2, DTS_FULL)), **RIGHT).stopped is None

    @pytest.mark.parametrize("hidden", [0, 2])
    def test_what_was_forgotten_may_be_sent_again(self, hidden: int) -> None:
        """The memory starts between two changes of a row in one second, and then the first is resent. It starts with
        the process, which does not read the first message, or after a dead letter.
        """
        history = History()
        history.new(1, 1)
        history.update(1, a=2)
        history.update(1, seconds=0)
        stream = messages(swapped(history.changes, 3, 2, DTS_FULL))
        unreadable = type(stream[0])("raw.t", 0, 9, 0, None, b"{]")
        assert translated([*stream[:hidden], unreadable, *stream[2:]], **RIGHT).stopped is None

    def test_from_offset_0_nothing_was_missed(self) -> None:
        """When reading from offset 0, the whole first second is remembered and is evidence, but not from later on."""
        history = History()
        history.new(1, 1)
        history.update(1, seconds=0, a=2)
        insert, update = legacy(history)
        later = [msgspec.structs.replace(message, offset=message.offset + 5) for message in (insert, update)]
        assert translated([insert, update], profile="dts").stopped is not None
        assert translated(later, profile="dts").stopped is None

    def test_a_row_that_made_room_may_be_sent_again(self) -> None:
        """This includes changes of a row that was forgotten before it changed again in the same second."""
        history = History()
        history.new(1, 1)
        history.new(2, 1)
        history.update(1, a=2)
        history.new(3, 1, seconds=0)
        history.update(1, a=3, seconds=0)
        stream = messages(swapped(history.changes, 5, 3, DTS_FULL))
        assert translated(stream, **RIGHT, continuity={"keys": 1}).stopped is None

    def test_a_dead_letter_hides_changes(self) -> None:
        """A row that may have changed in a message without events is no longer known."""
        history = History()
        history.new(1, 1)
        history.update(1, a=2)
        insert, update = legacy(history)
        unreadable = type(insert)("raw.t", 0, 1, 0, None, b"{]")
        assert self.read(history).stopped
        assert translated([insert, unreadable, update], profile="dts").stopped is None

    def test_ddl_hides_changes(self) -> None:
        """After DDL on a table, its rows may have changed."""
        history = History()
        history.new(1, 1)
        history.update(1, a=2)
        insert, update = legacy(history)
        ddl = b'{"type":"DDL","database":"shop","table":"t","sql":"ALTER TABLE t ADD c int","isDdl":true,"ts":1,"id":1}'
        message = type(insert)("raw.t", 0, 1, 0, None, ddl)
        assert translated([insert, message, update], profile="dts").stopped is None

    def test_partitions_do_not_know_each_other(self) -> None:
        """Due to partition hash bugs (canal#959, #1507, #2058, #2124), a partition proves nothing about others."""
        history = History()
        history.new(1, 1)
        history.update(1, a=2)
        insert, update = legacy(history)
        elsewhere = type(insert)("raw.t", 1, 1, 0, None, update.value)
        assert translated([insert, elsewhere], profile="dts").stopped is None


def test_the_error_says_all_but_values() -> None:
    """The error has source, table, topic, partition, offsets, readings, columns and settings, but no row data."""
    history = History()
    history.new(1, 1, "secret-1")
    history.update(1, a=2, b="secret-2")
    (one, other) = legacy(history)
    moved = [type(one)("raw.t", 3, 40 + n, 0, None, message.value) for n, message in enumerate((one, other))]
    assert (
        "canal: source s, table 'shop.t', topic raw.t, partition 3: the change at offset 41 (row 0) "
        "contradicts the change at offset 40. As declared, in the message at offset 41 data contains "
        "the row after the change, and old the row before the change; according to the other message, "
        "data contains the row before the change, and old the row after the change. The two images differ in 'a', "
        "'b'. Since the start, every earlier update of this partition that was read the same way has "
        "been confirmed. Correct profile (dts_legacy), or declare instance.created and "
        "instance.restarted, then translate these offsets again"
    ) == translated(moved, profile="dts").stopped


class TestHints:
    """Rules C of §6.5: what a sequence of DELETEs reveals about the writers."""

    def deletes(self, *forms: CanalForm) -> Any:
        history = History()
        for key in range(len(forms)):
            history.new(key, 1)
            history.delete(key)
        deletes = [change for change in history.changes if change.op == "delete"]
        return messages(sent((change, form, None) for change, form in zip(deletes, forms, strict=True)))

    @pytest.mark.requirement("canal.reject.8")
    @pytest.mark.parametrize(
        ("profile", "forms", "said"),
        [
            ("dts_legacy", (DTS,), "offset 0 (row 0): the DELETE has its row in data"),
            ("dts", (DTS, DTS_LEGACY), "offset 1 (row 0): the DELETE has its row in old"),
            ("oss", (OSS, DTS_LEGACY), "offset 1 (row 0): the DELETE has its row in old"),
            ("ticdc", (OSS, DTS_LEGACY), "offset 1 (row 0): the DELETE has its row in old"),
            ("drs", (DTS_LEGACY, DTS), "offset 1 (row 0): the DELETE has its row in data"),
        ],
    )
    def test_another_form_than_declared_stops_the_partition(
        self, profile: str, forms: tuple[CanalForm, ...], said: str
    ) -> None:
        """The partition stops before any part of the message is written."""
        result = translated(self.deletes(*forms), profile=profile)
        assert result.stopped is not None
        assert said in result.stopped
        assert [*range(len(forms) - 1)] == result.offsets

    def test_another_form_is_reported_once_where_it_only_warns(self) -> None:
        for action in ("warn", "off"):
            forms = self.deletes(DTS, DTS_LEGACY, DTS)
            result = translated(forms, profile="dts_legacy", continuity={"action": action})
            assert ("offset 0 (row 0): the DELETE has its row in data", None) == (
                re.search(r"offset \d+ \(row 0\): the DELETE has its row in \w+", result.warnings[0])[0],  # type: ignore[index]
                result.stopped,
            )
            assert 1 == len(result.warnings)

    def test_the_swap_itself(self) -> None:
        """Legacy followed by current is the normal order. With a declared restart, it is not reported."""
        assert [] == translated(self.deletes(DTS), profile="dts").warnings
        assert [] == translated(self.deletes(OSS, OSS), profile="oss").warnings

    @pytest.mark.parametrize(
        ("forms", "hints"),
        [
            ((DTS, DTS), []),
            ((DTS_LEGACY, DTS_LEGACY), ["If data contains the new row, declare profile drs"]),
            (
                (DTS_LEGACY, DTS, DTS),
                [
                    "If data contains the old row, declare dts_legacy, or dts with the option instance",
                    "restarted between them",
                ],
            ),
            ((DTS, DTS_LEGACY, DTS_LEGACY), ["two instances seem to write to this partition"]),
        ],
    )
    def test_what_to_declare(self, forms: tuple[CanalForm, ...], hints: list[str]) -> None:
        """Under `auto`, C.1 and C.2 each suggest a declaration once. No message is read differently because of them."""
        warnings = translated(self.deletes(*forms), profile="auto").warnings
        assert len(hints) == len(warnings)
        assert all(hint in warning for hint, warning in zip(hints, warnings, strict=True))


class TestUnconfirmed:
    """The list of offsets is bounded, but the count is not."""

    def test_neighbours_are_one(self) -> None:
        unconfirmed = Unconfirmed()
        for offset in (1, 2, 2, 3, 7, 9):
            unconfirmed.add(offset)
        unconfirmed.confirm(3)
        unconfirmed.confirm(2)
        assert "4 earlier message(s)" in unconfirmed_text(unconfirmed.listed(), before=10)
        assert [1, 2, 7, 9] == offsets_named(unconfirmed_text(unconfirmed.listed(), before=10))
        assert [1, 2, 7] == offsets_named(unconfirmed_text(unconfirmed.listed(), before=9))

    def test_the_oldest_are_counted_only(self) -> None:
        unconfirmed = Unconfirmed()
        for offset in range(5, 5 + LISTED + 3):
            unconfirmed.add(offset)
        text = unconfirmed_text(unconfirmed.listed(), before=9_999)
        assert f"{LISTED + 3} earlier message(s)" in text
        assert f"offsets 8-{LISTED + 7}, and 3 not stored, from offset 5 on." in text
        unconfirmed.confirm_until(6)
        assert f"{LISTED + 3} earlier message(s)" in unconfirmed_text(unconfirmed.listed(), before=9_999)
        unconfirmed.confirm_until(LISTED + 7)
        assert "confirmed." in unconfirmed_text(unconfirmed.listed(), before=9_999)


def test_rows_with_one_hash_in_python_are_two_rows() -> None:
    """Two rows are distinguished even though hash(-1) == hash(-2)."""
    history = History()
    history.new(1, -1)
    history.update(1, a=-2)
    assert translated(legacy(history), profile="dts").stopped is not None


def test_the_rows_of_a_message_are_taken_in_order() -> None:
    """The second row of a message continues the first. If it contradicts, the whole message is not written."""
    rows = [{"id": "1", "name": name, "n": "1"} for name in "abc"]
    body = update(es=1_700_000_001_000)
    insert = {**body, "type": "INSERT", "data": rows[:1], "old": None, "es": 1_700_000_000_000}
    forward = {**body, "data": rows[1:], "old": rows[:2]}
    for backward, stopped in ((forward, None), ({**forward, "data": rows[:2], "old": rows[1:]}, "offset 1 (row 0)")):
        sent_ = [message(json.dumps(one).encode()) for one in (insert, backward)]
        result = translated([structs.replace(one, offset=n) for n, one in enumerate(sent_)], profile="dts")
        assert (result.stopped is None) == (stopped is None)
        assert stopped is None or stopped in str(result.stopped)


def test_one_sparse_row_decides_for_its_message() -> None:
    """After the first row, `old` can list unchanged columns, and such a row is not in doubt (§4.3)."""
    rows = [{"id": str(key), "name": name, "n": "1"} for key, name in ((1, "b"), (2, "b"))]
    body = update(data=rows, old=[{"name": "a"}, {"id": "2", "name": "a", "n": "1"}])
    contrary = update(type="INSERT", data=[rows[1]], old=None, es=UPDATE["es"] - 1000)
    sent_ = [structs.replace(message(json.dumps(one).encode()), offset=n) for n, one in enumerate((contrary, body))]
    assert translated(sent_, profile="dts").stopped is None
