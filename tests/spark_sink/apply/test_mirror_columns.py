"""The columnar fold gives the same result as the fold of single events, and handles the events that it should."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.table_id import TableId
from spark_sink.apply.mirror import MirrorChanges, fold_into_changes
from spark_sink.apply.mirror_columns import fold_in_columns
from spark_sink.errors import Refused
from spark_sink.events.image_table import NotInColumns, names_column, read_images
from spark_sink.model.event import Event
from spark_sink.model.row import Memory, RowMark
from spark_sink.schema.evolution import Plan, evolve
from spark_sink.tables.changes import Marker
from tests.sizes import examples
from tests.spark_sink.changes import OTHER_SCOPE, SCOPE, in_columns, schema_of, text
from tests.spark_sink.histories import history
from tests.spark_sink.memory import MemoryTable

TYPES = {
    "id": "int64",
    "tiny": "int8",
    "number": "int32",
    "great": "int64",
    "flag": "boolean",
    "exact": "decimal(38,4)",
    "price": "decimal(5,2)",
    "near": "float64",
    "single": "float32",
    "day": "date",
    "at": "timestamp",
    "moment": "timestamptz",
    "bytes": "bytes",
    "name": "string",
    "größe": "string",
    "more": "string",
}
NARROW = schema_of({name: type for name, type in TYPES.items() if name != "more"})
WIDE = schema_of(TYPES)
PLAN: Plan = evolve(None, TableId.of(WIDE), [NARROW, WIDE], WIDE)

# Valid values of each type as events contain them, including the limits of the types.
GOOD: Mapping[str, Sequence[Any]] = {
    "tiny": [-128, 127, 0],
    "number": [-(2**31), 2**31 - 1],
    "great": [-(2**63), 2**63 - 1, 2**53 + 1],
    "flag": [True, False],
    "exact": ["9" * 34 + ".9999", "-" + "9" * 34 + ".9999", "0", "1.5", "-0.0001"],
    "price": ["999.99", "-0.00", "000001.1"],
    "near": [0.1, -0.0, 1e308, 5e-324, 12345678901234567890, 7],
    "single": [0.1, 16777217, 3.4028234e38],
    "day": ["0001-01-01", "9999-12-31"],
    "at": ["2026-01-02T03:04:05.123456", "0001-01-01T00:00:00", "2026-01-02T03:04:05.123456000"],
    "moment": ["2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05+05:30", "9999-12-31T23:59:59.999999Z"],
    "bytes": [base64.b64encode(bytes(range(256))).decode(), ""],
    "name": ['a"b', "\\", '","name":1,"', "line\nend", "\x00", "日本", "😀", "", '{"x":1}', "\ud7ff\ue000", " "],
    "größe": ["é", ",", ":", "}"],
    "more": ["more"],
}
# Values that their columns cannot hold, or only after a conversion that the columnar fold leaves to the other one.
ODD: Mapping[str, Sequence[Any]] = {
    "tiny": [128, "5", True],
    "number": [1.5, 1.0, 2**31],
    "great": [2**63, -(2**63) - 1, "9223372036854775807"],
    "flag": [1, "true"],
    "exact": ["1e3", 5, "9" * 35, "NaN", "1.00000"],
    "price": ["1000", "1.555", "", " 1"],
    "near": ["NaN", "Infinity", "0.5"],
    "single": [1e39, "NaN"],
    "day": ["2026-02-30", "0000-00-00", 20260101],
    "at": ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1234567"],
    "moment": ["2026-01-02T03:04:05", "9999-12-31T23:59:59-01:00"],
    "bytes": ["AP8", "A P8="],
    "name": [5, True, ["x"], {"y": 1}, 1.50],
    "größe": [0],
    "more": [1],
}

KEYS = ('{"id":1}', '{"id":2}', '{"id":3}', '{"id":9223372036854775807}')
ODD_KEYS = ('{"id":"1"}', '{ "id":2}', '{"id":null}', '{"id":1,"x":2}', "{}", "[1]", '{"id":9223372036854775808}')


@st.composite
def images(draw: st.DrawFn, odd: bool, full: bool) -> bytes:
    """Return a full or partial row. A few are spelled differently or contain a value that does not fit."""
    named = [name for name in GOOD if full or draw(st.integers(0, 3)) == 0]
    row = {name: draw(st.none() | st.sampled_from(GOOD[name])) for name in named}
    ways = ["spaced", "escaped", "twice", "unknown", "value"] if odd else []
    spelled = draw(st.sampled_from(["compact"] * 12 + ways))
    if spelled == "value" and named:
        name = draw(st.sampled_from(named))
        row[name] = draw(st.sampled_from(ODD[name]))
    if spelled == "unknown":
        row["other"] = 1
    if spelled == "spaced":
        return json.dumps({"id": 1, **row}).encode()
    written = text(row)
    if spelled == "escaped":
        written = json.dumps(row, separators=(",", ":")).replace('"name"', '"n\\u0061me"')
    if spelled == "twice" and row:
        written = f'{written[:-1]},"flag":null,"flag":true}}'
    return written.encode()


@st.composite
def batches(draw: st.DrawFn, odd: bool) -> list[Event]:
    """Return events in order with duplicates. Unusual ones are rare, so that most batches have none."""
    odd = odd and draw(st.integers(0, 2)) == 0
    made = []
    for index in range(draw(st.integers(1, 12))):
        # An insert over a row is usual at the start only: see docs/envelope/keys-that-move.md.
        op = draw(st.sampled_from("uuuucrd" if odd else "uuuurrd"))
        full = op != "d" and draw(st.booleans())
        strange = odd and draw(st.integers(0, 5)) == 0
        moved = strange and op == "u" and draw(st.booleans())
        made.append(
            Event(
                index=index,
                op=op,
                key=draw(st.sampled_from(ODD_KEYS if strange and draw(st.booleans()) else KEYS)),
                key_old=draw(st.sampled_from(KEYS)) if moved else None,
                scope=draw(st.sampled_from([SCOPE] * 6 + ([OTHER_SCOPE, "native:shop/task"] if strange else [SCOPE]))),
                pos=f"{draw(st.integers(0, 2)) + index:04}",
                after=None if op == "d" else draw(images(strange, full)),
                full=full,
                withholds=draw(st.integers(0, 5)) == 0,
                schema_id=draw(st.sampled_from([None, WIDE.id, WIDE.id, NARROW.id if strange else WIDE.id])),
                ts=draw(st.sampled_from([0, 1_764_000_000_000_000, -(2**62), 2**62])),
                committed=draw(st.sampled_from([None, None, index, 1_764_000_000_000_000, -(2**62), 2**62])),
                tx=draw(st.sampled_from([None, "1", "2"])) if odd else None,
            )
        )
    return made


def outcome(changed: MirrorChanges, table: MemoryTable) -> object:
    """Return everything that the events produce, ignoring row order."""
    rows = {}
    for place, row in enumerate(changed.changes.rows.to_pylist()):
        for name, flags in changed.changes.kept.items():
            row[name] = (flags[place].as_py(), row[name])
        rows[row["id"]] = {name: value if isinstance(value, tuple) else (True, value) for name, value in row.items()}
    counted = (changed.stale, changed.late, changed.scope_changes, changed.deleted)
    types = changed.changes.rows.schema
    return repr(sorted(rows.items())), types, changed.changes.inserts_only, sorted(changed.rejected), counted


def both(events: Sequence[Event], table: MemoryTable, plan: Plan = PLAN) -> MirrorChanges | None:
    """Fold the events both ways, compare, and return the result, or None if the table rejects them."""
    found: list[Any] = []
    for given_as, fold in ((in_columns(events), fold_into_changes), (events, fold_into_changes)):
        try:
            found.append(fold(given_as, table, plan))
        except Refused as refused:
            found.append(refused)
    together, single = found
    if isinstance(single, Refused):
        assert repr(single) == repr(together)
        return None
    assert outcome(single, table) == outcome(together, table)
    return single


@examples(2)
@given(st.lists(batches(odd=True), min_size=1, max_size=3), st.sampled_from(["", "", "0002"]))
def test_any_events(made: list[list[Event]], floor: str) -> None:
    """Both folds agree, batch after batch on the results of earlier batches."""
    table = MemoryTable(PLAN.shape)
    table.raise_floors({SCOPE: floor} if floor else {})
    for number, events in enumerate(made):
        changed = both(events, table)
        if changed is not None and changed.changes:
            table.write(changed.changes, Marker("app", number))


@examples(2)
@given(batches(odd=False))
def test_usual_events_are_folded_in_columns(events: list[Event]) -> None:
    """Common events take the columnar path. Otherwise the comparison would prove nothing."""
    assert not fold_in_columns(in_columns(events), MemoryTable(PLAN.shape), PLAN).others


def test_any_history() -> None:
    """Both folds agree on histories of several scopes with key changes, late events and duplicates. Both are used."""
    schema = schema_of({"id": "int64", "a": "string", "b": "string", "c": "string"})
    plan = evolve(None, TableId.of(schema), [], schema)
    taken = Counter[bool]()
    for seed in range(250):
        table = MemoryTable(plan.shape)
        for number, batch in enumerate(history(seed).batches):
            events = [event for event in batch if event.op != "t"]
            if events:
                changed = both(events, table, plan)
                assert changed is not None
                table.write(changed.changes, Marker("app", number))
                if not events[0].scope.startswith("native:"):
                    taken[bool(fold_in_columns(in_columns(events), table, plan).others)] += 1
    assert taken[True] > 50, taken
    assert taken[False] > 50, taken


EVENT = Event(0, "u", '{"id":1}', None, SCOPE, "2", b'{"name":"x"}', False, False, None, 7)


@pytest.mark.parametrize(
    ("change", "mark"),
    [
        ({"key_old": '{"id":2}'}, None),
        ({}, RowMark(OTHER_SCOPE, "1")),
        ({}, RowMark(SCOPE, "1", memory=Memory(seen={OTHER_SCOPE: "1"}))),
    ],
    ids=["key change", "other scope before", "memory"],
)
def test_only_the_rows_that_take_more_are_left(change: Mapping[str, Any], mark: RowMark | None) -> None:
    """The batch's other row takes the columnar path."""
    table = MemoryTable(PLAN.shape)
    if mark is not None:
        table.remembered[(1,)], table.stored[(1,)] = mark, dict.fromkeys(PLAN.shape.types) | {"id": 1}
    plain = msgspec.structs.replace(EVENT, index=1, key='{"id":3}')
    events = [msgspec.structs.replace(EVENT, **change), plain]
    found = fold_in_columns(in_columns(events), table, PLAN)
    assert [events[0]] == list(found.others)
    assert [3] == found.changes.rows["id"].to_pylist()
    both(events, table)


