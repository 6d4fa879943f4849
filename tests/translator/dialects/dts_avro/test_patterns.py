"""Images matched by a pattern give the same changes and refusals as images read value by value (dts_avro/tables)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.dialects.dts_avro.composer import (
    NONE,
    NULL,
    Cell,
    binary,
    character,
    compose,
    date_time,
    decimal,
    fields,
    float_,
    integer,
    local,
    text,
    timestamp,
    zoned,
)
from tests.translator.dialects.dts_avro.messages import as_fastavro
from tests.translator.dialects.dts_avro.test_differential import EDITS, plainly, spliced
from tests.translator.dialects.dts_avro.test_fast_path import OF_BRANCH, USUAL
from translator.dialects.dts_avro import DtsAvro, charsets, tables
from translator.dialects.dts_avro.patterns import branch_of
from translator.dialects.dts_avro.reader import RecordReader
from translator.dialects.dts_avro.record import CHARACTER
from translator.errors import MessageError
from translator.message import Limits, Message, Setup

LIMITS = Limits()
SOURCES = [("MySQL", "8.0"), ("PostgreSQL", "14"), ("Oracle", "19"), ("SQLServer", "2019")]
NUMBERS = [1, 3, 8, 12, 16, 18, 23, 20, 25, 180, 246, 247, 252, 253, 255, 1114, 1184, 1700, 77]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Create a pattern from the first image of a table."""
    monkeypatch.setattr(tables, "AFTER", 1)
    return


@st.composite
def rows_of_a_table(draw: st.DrawFn) -> list[bytes]:
    """Generate records of one table, where each column usually has values of one kind."""
    columns = draw(st.lists(st.tuples(st.sampled_from(NUMBERS), USUAL), min_size=1, max_size=3))
    source = draw(st.sampled_from(SOURCES))
    common: dict[str, Any] = {
        "fields": fields(**{f"c{n}": number for n, (number, _) in enumerate(columns)}),
        "source": source,
        "tags": draw(st.sampled_from([{}, {"pk_uk_info": '{"PRIMARY":["c0"]}'}])),
    }
    kinds = [st.sampled_from([_like(first), first, None]).flatmap(_drawn) for _, first in columns]
    records = []
    for _ in range(draw(st.integers(2, 3))):
        before = [draw(kind) for kind in kinds]
        after = [cell if draw(st.booleans()) else draw(kind) for cell, kind in zip(before, kinds, strict=True)]
        records.append(compose("UPDATE", beforeImages=before, afterImages=after, **common))
    return records


def _like(cell: Cell) -> st.SearchStrategy[Cell]:
    """Generate cells of the same branch, sometimes of another or none."""
    assert cell is not None
    same = OF_BRANCH[cell[0]]
    return st.one_of(same, same, same, st.sampled_from([None, NONE, NULL, integer(7)]))


def _drawn(cell: Any) -> st.SearchStrategy[Cell]:
    return cell if isinstance(cell, st.SearchStrategy) else st.just(cell)


