"""DTS records in Avro: the native path handles the common ones with the same result as the plain path."""

from collections import Counter
from datetime import datetime
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.dialects.dts_avro.composer import (
    NONE,
    NULL,
    Cell,
    binary,
    character,
    encode,
    fields,
    float_,
    integer,
    local,
    record,
    row,
    timestamp,
    zoned,
)
from tests.translator.dialects.dts_avro.messages import MYSQL, ORACLE, POSTGRESQL
from tests.translator.dialects.dts_avro.test_differential import CELLS
from tests.translator.dialects.dts_avro.test_fast_path import OF_BRANCH, TYPES
from tests.translator.native import dts_avro_mutants, needs_extension
from tests.translator.native.dts_avro_mutants import common, mutants
from tests.translator.native.test_equality import agree, opened_path
from translator.dialects import build
from translator.message import DeclaredTable, Message, Setup

pytestmark = needs_extension

OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "all": {"unique_key_as_key": True, "logical_names": True, "transactions": True, "extras": True},
    "micros": {"fraction_unit": "micros"},
    "nanos": {"fraction_unit": "nanos", "extras": True},
}
DECLARED = {
    "nothing": (),
    "columns": (DeclaredTable("*", key=("a1",), columns={"a0": "uint64", "a1": "bytes", "a2": "decimal(12,2)"}),),
}


def message(value: bytes, offset: int = 7) -> Message:
    return Message("raw.x", 3, offset, 1_767_600_000_123, None, value, topic_id="abc")


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("declared", DECLARED)
def test_both_ways_agree_on_mutants(name: str, declared: str) -> None:
    translator, path = opened_path(build("dts_avro", Setup("source", tables=DECLARED[declared]), OPTIONS[name]))
    sent = islice(mutants(Random(name + declared)), 16 * settings.default.max_examples)
    found = Counter(agree(translator, path, message(value, offset)) for offset, value in enumerate(sent))
    assert found["taken"] > found.total() / 10
    assert {"shape", "spelling", "layout", "cell"} <= found.keys()


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_common_records_are_taken(name: str, version: str) -> None:
    """The native path handles records of each source and operation with each kind of cell."""
    translator, path = opened_path(build("dts_avro", Setup("source"), OPTIONS[name]))
    chance = Random(name)
    values = [encode(common(chance), version) for _ in range(200)]
    found = Counter(agree(translator, path, message(value)) for value in values)
    # With a declared unit, fractions in the other unit are left to the plain path.
    assert found["taken"] == 200 or name == "micros"
    assert found["taken"] > 100


@pytest.mark.parametrize("branch", OF_BRANCH)
@examples(8)
@given(data=st.data(), type_=st.sampled_from(TYPES), source=st.sampled_from((MYSQL, POSTGRESQL, ORACLE)))
def test_a_cell_of_a_type(branch: str, data: st.DataObject, type_: str, source: tuple[str, str]) -> None:
    """Both paths agree on a cell alone in its row, in both images, with any value in the other."""
    cells = OF_BRANCH[branch]
    before, after = data.draw(cells | CELLS), data.draw(cells)
    sent = record(
        "UPDATE", source=source, fields=fields(c=3), beforeImages=[before], afterImages=[after], objectName="d.t"
    )
    tables = (DeclaredTable("*", columns={"c": type_}),)
    translator, path = opened_path(build("dts_avro", Setup("source", tables=tables), {}))
    assert agree(translator, path, message(encode(sent, "v3"))) in ("taken", "cell")


def agreed(*values: bytes, **options: Any) -> list[str]:
    """Return the results of messages that a path handles in order."""
    translator, path = opened_path(build("dts_avro", Setup("source"), options))
    return [agree(translator, path, message(value)) for value in values]