def test_a_key_of_several_columns() -> None:
    """A key with different spelling or column order is the same key."""
    schema = schema_of({"a": "decimal(9,2)", "b": "string", "v": "int32"}, key=("a", "b"))
    plan = evolve(None, TableId.of(schema), [schema], schema)
    texts = ['{"a":"1","b":"x"}', '{"b":"x","a":"1.00"}', '{"a":"1.0","b":"y"}', '{"a":"2","b":"x"}']
    made = [
        msgspec.structs.replace(EVENT, index=i, pos=str(i), key=key, after=f'{{"v":{i}}}'.encode())
        for i, key in enumerate([*texts, *texts])
    ]
    table = MemoryTable(plan.shape)
    for number, events in enumerate((made[:3], made[3:])):
        found = fold_in_columns(in_columns(events), table, plan)
        assert not found.others
        table.write(found.changes, Marker("app", number))
    expected = {(Decimal("1.00"), "x"): 5, (Decimal("1.00"), "y"): 6, (Decimal("2.00"), "x"): 7}
    assert expected == {key: row["v"] for key, row in table.stored.items()}


def test_a_column_beside_is_folded_event_by_event() -> None:
    """A value in one version of a column empties the others, which the fold of single events handles."""
    before, after = schema_of({"id": "int64", "v": "int32"}), schema_of({"id": "int64", "v": "string"})
    stored = evolve(None, TableId.of(before), [before], before).shape
    plan = evolve(stored, TableId.of(before), [after], after)
    table = MemoryTable(plan.shape)
    event = msgspec.structs.replace(EVENT, after=b'{"v":"x"}', schema_id=after.id)
    with pytest.raises(NotInColumns):
        fold_in_columns(in_columns([event]), table, plan)
    assert fold_into_changes(in_columns([event]), table, plan).changes.rows["v__v2"].to_pylist() == ["x"]