def unknowing(value: bytes) -> object:
    """Return what a new dialect reads, value by value."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "AFTER", 1_000)
        return changes(DtsAvro(Setup("src"), {}), value)


def changes(dialect: DtsAvro, value: bytes) -> object:
    """Return the outcome or the refusal."""
    try:
        return dialect.decode(Message("raw", 0, 0, 0, None, value))
    except MessageError as error:
        return error.code, str(error)


@pytest.mark.requirement("dts_avro.decode.6")
@examples(0.6)
@given(rows_of_a_table())
def test_a_dialect_that_knows_the_table_says_the_same(records: list[bytes]) -> None:
    """Each record gives the same change in a dialect that has read all others and in a new one."""
    knowing = DtsAvro(Setup("src"), {})
    for value in [*records, *records]:
        # As text, because NaN is not equal to itself and 1 is not True.
        assert repr(unknowing(value)) == repr(changes(knowing, value))


@examples(0.6)
@given(rows_of_a_table(), EDITS)
def test_damage_is_judged_alike_by_a_pattern(records: list[bytes], edits: list[tuple[int, int, bytes]]) -> None:
    """A reader that knows the table rejects what the strict walk or fastavro rejects, and reads the rest as they do."""
    reader = RecordReader(LIMITS)
    for value in records:
        reader.read(value)
    for value in records:
        damaged = spliced(value, edits)
        try:
            found = as_fastavro(reader.read(damaged))
        except MessageError:
            found = None
        assert str(plainly(damaged)) == str(found)


ODD: list[tuple[int, Cell]] = [
    *((246, decimal(number)) for number in ("-0.00", "-0", "007", ".5", "5.", "1E+2", "NaN", "1-2", "1.2.3", "", "-")),
    *((246, decimal("7" * size, size)) for size in (22, 23, 24, 28, 29, 40, 41)),
    *((8, integer(number)) for number in ("-0", "007", "+1", "1-2", "-", "", "9223372036854775808", "7" * 24)),
    *((8, integer(number)) for number in (2**63 - 1, -(2**63), 9_199_999_999_999_999_999, 9_200_000_000_000_000_000)),
    (1, integer(40_000)),
    (253, character(b"\xff")),
    (252, character("text")),
    (16, integer(-1)),
]


@pytest.mark.requirement("dts_avro.decode.6")
@pytest.mark.parametrize(("number", "odd"), ODD)
def test_odd_values_of_a_known_table(number: int, odd: Cell) -> None:
    """An almost normal value gives the same change or refusal in a dialect that knows the table."""
    usual: Cell = {246: decimal("1.5"), 252: character("x"), 253: character("x")}.get(number, integer(5))
    knowing = DtsAvro(Setup("src"), {})
    columns = fields(a=number, b=3, c=3)
    for cell in (usual, odd, usual, odd):
        images = {"beforeImages": [usual, None, None], "afterImages": [cell, None, None]}
        value = compose("UPDATE", fields=columns, **images)
        assert repr(unknowing(value)) == repr(changes(knowing, value))


def test_a_string_that_is_not_utf8_in_a_known_table() -> None:
    """A pattern accepts any bytes for the text of an ENUM or JSON, which are then validated."""
    reader = RecordReader(LIMITS)
    value = compose("INSERT", fields=fields(a=247), afterImages=[text("open", "ENUM")])
    reader.read(value)
    assert reader.read(value).after_raw is not None
    with pytest.raises(MessageError, match="not UTF-8"):
        reader.read(value.replace(b"open", b"op\xffn"))


TEXTS = st.integers(0, 300).map(lambda size: "é"[: size % 2] + "x" * size)


@examples(0.25)
@given(st.lists(st.tuples(TEXTS, TEXTS, st.integers(-(2**64), 2**64)), min_size=2, max_size=4))
@example([("", "", 0), ("x" * 255, "é" * 127, 2**63 - 1), ("x" * 256, "", -(2**63))])
def test_any_length(rows: list[tuple[str, str, int]]) -> None:
    """This covers texts around the maximum length of a pattern, and integers around 64 bits."""
    knowing = DtsAvro(Setup("src"), {})
    for one, two, number in rows:
        cells = [character(one), text(two, "XTYPE"), binary(two.encode()), integer(number, 8)]
        value = compose("INSERT", fields=fields(a=253, b=247, c=252, d=8), afterImages=cells)
        assert repr(unknowing(value)) == repr(changes(knowing, value))


ROW: list[Cell] = [
    integer(41, 8),
    character("茶 Tee"),
    decimal("348.00", 5, 2),
    timestamp(1_697_526_120, 8),
    local(2023, 10, 17, 15, 2, 0, 123_456),
    local(2023, 10, 17, 15, 2, 0),
    date_time(year=2023, month=10, day=17),
    date_time(hour=15, minute=2, second=0, millis=0),
    date_time(year=2023),
    float_(0.1),
    zoned("+08:00", year=2023, month=10, day=17, hour=7, minute=2, second=0, millis=8),
    text("open", "ENUM"),
    binary(b"\xff"),
    character("x".encode("gbk"), "gbk"),
    None,
]
_COLUMNS = fields(**{f"c{n}": 77 for n in range(len(ROW))})


def test_the_usual_row_is_found_by_a_pattern() -> None:
    """A table's second record is matched by a pattern. Otherwise the properties above would prove nothing."""
    reader = RecordReader(LIMITS)
    value = compose("UPDATE", fields=_COLUMNS, beforeImages=ROW, afterImages=[*ROW[:-1], None])
    assert reader.read(value).before_raw is None
    found = reader.read(value)
    assert found.before_raw is not None
    assert found.after_raw is not None
    assert [b"41", "\x0e茶 Tee".encode(), b"348.00"] == list(found.before_raw[1][:3])
    assert (found.before, None, []) == (found.after, found.before_raw[1][-1], found.others)