SECONDS = st.integers(1, 253_402_300_799)
MICROS = st.sampled_from([0, 1, 350_000, 999_999])
OFFSETS = st.from_regex(r"(GMT|UTC)?[+-][01][0-9]:[0-5][0-9]", fullmatch=True) | st.sampled_from(["UTC", "GMT"])


@examples(8)
@given(seconds=SECONDS, micros=MICROS)
def test_a_moment(seconds: int, micros: int) -> None:
    assert agreed(row("INSERT", {"c": (7, timestamp(seconds, micros))})) == ["taken"]


@examples(8)
@given(at=st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)), zone=OFFSETS)
def test_a_time_in_a_zone(at: datetime, zone: str) -> None:
    names = ("year", "month", "day", "hour", "minute", "second", "millis")
    parts = dict(zip(names, (*at.timetuple()[:6], at.microsecond), strict=True))
    assert agreed(row("INSERT", {"c": (1184, zoned(zone, **parts))}, source=POSTGRESQL)) == ["taken"]


@examples(8)
@given(number=st.floats(width=32) | st.integers(1, 2**24).map(float) | st.sampled_from([1.1, 16_777_217.0, 0.1234567]))
def test_a_number_in_single_precision(number: float) -> None:
    assert agreed(row("INSERT", {"c": (4, float_(number))})) == ["taken"]


def test_all_characters_that_are_escaped() -> None:
    assert agreed(row("INSERT", {"c": (253, character("".join(map(chr, range(0x80)))))})) == ["taken"]


@pytest.mark.parametrize(
    ("number", "cell"),
    [
        (7, timestamp(0)),
        (7, timestamp(1, 10**6)),
        (12, local(2023, 1, 1, 0, 0, 0, 10**6)),
        (12, local(2023, 1, 1, 0, 0, 0, 10**9)),
        (12, local(2023, 1, 1, 0, 0, 0, -1)),
        (12, local(0, 0, 0, 0, 0, 0)),
        (253, character(b"\xff", "utf8")),
        (247, integer(2)),
        (3, integer(2**63)),
        (3, NULL),
    ],
)
def test_a_cell_with_an_issue_or_a_note_is_left_to_the_plain_way(number: int, cell: Cell) -> None:
    assert agreed(row("INSERT", {"c": (number, cell)})) == ["cell"]


def test_a_reader_of_physical_logs_writes_other_fractions() -> None:
    columns = {"c": (12, local(2023, 1, 1, 0, 0, 0, 8))}
    assert agreed(row("INSERT", columns), row("INSERT", columns, sourcePosition="1<->2")) == ["taken", "taken"]


def test_a_table_has_its_name_of_two_tags() -> None:
    columns = {"c": (3, integer(7))}
    named = [{"l_db_name": db, "l_tb_name": name} for db, name in (("a", "b"), ("a", "c"), ("d", "b"), ("", "b"))]
    sent = [row("INSERT", columns, tags=tags) for tags in named]
    assert agreed(*sent, logical_names=True) == ["taken"] * 4


@pytest.mark.parametrize("position", ["1@2", f"{9**19}@1", f"{10**19}@1", f"1@{10**19}", "1@", "@", "1@2@3", "12"])
def test_a_position_in_a_binlog(position: str) -> None:
    assert agreed(row("INSERT", {"c": (3, integer(7))}, sourcePosition=position), extras=True) == ["taken"]


def test_a_tag_that_is_there_twice_is_damage() -> None:
    value = row("INSERT", {"c": (3, integer(7))}, tags={"tag_1": "x", "tag_2": "y"})
    assert agreed(value, value.replace(b"tag_2", b"tag_1")) == ["taken", "shape"]


COLUMNS = [
    (source, version, number, cell)
    for source, version, columns in dts_avro_mutants.SOURCES
    for number, cell in columns
    # Geometry, intervals, and text in a charset other than UTF-8.
    if number not in (255, 183) and cell not in dts_avro_mutants.CHARSETS
]