@pytest.mark.parametrize(
    "image",
    [
        b"",
        b"[]",
        b"null",
        b' {"a":"x"}',
        b'{"a":"x"} ',
        b'{"a" :"x"}',
        b'{"a": "x"}',
        b'{"a":"x", "b":1}',
        b'{"a":"x"}\n{"a":"y"}',
        b'{"a":"x"}{"a":"y"}',
        b'{"\\u0061":"x"}',
        b'{"a":"x","a":"y"}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\\ud800"}',
        b'{"a":"\x01"}',
        b'{"a":{"b":1}}',
        b'{"a":["b"]}',
        b'{"b":NaN}',
        b'{"b":Infinity}',
        b'{"b":01}',
        b'{"b":1e999}',
        b'{"c":1}',
        b'\xef\xbb\xbf{"b":1}',
    ],
    ids=repr,
)
def test_images_that_are_not_read_at_once(image: bytes) -> None:
    """An image that one of the readers cannot parse, or that is not flat and compact, takes the other path."""
    types = {"a": "string", "b": "double"}
    good = b'{"a":"x","b":1.5}'
    assert [1.5, None] == read_images(binary([good, b'{"a":"y"}']), types)["b"].to_pylist()
    with pytest.raises(NotInColumns):
        read_images(binary([good, image]), types)


def test_a_name_is_found_where_a_column_is_named() -> None:
    """A column name is found as a name and not inside a text that looks like one."""
    written = [{"a": '","b":1,"'}, {"a": '"b":'}, {"b": None}, {"a": "b", "b": 2}, {"ab": 1}, {"a": '{"b":1}'}]
    found = names_column(binary([text(row).encode() for row in written]), "b")
    assert ["b" in row for row in written] == found.to_pylist()


@pytest.mark.parametrize("name", ["", '"', "a\\b", "\t", ",a", ":a", "}a"])
def test_a_name_that_cannot_be_looked_for(name: str) -> None:
    with pytest.raises(NotInColumns):
        names_column(binary([b"{}"]), name)


def binary(images: Sequence[bytes]) -> pa.BinaryArray:
    return pa.array(images, pa.binary())