def test_a_row_that_no_pattern_fits_stops_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a table of long texts, patterns are given up after a while, and rows are read as before."""
    monkeypatch.setattr(tables, "_MIN_TRIES", 4)
    reader = RecordReader(LIMITS)
    long = compose("INSERT", fields=fields(a=253), afterImages=[character("x" * 300)])
    for _ in range(10):
        record = reader.read(long)
        assert (None, 1) == (record.after_raw, len(record.after or ()))
    assert reader._tables["shop.orders"]._match is None


def test_kinds_that_come_later_are_learned() -> None:
    """A column with text and later also a number gets a new pattern, but not an endless series of them."""
    reader = RecordReader(LIMITS)
    for cell in (character("a"), integer(1), decimal("1"), text("x"), float_(0.5), timestamp(1)):
        value = compose("INSERT", fields=fields(a=77), afterImages=[cell])
        first, again = reader.read(value), reader.read(value)
        assert as_fastavro(first) == as_fastavro(again)
    assert reader._tables["shop.orders"]._compiled == tables._MAX_COMPILED


def test_too_many_columns_are_read_without_a_pattern() -> None:
    """Compiling takes time and is not worth it for a very wide table."""
    reader = RecordReader(LIMITS)
    value = compose("INSERT", fields=fields(**{f"c{n}": 3 for n in range(300)}), afterImages=[integer(1)] * 300)
    assert (None, None) == (reader.read(value).after_raw, reader.read(value).after_raw)


@pytest.mark.requirement("dts_avro.decode.6")
def test_patterns_of_all_tables_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The space of a pattern is released when its table changes or is evicted, even with many wide tables."""
    monkeypatch.setattr("translator.dialects.dts_avro.reader.MAX_COMPILED_COLUMNS", 4)
    monkeypatch.setattr("translator.dialects.dts_avro.reader.TABLES", 3)
    reader = RecordReader(LIMITS)

    def patterns(table: str, columns: int) -> list[bool]:
        numbers = fields(**{f"c{n}": 3 for n in range(columns)})
        value = compose("INSERT", fields=numbers, afterImages=[integer(1)] * columns, objectName=f"shop.{table}")
        records = [reader.read(value) for _ in range(3)]
        assert as_fastavro(records[0]) == as_fastavro(records[2])
        return [record.after_raw is not None for record in records]

    some, none = [False, True, True], [False, False, False]
    assert [some, none] == [patterns("a", 3), patterns("b", 2)]
    assert [some, some] == [patterns("a", 1), patterns("c", 3)]  # a has other columns now
    assert none == patterns("b", 1)
    assert some == patterns("d", 4)  # a fourth table: all others are evicted


def test_a_quiet_table_has_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tables of a large source never need one."""
    monkeypatch.setattr(tables, "AFTER", 3)
    reader = RecordReader(LIMITS)
    value = compose("INSERT", fields=fields(a=3), afterImages=[integer(1)])
    assert [True, True, True, False] == [reader.read(value).after_raw is None for _ in range(4)]


@pytest.mark.parametrize("name", ["utf8mb4", "utf8", "UTF8", "AL32UTF8", "utf-8", "UTF-8"])
def test_names_of_utf8(name: str) -> None:
    """The charsets that a pattern treats as UTF-8 are UTF-8 for every source."""
    cell = b"\x04" + bytes([2 * len(name)]) + name.encode() + b"\x02x"
    assert CHARACTER == branch_of(cell)
    assert "茶" == charsets.MYSQL[name.lower()]("茶".encode()) == charsets.OTHERS[name.lower()]("茶".encode())


def test_other_charsets_are_another_branch() -> None:
    """No other charset is treated as UTF-8."""
    for name in {*charsets.MYSQL, *charsets.OTHERS} - {"utf8mb4", "utf8", "al32utf8", "utf-8"}:
        assert CHARACTER != branch_of(b"\x04" + bytes([2 * len(name)]) + name.encode() + b"\x02x")
