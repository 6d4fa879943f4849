"""The fast paths for cells give the same values, issues and notes as the plain path (dts_avro/fast_path.py)."""

from __future__ import annotations

import io
from typing import Any, cast

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.dialects.dts_avro.composer import (
    Cell,
    binary,
    character,
    date_time,
    decimal,
    float_,
    integer,
    local,
    text,
    timestamp,
    zoned,
)
from tests.translator.dialects.dts_avro.messages import BRANCHES
from tests.translator.dialects.dts_avro.test_differential import CELLS
from translator.dialects.dts_avro import fast_path
from translator.dialects.dts_avro.fast_path import cell_readers
from translator.dialects.dts_avro.values import CellReader, Reading, plain_readers
from translator.values import CANONICAL_TYPES, Assumed, Unrepresentable

READINGS = [
    Reading(mysql=True, digits=6),
    Reading(mysql=False, digits=6),
    Reading(mysql=False, digits=9),
    Reading(mysql=True, digits=6, declared_unit=True),
]
TYPES = [*CANONICAL_TYPES, "decimal(10,2)", "decimal(3,0)"]


def encoded(cell: Cell) -> bytes:
    """Return the bytes of a cell."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, cast(Any, fastavro.parse_schema(BRANCHES)), cell)
    return out.getvalue()


def result(read: CellReader, cell: bytes) -> object:
    """Return the value or its replacement, with its type, because 1 is not true."""
    try:
        value = read(cell)
    except Unrepresentable as issue:
        return issue.code, issue.raw
    except Assumed as assumed:
        return assumed.note, assumed.value
    return type(value), repr(value)


def both(canonical_type: str, reading: Reading, cell: bytes) -> tuple[object, object]:
    """Return the results of the fast and the plain reader."""
    plain = plain_readers(canonical_type, reading)[cell[0]]
    return result(cell_readers(canonical_type, reading)[cell[0]], cell), result(plain, cell)


# -- values as sources send them, and similar ones

_NUMBERS = st.integers(-(2**65), 2**65) | st.integers(-200, 200) | st.sampled_from([2**31, 2**63, -(2**63), 10**18])
_NUMBER_TEXTS = _NUMBERS.map(str) | st.sampled_from(
    ["", "-", "-0", "007", "+1", " 1", "1_0", "１", "9" * 70, "9" * 3000]
)
_DECIMALS = st.decimals(allow_nan=False).map(str) | st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{0,9})?", fullmatch=True)
_WORDS = st.text(max_size=5) | st.text("aé", min_size=62, max_size=66) | st.sampled_from(["t", "false", "x" * 9000])
_CHARSETS = ["utf8mb4", "utf8", "UTF8MB4", "latin1", "gbk", "utf16", "binary", "BINARY", "swe7", "", "AL32UTF8", "é"]
_FRACTIONS = st.sampled_from([0, 1, 8_191, 8_192, 999_999, 10**6, 10**9 - 1, 10**9, -1, -(10**6)]) | st.integers(
    0, 10**6
)
_ZONES = ["+08:00", "-03:30", "UTC", "GMT+8", "8", "", "Europe/Berlin", "Mars/Base", "+99", "é", "x" * 70]


@st.composite
def date_times(draw: st.DrawFn) -> dict[str, int]:
    """Generate components of a date, a time of day or both, valid or slightly off."""
    off = draw(st.sampled_from([0, 0, 0, 1]))
    components: dict[str, int] = {}
    if draw(st.booleans()):
        components["year"] = draw(st.integers(1900, 2100) | st.sampled_from([0, 1, 63, 64, 9999, 10_000, -44]))
        components["month"] = draw(st.integers(1 - off, 12 + off))
        components["day"] = draw(st.integers(1 - off, 31 + off))
    if draw(st.booleans()):
        components["hour"] = draw(st.integers(-off, 23 + off) | st.sampled_from([838, 64]))
        components["minute"] = draw(st.integers(-off, 59 + off))
        components["second"] = draw(st.integers(-off, 59 + off))
        if draw(st.booleans()):
            components["millis"] = draw(_FRACTIONS)
    if off and components and draw(st.booleans()):
        del components[draw(st.sampled_from(sorted(components)))]
    return components


_NAMES = {branch["name"].rpartition(".")[2]: branch["name"] for branch in BRANCHES[1:]}
OF_BRANCH: dict[str, st.SearchStrategy[Cell]] = {
    _NAMES["Integer"]: st.builds(integer, _NUMBER_TEXTS, st.sampled_from([1, 8, 63, 64])),
    _NAMES["Character"]: st.one_of(
        st.builds(lambda word, charset: character(word.encode(), charset), _WORDS, st.sampled_from(_CHARSETS)),
        st.builds(character, st.binary(max_size=4), st.sampled_from(_CHARSETS)),
    ),
    _NAMES["Decimal"]: st.builds(
        decimal, _DECIMALS | st.sampled_from(["NaN", "~", "1e5", "-0.0", "１"]), st.integers(0, 70)
    ),
    _NAMES["Float"]: st.builds(float_, st.floats() | st.floats(width=32)),
    _NAMES["Timestamp"]: st.builds(
        timestamp, st.integers(-100, 2**33) | st.sampled_from([253_402_300_799, 253_402_300_800]), _FRACTIONS
    ),
    _NAMES["DateTime"]: st.builds(lambda parts: date_time(**parts), date_times()),
    _NAMES["TimestampWithTimeZone"]: st.builds(
        lambda zone, parts: zoned(zone, **parts), st.sampled_from(_ZONES), date_times()
    ),
    _NAMES["BinaryObject"]: st.builds(binary, st.binary(max_size=9) | st.binary(min_size=70, max_size=70), _WORDS),
    _NAMES["TextObject"]: st.builds(text, _WORDS, _WORDS),
}
USUAL = st.one_of(list(OF_BRANCH.values()))


@pytest.mark.requirement("dts_avro.tests.1")
@examples(7)
@given(USUAL | CELLS.filter(lambda cell: isinstance(cell, tuple)), st.sampled_from(TYPES), st.sampled_from(READINGS))
def test_both_ways_agree(cell: Cell, canonical_type: str, reading: Reading) -> None:
    """Both paths agree for any cell, column and source."""
    found, expected = both(canonical_type, reading, encoded(cell))
    assert expected == found


def _longer(cell: bytes, at: int) -> bytes:
    """Return the cell with the one-byte number at that place in two bytes, as Avro allows."""
    return cell[:at] + bytes([cell[at] | 0x80, 0]) + cell[at + 1 :]


@pytest.mark.parametrize("canonical_type", ["timestamptz", "unknown", "string"])
@pytest.mark.parametrize("zone", ["8", "80000", "\0" * 9])
def test_a_zone_is_no_clock(zone: str, canonical_type: str) -> None:
    """In a date with a zone, the bytes of the zone are where a time of day would be."""
    for parts in ({"year": 2023, "month": 10, "day": 17}, {"year": 2023}, {"hour": 1, "minute": 2, "second": 3}):
        found, expected = both(canonical_type, READINGS[0], encoded(zoned(zone, **parts)))
        assert expected == found


@pytest.mark.parametrize("precision", [24, 2**6, 2**12 + 24, 2**13])
@pytest.mark.parametrize("digits", [1, 19, 24, 25, 28])
@pytest.mark.parametrize("canonical_type", ["int64", "uint64", "unknown"])
def test_a_length_is_no_digit(precision: int, digits: int, canonical_type: str) -> None:
    """A long precision moves the length among the digits, and 24 digits have the length `0`."""
    for number in ("7" * digits, "-" + "7" * digits):
        found, expected = both(canonical_type, READINGS[0], encoded(integer(number, precision)))
        assert expected == found


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(
    "cell",
    [
        integer(7, 24),
        integer(-7),
        character("text"),
        decimal("1.10"),
        timestamp(7, 8),
        local(2023, 10, 17, 15, 2, 0, 8),
        date_time(year=2023, month=10, day=17),
        date_time(hour=1, minute=2, second=3),
        zoned("+08:00", year=2023, month=10, day=17, hour=15, minute=2, second=0, millis=8),
        binary(b"\xff"),
        text("x"),
    ],
)
def test_numbers_longer_than_they_need_be(cell: Cell, reading: Reading) -> None:
    """A length, index or component in two bytes moves the rest, and no fast path misreads it."""
    short = encoded(cell)
    for at in range(1, len(short)):
        if short[at] < 0x80:
            longer = _longer(short, at)
            for canonical_type in TYPES:
                if readable(longer):
                    found, expected = both(canonical_type, reading, longer)
                    assert expected == found, (at, canonical_type)


def readable(cell: bytes) -> bool:
    """Return whether it is a cell at all. The lengthened byte may have been a letter."""
    data = io.BytesIO(cell)
    try:
        fastavro.schemaless_reader(data, cast(Any, fastavro.parse_schema(BRANCHES)), None)
    except (EOFError, IndexError, UnicodeDecodeError):
        return False
    return data.tell() == len(cell)


@pytest.mark.parametrize(
    ("canonical_type", "cell"),
    [
        ("int64", integer(-7, 8)),
        ("uint64", integer(7, 8)),
        ("unknown", integer(7, 8)),
        ("string", character("茶")),
        ("string", character("茶".encode("gbk"), "gbk")),
        ("string", character("x" * 70)),
        ("decimal", decimal("1.10")),
        ("unknown", decimal("1.10")),
        ("float64", float_(0.1)),
        ("float32", float_(0.5)),
        ("timestamptz", timestamp(1_697_526_120, 8)),
        ("date", date_time(year=2023, month=10, day=17)),
        ("time", date_time(hour=15, minute=2, second=0, millis=0)),
        ("timestamp", local(2023, 10, 17, 15, 2, 0)),
        ("timestamp", local(2023, 10, 17, 15, 2, 0, 123_456)),
        ("unknown", local(2023, 10, 17, 15, 2, 0, 8)),
        ("timestamptz", zoned("+08:00", year=2023, month=10, day=17, hour=15, minute=2, second=0, millis=8)),
        ("bytes", binary(b"\xff")),
        ("json", text("{}", "JSON")),
        ("enum", text("open", "ENUM")),
        ("interval", text("1 day")),
    ],
)
def test_the_usual_cell_is_read_quickly(canonical_type: str, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Common cells take the fast path. Otherwise the properties above would prove nothing."""

    def forbidden(canonical_type: str, reading: Reading) -> dict[int, CellReader]:
        def fail(cell: bytes) -> Any:
            raise AssertionError("the plain way was asked")

        return dict.fromkeys(plain_readers(canonical_type, reading), fail)

    monkeypatch.setattr(fast_path, "plain_readers", forbidden)
    found = encoded(cell)
    assert cell_readers.__wrapped__(canonical_type, READINGS[0])[found[0]](found) is not None
