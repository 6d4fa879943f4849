"""Events of erased rows are left out up to the positions at which the rows were erased."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from cdc_core.table_id import TableId
from spark_sink.events.erased_keys import RowKey, digest_of, digests_of, without_erased
from spark_sink.model.event import Event
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_spec import Mode
from tests.spark_sink.changes import change, folding, in_columns

COLUMNS = (TableColumn("id", "int"), TableColumn("a", "string"))
SHAPE = TableShape(TableId("shop", "sales", None, "orders"), COLUMNS, ("id",))
ERASED = {RowKey(("id",), digest_of((7,))): {0: 20}}

FORMS = pytest.mark.parametrize("form", [list, in_columns])
KEYED = pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])


def _event(op: str, id: int, pos: int, **more: Any) -> Event:
    return folding(change(op, {"id": id}, None if op == "d" else {"a": "x"}, pos=pos, **more), pos)


def _records(partition: int = 0) -> pa.Table:
    """Return records, whose offsets are their indexes."""
    return pa.table({"partition": pa.array([partition] * 30, pa.int32()), "offset": pa.array(range(30), pa.int64())})


def _left(events: Sequence[Event], mode: Mode, form: Callable[[Sequence[Event]], Sequence[Event]]) -> list[Event]:
    shape = msgspec.structs.replace(SHAPE, mode=mode, key=() if mode is Mode.CHANGELOG else ("id",))
    return list(without_erased(form(events), _records(), ERASED, shape))


@FORMS
@pytest.mark.parametrize("mode", Mode)
def test_the_events_of_the_row(form: Callable[[Sequence[Event]], Sequence[Event]], mode: Mode) -> None:
    """Events of other rows and later events are kept, whatever their position at the source."""
    erased = [_event("c", 7, 1), _event("u", 7, 18), _event("d", 7, 19)]
    kept = [_event("c", 8, 2), _event("c", 7, 20), _event("u", 7, 21)]
    assert kept == _left([*erased, *kept], mode, form)


@FORMS
@KEYED
def test_keys_that_change(form: Callable[[Sequence[Event]], Sequence[Event]], mode: Mode) -> None:
    """The other row leaves its key, or begins with its new one."""
    taken, left = _event("u", 7, 5, key_old={"id": 8}), _event("u", 9, 6, key_old={"id": 7})
    found = _left([taken, left, _event("u", 7, 7, key_old={"id": 7})], mode, form)
    assert [("d", '{"id":8}', None), ("u", '{"id":9}', None)] == [(one.op, one.key, one.key_old) for one in found]
    assert [None, left.after] == [one.after for one in found]


@FORMS
def test_a_changelog_loses_both_parts(form: Callable[[Sequence[Event]], Sequence[Event]]) -> None:
    events = [_event("u", 7, 5, key_old={"id": 8}), _event("u", 9, 6, key_old={"id": 7}), _event("c", 9, 7)]
    assert events[2:] == _left(events, Mode.CHANGELOG, form)


@FORMS
def test_other_records_are_not_examined(form: Callable[[Sequence[Event]], Sequence[Event]]) -> None:
    events = form([_event("c", 7, 1)])
    assert events is without_erased(events, _records(partition=1), ERASED, SHAPE)
    assert events is without_erased(events, _records().slice(20), ERASED, SHAPE)


@pytest.mark.parametrize("wider", ["bigint", "decimal(10,0)", "decimal(20,4)", "string"])
def test_a_digest_outlives_a_wider_type(wider: str) -> None:
    shape = msgspec.structs.replace(SHAPE, columns=(TableColumn("id", wider),))
    sent = '{"id":"7"}' if wider == "string" else '{"id":7}'
    assert {sent: digest_of((7,))} == digests_of([sent], shape)


def test_a_digest_has_all_digits_of_a_number() -> None:
    shape = msgspec.structs.replace(SHAPE, columns=(TableColumn("id", "decimal(38,0)"),))
    sent = [f'{{"id":"1234567890123456789012345678901234567{last}"}}' for last in range(3)]
    assert 3 == len(set(digests_of(sent, shape).values()))


def test_zero_has_one_digest() -> None:
    """A table and an image can contain the key as -0.0."""
    shape = msgspec.structs.replace(SHAPE, columns=(TableColumn("id", "double"),))
    assert {'{"id":-0.0}': digest_of((-0.0,))} == digests_of(['{"id":-0.0}'], shape)
