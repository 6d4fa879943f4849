"""Positions by the source's own sequence (docs/design.md §4.4; docs/formats/qlik.md §4, changeSequence)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent
from translator import dialects
from translator.dialects.qlik import Qlik
from translator.errors import ConfigError, ErrorCode
from translator.message import Changes, Limits, Message, OtherChange, Outcome, RowChange, Setup, TableName, Writer
from translator.translation.dead_letter import DeadLetter
from translator.translation.source_order import NativeOrder
from translator.translation.translate import Events, Result, Translator

SEQUENCE = "20260413201358120000000000000000042"
LATER = "20260413201358120000000000000000043"
AT = 1_776_110_400_000  # 2026-04-13T20:00:00Z
EPOCHS = ("2026-04-13T20:00:00Z", "2026-04-14T00:00:00+02:00")
HOUR = 3_600_000
TABLE = TableName(None, "HR", "EMP")


@dataclass
class OneRow:
    """A dialect whose rows the test defines."""

    change: RowChange | OtherChange
    name: str = "one_row"
    native_position: str = Qlik.native_position

    def decode(self, message: Message) -> Outcome:
        return Changes([self.change])

    def learn(self, key: str, document: bytes) -> object:
        return document


def result_of(
    change: RowChange | OtherChange,
    at: int = AT,
    offset: int = 7,
    epochs: Sequence[str] = (),
    declared: str | None = None,
) -> Result:
    dialect = OneRow(change)
    order = NativeOrder("erp", dialect, [datetime.fromisoformat(epoch) for epoch in epochs], declared)
    return Translator("erp", dialect, Limits(), order).translate(Message("raw", 3, offset, at, None, b"{}"))


def event_of(op: str, sequence: str | None, task: str | None = "t1", **more: Any) -> ChangeEvent:
    result = result_of(_row(op, sequence, task), **more)
    assert isinstance(result, Events), result
    return result.events[0]


def dead_of(op: str, sequence: str | None, task: str | None = "t1", **more: Any) -> tuple[ErrorCode, str]:
    result = result_of(_row(op, sequence, task), **more)
    assert isinstance(result, DeadLetter), result
    return result.code, result.reason


def _row(op: str, sequence: str | None, task: str | None) -> RowChange:
    writer = Writer("enveloped_json", "certain", task=task)
    return RowChange(op, TABLE, writer, after={"ID": 1}, pos_native=sequence)


class TestPosition:
    def test_of_a_change(self) -> None:
        """A position has epoch, sequence, offset and event number, in the scope of the task."""
        event = event_of("u", SEQUENCE)
        assert f"0000.000{SEQUENCE}.0000000000000000007.000000" == event.pos
        assert "native:erp/t1" == event.pos_scope
        assert SEQUENCE == event.pos_native

    def test_the_sequence_orders(self) -> None:
        """The change with the later sequence is later, whatever its offset."""
        assert event_of("u", SEQUENCE, offset=9_000_000).pos < event_of("u", LATER, offset=1).pos

    def test_of_a_snapshot(self) -> None:
        """A row of a full load has no sequence. It comes before every change of its epoch, ordered by offset."""
        first, second = event_of("r", None, offset=7), event_of("r", None, offset=8)
        assert first.pos < second.pos < event_of("c", "0001" + "0101" + "0" * 27, offset=0).pos
        assert "native:erp/t1" == first.pos_scope

    @pytest.mark.parametrize(
        ("at", "epoch"),
        [(AT - 1, "0000"), (AT, "0001"), (AT + 2 * 3_600_000 - 1, "0001"), (AT + 2 * 3_600_000, "0002")],
    )
    def test_epochs(self, at: int, epoch: str) -> None:
        """The epoch is the number of declared times that are not after the raw record's (ts_origin_us)."""
        assert epoch == event_of("r", None, at=at, epochs=EPOCHS).pos[:4]

    def test_a_reload_is_beyond_what_was_before(self) -> None:
        """The snapshot of a new epoch is later than every earlier change."""
        assert event_of("u", LATER, at=AT - 1, epochs=EPOCHS).pos < event_of("r", None, at=AT, epochs=EPOCHS).pos

    def test_what_is_no_row(self) -> None:
        """Announcements have no sequence and keep their place of arrival."""
        result = result_of(OtherChange("watermark", Writer()))
        assert isinstance(result, Events)
        assert ("raw:3@-", "0000." + "0" * 38) == (result.events[0].pos_scope, result.events[0].pos[:43])


class TestRefused:
    def test_without_a_sequence(self) -> None:
        """A change that cannot be ordered becomes a dead letter with advice."""
        code, reason = dead_of("u", None)
        assert ErrorCode.MISSING_FIELD == code
        assert (
            "the change has no sequence, which order: native requires; configure the task to send one, or use order"
        ) in reason

    @pytest.mark.parametrize(
        "sequence",
        [SEQUENCE[:-1], SEQUENCE + "0", "100", "２" + SEQUENCE[1:], "20261313" + SEQUENCE[8:], " " + SEQUENCE],
    )
    def test_irregular(self, sequence: str) -> None:
        """A sequence without 35 digits or a date in front cannot be compared."""
        code, reason = dead_of("u", sequence)
        assert ErrorCode.INVALID_FIELD == code
        assert "is not a valid sequence for order: native; use order: arrival" in reason

    def test_of_no_task(self) -> None:
        """Sequences of two tasks cannot be compared. Without a task, there is no scope unless one is declared."""
        code, reason = dead_of("r", None, task=None)
        assert (ErrorCode.MISSING_FIELD, True) == (code, "set `task` of the source" in reason)
        assert "native:erp/declared" == event_of("r", None, task=None, declared="declared").pos_scope

    def test_of_another_task(self) -> None:
        """A message of another task than the declared one is not put in its scope."""
        code, reason = dead_of("u", SEQUENCE, task="t2", declared="t1")
        assert ErrorCode.INVALID_FIELD == code
        assert "the change belongs to task 't2', but the source declares task 't1'" in reason

    def test_of_a_dialect_without_sequences(self) -> None:
        """Only Qlik's sequence orders the changes of a task."""
        assert NativeOrder("erp", dialects.build("qlik", Setup("erp"), {}))
        for name in ("canal", "dts_avro", "shareplex"):
            with pytest.raises(ConfigError, match=f"source erp: order: native is not supported for {name}"):
                NativeOrder("erp", dialects.build(name, Setup("erp"), {}))