@pytest.mark.parametrize(("source", "version", "number", "cell"), COLUMNS)
def test_common_cells_are_read_without_their_converter(
    source: str, version: str, number: int, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(
        "translator.translation.native_path.convert_bytes", lambda sent, convert: asked.append(sent) or b"null"
    )
    _, path = opened_path(build("dts_avro", Setup("source"), {}))
    (taken,) = path.take([message(row("INSERT", {"c": (number, cell)}, source=(source, version)))])
    assert not isinstance(taken, str)
    assert [] == asked


def test_a_row_that_contradicts_the_numbers_of_its_columns_is_taken() -> None:
    """Every row with a TEXT does that. If it is null in the next row, the type number applies again."""
    translator, path = opened_path(build("dts_avro", Setup("source"), {}))
    sent = [
        row("INSERT", {"a": (252, character("text")), "b": (253, binary(b"\xff"))}),
        row("INSERT", {"a": (252, None), "b": (253, binary(b"\xff"))}),
        row("INSERT", {"a": (252, binary(b"\xff")), "b": (253, character("text"))}),
        row("INSERT", {"a": (252, character("text")), "b": (253, None)}),
    ]
    assert ["taken"] * 4 == [agree(translator, path, message(value)) for value in sent]
    schemas = [taken.operation.schema_key for taken in path.take([*map(message, sent)]) if not isinstance(taken, str)]
    assert len(set(schemas)) == 4


def test_a_column_that_holds_text_and_bytes_is_left_to_the_plain_way() -> None:
    """This holds whether text or bytes came first."""
    kinds = {"text": character("text"), "bytes": binary(b"\xff")}
    for number in (252, 253):
        single = [row("INSERT", {"a": (number, cell)}) for cell in kinds.values()]
        both = [
            row("UPDATE", {"a": (number, after)}, beforeImages=[before])
            for after, before in (kinds.values(), reversed(kinds.values()))
        ]
        assert agreed(*single, *both) == ["taken", "taken", "cell", "cell"]


def test_withheld_values_are_taken() -> None:
    """Withheld values of either image are handled, except those of the key."""
    translator, path = opened_path(build("dts_avro", Setup("source"), {}))
    keyed = {"tags": {"pk_uk_info": '{"PRIMARY":["a"]}'}}
    one, two, columns = integer(1), integer(2), {"a": 3, "b": 3, "c": 3}

    def became(operation: str, before: list[Cell] | None, after: list[Cell] | None) -> str:
        sent = record(operation, fields=fields(**columns), beforeImages=before, afterImages=after, **keyed)
        return agree(translator, path, message(encode(sent, "v3")))

    assert became("UPDATE", [one, NONE, NONE], [one, two, None]) == "taken"
    assert became("UPDATE", [one, one, two], [one, NONE, two]) == "taken"
    assert became("UPDATE", [one, one, NONE], [one, NONE, NONE]) == "taken"
    assert became("INSERT", None, [one, NONE, None]) == "taken"
    assert became("DELETE", [one, NONE, NONE], None) == "taken"
    assert became("UPDATE", [NONE, one, one], [one, two, one]) == "key"
    assert became("UPDATE", [one, NONE, NONE], [NONE, two, two]) == "key"
    assert became("DELETE", [NONE, NONE, NONE], None) == "key"
    keyed["tags"].clear()
    assert became("DELETE", [NONE, NONE, NONE], None) == "taken"


def test_a_cell_that_did_not_change_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(
        "translator.translation.native_path.convert_bytes", lambda sent, convert: asked.append(sent) or b"null"
    )
    cell = next(cell for number, cell in dts_avro_mutants.MYSQL if number == 255)
    sent = row("UPDATE", {"c": (255, cell)}, beforeImages=[cell])
    _, path = opened_path(build("dts_avro", Setup("source"), {}))
    (taken,) = path.take([message(sent)])
    assert not isinstance(taken, str)
    assert len(asked) == 1
