"""Source scalar -> canonical scalar: a table per type, with the spellings that break other tools."""

import base64
import math
import struct
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from translator import values
from translator.values import Converter, Unrepresentable, converter, timestamptz_in


@dataclass(frozen=True)
class Issue:
    """The value has no faithful form, for this reason."""

    code: str


def outcome(convert: Converter, value: object) -> object:
    """The canonical value, or the issue that takes its place."""
    try:
        return convert(value)
    except Unrepresentable as bad:
        return Issue(bad.code)


def check(convert: Converter, value: object, expected: object) -> None:
    """Equal, and of the same type: 1, 1.0 and True are three different things in JSON."""
    found = outcome(convert, value)
    assert (type(expected), str(expected)) == (type(found), str(found))


NOT_A_NUMBER, NOT_AN_INTEGER = Issue("NOT_A_NUMBER"), Issue("NOT_AN_INTEGER")
OUT_OF_RANGE, TOO_FAR = Issue("OUT_OF_RANGE"), Issue("EXPONENT_OUT_OF_RANGE")
NOT_TEXT, NOT_ASCII = Issue("NOT_TEXT"), Issue("NOT_ASCII")
SCALE, PRECISION = Issue("SCALE_EXCEEDED"), Issue("PRECISION_EXCEEDED")

BOOLEANS = [
    (True, True),
    (False, False),
    (1, True),
    (0, False),
    ("1", True),
    ("0", False),
    (" TRUE ", True),
    ("False", False),
    ("t", True),
    ("f", False),
    ("b'1'", True),
    ("b'0'", False),
    (Decimal(1), True),
    (2, Issue("NOT_A_BOOLEAN")),
    ("yes", Issue("NOT_A_BOOLEAN")),
    ("", Issue("NOT_A_BOOLEAN")),
    (b"\x01", Issue("NOT_A_BOOLEAN")),
]

INTEGERS = [
    ("7", 7),
    ("+7", 7),
    ("007", 7),
    ("-0", 0),
    (7, 7),
    (True, 1),
    (Decimal("7.00"), 7),
    (Decimal("1E+2"), 100),
    (Decimal("7.5"), NOT_AN_INTEGER),
    (Decimal("NaN"), NOT_AN_INTEGER),
    (Decimal("1E+2000"), OUT_OF_RANGE),
    (Decimal("1E+999999999"), OUT_OF_RANGE),
    ("1" * 2000, OUT_OF_RANGE),
    ("1" * 2001, NOT_AN_INTEGER),
    ("1.0", NOT_AN_INTEGER),
    ("1E+2", NOT_AN_INTEGER),
    ("1_000", NOT_AN_INTEGER),
    ("0x1", NOT_AN_INTEGER),
    (" 7", NOT_AN_INTEGER),
    ("7\n", NOT_AN_INTEGER),
    ("", NOT_AN_INTEGER),
    ("٧", NOT_ASCII),
    (7.0, NOT_TEXT),
    (b"7", NOT_TEXT),
]

DECIMALS = [
    ("1E+2", "100"),
    ("1e-3", "0.001"),
    ("-0", "0"),
    ("-0.00", "0.00"),
    ("-0.5", "-0.5"),
    (".5", "0.5"),
    ("5.", "5"),
    ("+1.5", "1.5"),
    ("00012.50", "12.50"),
    (" 12.50 ", "12.50"),
    ("0E5", "0"),
    ("0E-3", "0.000"),
    (7, "7"),
    (Decimal("1E+3"), "1000"),
    (Decimal("0.1"), "0.1"),
    ("12345678901234567890123456789012345678.9", "12345678901234567890123456789012345678.9"),
    ("1E2000", "1" + "0" * 2000),
    ("1E-2000", "0." + "0" * 1999 + "1"),
    ("1E2001", TOO_FAR),
    ("1E-2001", TOO_FAR),
    ("0E-2001", TOO_FAR),
    ("1." + "1" * 2001, TOO_FAR),
    ("1" * 2001, "1" * 2001),
    ("1" * 2002, TOO_FAR),
    ("1E999999999", TOO_FAR),
    (Decimal("1E+999999999"), TOO_FAR),
    ("1E9999999999", NOT_A_NUMBER),
    ("NaN", NOT_A_NUMBER),
    ("Infinity", NOT_A_NUMBER),
    (Decimal("NaN"), NOT_A_NUMBER),
    (Decimal("sNaN"), NOT_A_NUMBER),
    (Decimal("-Infinity"), NOT_A_NUMBER),
    ("", NOT_A_NUMBER),
    (".", NOT_A_NUMBER),
    ("1,5", NOT_A_NUMBER),
    ("1_0", NOT_A_NUMBER),
    ("0x1", NOT_A_NUMBER),
    ("١", NOT_ASCII),
    (1.5, NOT_TEXT),
    (b"1.5", NOT_TEXT),
]

SCALED_DECIMALS = [
    ("decimal(9,2)", "1E+2", "100.00"),
    ("decimal(9,2)", "-0", "0.00"),
    ("decimal(9,2)", "-0.00", "0.00"),
    ("decimal(9,2)", ".5", "0.50"),
    ("decimal(9,2)", "-.5", "-0.50"),
    ("decimal(9,2)", "00012.50", "12.50"),
    ("decimal(9,2)", "12.5000", "12.50"),
    ("decimal(9,2)", "12.505", SCALE),
    ("decimal(9,2)", "-0.001", SCALE),
    ("decimal(9,2)", "0.000", "0.00"),
    ("decimal(9,2)", "0E-50", "0.00"),
    ("decimal(9,2)", "0E1999", "0.00"),
    ("decimal(9,2)", "9999999.99", "9999999.99"),
    ("decimal(9,2)", "-9999999.99", "-9999999.99"),
    ("decimal(9,2)", "10000000.00", PRECISION),
    ("decimal(9,2)", 7, "7.00"),
    ("decimal(9,2)", Decimal("1E+2"), "100.00"),
    ("decimal(9,2)", "NaN", NOT_A_NUMBER),
    ("decimal(9,2)", "1E2001", TOO_FAR),
    ("decimal(2,2)", "0.99", "0.99"),
    ("decimal(2,2)", "1.00", PRECISION),
    ("decimal(3,0)", "999", "999"),
    ("decimal(3,0)", "999.0", "999"),
    ("decimal(3,0)", "-0.0", "0"),
    # Oracle's NUMBER(3,-2) keeps hundreds, NUMBER(3,5) keeps three digits after two zeros
    ("decimal(3,-2)", "12300", "12300"),
    ("decimal(3,-2)", "-100", "-100"),
    ("decimal(3,-2)", "0", "0"),
    ("decimal(3,-2)", "99900", "99900"),
    ("decimal(3,-2)", "100000", PRECISION),
    ("decimal(3,-2)", "12345", SCALE),
    ("decimal(3,-2)", "-5", SCALE),
    ("decimal(3,5)", "0.00123", "0.00123"),
    ("decimal(3,5)", "0.01230", PRECISION),
    ("decimal(2000,2000)", "1E-2000", "0." + "0" * 1999 + "1"),
]

FLOAT_SPECIALS = [
    ("NaN", "NaN"),
    (" nan ", "NaN"),
    (math.nan, "NaN"),
    (Decimal("NaN"), "NaN"),
    (Decimal("sNaN"), NOT_A_NUMBER),
    ("inf", "Infinity"),
    ("+Infinity", "Infinity"),
    (math.inf, "Infinity"),
    (Decimal("Infinity"), "Infinity"),
    ("-INF", "-Infinity"),
    (-math.inf, "-Infinity"),
    (Decimal("-Infinity"), "-Infinity"),
    ("", NOT_A_NUMBER),
    ("1,5", NOT_A_NUMBER),
    ("0x1p3", NOT_A_NUMBER),
    ("1_0", NOT_A_NUMBER),
    (b"1.5", NOT_A_NUMBER),
    ("1E400", OUT_OF_RANGE),
    (Decimal("-1E400"), OUT_OF_RANGE),
    (10**400, OUT_OF_RANGE),
    ("1E-400", OUT_OF_RANGE),
    ("0E-400", 0.0),
    ("-0", -0.0),
    (True, 1.0),
    (".5", 0.5),
    ("1E+2", 100.0),
    (Decimal("0.1"), 0.1),
]

FLOAT64 = [
    (1.100000023841858, 1.100000023841858),
    ("0.1", 0.1),
    ("1.7976931348623157E308", 1.7976931348623157e308),
    ("5E-324", 5e-324),
    (2**53 + 1, 2.0**53),
]

FLOAT32 = [
    (1.100000023841858, 1.1),
    ("1.1", 1.1),
    (0.10000000149011612, 0.1),
    (16777216, 16777216.0),
    ("3.4028235E38", 3.4028235e38),
    ("3.4028236E38", OUT_OF_RANGE),  # rounds beyond the greatest single-precision number
    (3.5e38, OUT_OF_RANGE),
    (2.0**-149, 1e-45),  # the smallest: one digit names it
    (2.0**-126, 1.1754944e-38),  # the smallest with full precision
    (1e-46, OUT_OF_RANGE),
    (0.0, 0.0),
]

TEXTS: list[tuple[object, object]] = [
    ("", ""),
    ("text ", "text "),
    ("\x00", "\x00"),
    ("日本 😀", "日本 😀"),
    ("\ud800", Issue("LONE_SURROGATE")),
    (b"text", NOT_TEXT),
    ([], NOT_TEXT),
]

NUMBERS_AS_TEXT = [
    (7, "7"),
    (2**70, "1180591620717411303424"),
    (Decimal("1.50"), "1.50"),
    (Decimal("1E+3"), "1000"),
    (Decimal("1E+2001"), TOO_FAR),
    (1.5, "1.5"),
    (1e22, "10000000000000000000000"),
    (math.nan, "NaN"),
    (-math.inf, "-Infinity"),
]

BYTES: list[tuple[object, object]] = [
    (b"", ""),
    (b"\x00\xff", "AP8="),
    ("00ff", Issue("NOT_BYTES")),
]

DATES = [
    ("2024-02-29", "2024-02-29"),
    ("2000-02-29", "2000-02-29"),
    ("0001-01-01", "0001-01-01"),
    ("9999-12-31", "9999-12-31"),
    ("2024-01-01 00:00:00", "2024-01-01"),
    ("2024-01-01T00:00:00.000", "2024-01-01"),
    ("2024-01-01 00:00:01", Issue("INVALID_DATE")),
    ("2024-01-01 00:00:00.001", Issue("INVALID_DATE")),
    ("2024-01-01 00:00:00Z", Issue("INVALID_DATE")),
    ("2023-02-29", Issue("INVALID_DATE")),
    ("1900-02-29", Issue("INVALID_DATE")),
    ("2024-13-01", Issue("INVALID_DATE")),
    ("10000-01-01", Issue("INVALID_DATE")),
    ("2024-1-1", Issue("INVALID_DATE")),
    (" 2024-01-01", Issue("INVALID_DATE")),
    ("２０２４-01-01", Issue("INVALID_DATE")),
    ("", Issue("INVALID_DATE")),
    ("0000-00-00", Issue("ZERO_DATE")),
    ("0000-01-01", Issue("ZERO_DATE")),
    ("2024-00-10", Issue("ZERO_DATE")),
    ("2024-10-00", Issue("ZERO_DATE")),
    (20240101, NOT_TEXT),
]

TIMES = [
    ("00:00:00", "00:00:00"),
    ("1:02:03", "01:02:03"),
    ("000:00:01", "00:00:01"),
    ("24:00:00", "24:00:00"),
    ("838:59:59", "838:59:59"),
    ("-838:59:59", "-838:59:59"),
    ("-01:00:00.5", "-01:00:00.5"),
    ("12:00:00.100", "12:00:00.100"),
    ("12:00:00.123456789", "12:00:00.123456789"),
    ("12:00:00.1234567890", Issue("INVALID_TIME")),
    ("12:00:00.", Issue("INVALID_TIME")),
    ("12:60:00", Issue("INVALID_TIME")),
    ("12:00:60", Issue("INVALID_TIME")),
    ("12:00", Issue("INVALID_TIME")),
    ("+12:00:00", Issue("INVALID_TIME")),
    ("1000:00:00", Issue("INVALID_TIME")),
    (43200, NOT_TEXT),
]

TIMESTAMPS = [
    ("2024-02-29 12:00:00", "2024-02-29T12:00:00"),
    ("2024-02-29T12:00:00", "2024-02-29T12:00:00"),
    ("2024-02-29", "2024-02-29T00:00:00"),
    ("2024-02-29 12:00:00.1", "2024-02-29T12:00:00.1"),
    ("2024-02-29 12:00:00.100000", "2024-02-29T12:00:00.100000"),
    ("2024-02-29 12:00:00.123456789", "2024-02-29T12:00:00.123456789"),
    ("0001-01-01 00:00:00", "0001-01-01T00:00:00"),
    ("9999-12-31 23:59:59.999999999", "9999-12-31T23:59:59.999999999"),
    ("2024-02-29 12:00:00.1234567890", Issue("INVALID_TIMESTAMP")),
    ("2024-02-29 12:00", Issue("INVALID_TIMESTAMP")),
    ("", Issue("INVALID_TIMESTAMP")),
    ("2023-02-29 12:00:00", Issue("INVALID_DATE")),
    ("2023-02-29", Issue("INVALID_DATE")),
    ("2024-02-29 24:00:00", Issue("INVALID_TIME")),
    ("2024-02-29 23:59:60", Issue("INVALID_TIME")),
    ("0000-00-00 00:00:00", Issue("ZERO_DATE")),
    ("0000-00-00", Issue("ZERO_DATE")),
    ("2024-02-29 12:00:00Z", Issue("ZONE_UNEXPECTED")),
    ("2024-02-29 12:00:00+08:00", Issue("ZONE_UNEXPECTED")),
    (1709208000, NOT_TEXT),
]

ZONED_TIMESTAMPS = [
    ("2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z"),
    ("2024-02-29 12:00:00 UTC", "2024-02-29T12:00:00Z"),
    ("2024-02-29 12:00:00+08:00", "2024-02-29T04:00:00Z"),
    ("2024-02-29 12:00:00.50+0800", "2024-02-29T04:00:00.50Z"),
    ("2024-02-29 12:00:00-08", "2024-02-29T20:00:00Z"),
    ("2024-03-01 00:30:00+05:30", "2024-02-29T19:00:00Z"),
    ("2024-02-29 12:00:00.123456789 -00:01", "2024-02-29T12:01:00.123456789Z"),
    ("2024-02-29 12:00:00+23:59", "2024-02-28T12:01:00Z"),
    ("0001-01-01 00:00:00-08:00", "0001-01-01T08:00:00Z"),
    ("0001-01-01 00:00:00+08:00", OUT_OF_RANGE),
    ("9999-12-31 23:59:59-00:01", OUT_OF_RANGE),
    ("2024-02-29 12:00:00+24:00", Issue("INVALID_TIMESTAMP")),
    ("2024-02-29 12:00:00+08:60", Issue("INVALID_TIMESTAMP")),
    ("2024-02-29Z", Issue("INVALID_TIMESTAMP")),
    ("2024-02-29 12:00:00", Issue("ZONE_MISSING")),
    ("2024-02-30 12:00:00Z", Issue("INVALID_DATE")),
    ("2024-02-29 24:00:00Z", Issue("INVALID_TIME")),
    ("0000-00-00 00:00:00Z", Issue("ZERO_DATE")),
    ("0000-01-01 00:00:00Z", Issue("ZERO_DATE")),
    (1709208000, NOT_TEXT),
]

PLAIN_TEXT = [*TEXTS, (7, NOT_TEXT), (True, NOT_TEXT)]
WORDS = [*TEXTS, *NUMBERS_AS_TEXT, (True, "true"), (False, "false")]

TABLE: dict[str, list[tuple[object, object]]] = {
    "boolean": BOOLEANS,
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), INTEGERS),
    "uint64": [(value, str(found) if type(found) is int else found) for value, found in INTEGERS],
    "decimal": DECIMALS,
    "float32": [*FLOAT_SPECIALS, *FLOAT32],
    "float64": [*FLOAT_SPECIALS, *FLOAT64],
    "string": WORDS,
    "bytes": BYTES,
    "date": DATES,
    "time": TIMES,
    "timestamp": TIMESTAMPS,
    "timestamptz": ZONED_TIMESTAMPS,
    "interval": PLAIN_TEXT,
    "json": PLAIN_TEXT,
    "uuid": PLAIN_TEXT,
    "enum": WORDS,
    "set": WORDS,
    "geometry": BYTES,
    "unknown": [*TEXTS, *NUMBERS_AS_TEXT, (True, True), (False, False)],
}


def _cases() -> list[tuple[str, object, object]]:
    return [(name, value, expected) for name, rows in TABLE.items() for value, expected in rows] + SCALED_DECIMALS


@pytest.mark.parametrize(("name", "value", "expected"), _cases(), ids=lambda part: ascii(part)[:40])
def test_table(name: str, value: object, expected: object) -> None:
    """The type of the column chooses the encoding; what has no faithful form is an issue with its reason."""
    check(converter(name), value, expected)


def test_every_type_has_its_table() -> None:
    """No canonical type is without a table, and no table without a type."""
    assert set(values.CANONICAL_TYPES) == set(TABLE)


@pytest.mark.parametrize("name", ["varchar", "Decimal(9,2)", "decimal(9, 2)", "decimal(9)", "decimal(9,2)\n", ""])
def test_unknown_type(name: str) -> None:
    """A type that does not exist is named, with all that do."""
    with pytest.raises(ValueError, match=r"unknown type .*; allowed: boolean, int8, .*, decimal\(p,s\)"):
        converter(name)


@pytest.mark.parametrize("name", ["decimal(2001,0)", "decimal(10,2001)", "decimal(10,-2001)"])
def test_no_wider_than_the_widest_number(name: str) -> None:
    """Precision and scale end where numbers end."""
    with pytest.raises(ValueError, match="end at 2000"):
        converter(name)


class TestIntegers:
    @pytest.mark.parametrize(
        ("name", "low", "high"),
        [
            ("int8", -128, 127),
            ("int16", -32768, 32767),
            ("int32", -2147483648, 2147483647),
            ("int64", -9223372036854775808, 9223372036854775807),
            ("uint8", 0, 255),
            ("uint16", 0, 65535),
            ("uint32", 0, 4294967295),
            ("uint64", 0, 18446744073709551615),
        ],
    )
    def test_bounds(self, name: str, low: int, high: int) -> None:
        """Both ends of a type belong to it; the next number on either side is an issue, as text and as number."""
        convert = converter(name)
        written = str if name == "uint64" else int
        for spelled in (int, str):
            assert [written(low), written(high)] == [convert(spelled(low)), convert(spelled(high))]
            assert [OUT_OF_RANGE] * 2 == [outcome(convert, spelled(low - 1)), outcome(convert, spelled(high + 1))]


def _spellings(number: Decimal) -> list[str]:
    """One number as writers spell it."""
    plus = "" if number.is_signed() else "+"
    return [str(number), format(number, "e"), format(number, "f"), f" {plus}{number} "]


@st.composite
def decimals(draw: st.DrawFn) -> Decimal:
    """Any number with up to 80 digits and any exponent that is in bounds."""
    sign, coefficient = draw(st.booleans()), draw(st.integers(0, 10**80))
    exponent = draw(st.integers(-2000, 2000 - len(str(coefficient)) + 1))
    return Decimal((int(sign), tuple(map(int, str(coefficient))), exponent))


class TestDecimals:
    @given(decimals())
    def test_exact(self, number: Decimal) -> None:
        """Whatever its scale, exponent and spelling, a decimal is written plainly and names the same number."""
        for spelled in (number, *_spellings(number)):
            text = converter("decimal")(spelled)
            assert isinstance(text, str)
            assert number == Decimal(text)
            assert not set(text) - set("-.0123456789")

    @given(decimals())
    def test_keeps_fraction_digits(self, number: Decimal) -> None:
        """Without a declared scale the fraction digits sent are the fraction digits written."""
        text = str(converter("decimal")(number))
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        assert max(-exponent, 0) == len(text.partition(".")[2])

    @given(st.integers(1, 60), st.integers(-20, 60), st.data())
    def test_declared_scale(self, precision: int, scale: int, data: st.DataObject) -> None:
        """Every number of a decimal(p,s), in any spelling, is written with exactly s fraction digits, unrounded."""
        unscaled = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
        number = Decimal(f"{unscaled}E{-scale}")
        for spelled in (number, *_spellings(number)):
            text = str(converter(f"decimal({precision},{scale})")(spelled))
            assert number == Decimal(text)
            assert max(scale, 0) == len(text.partition(".")[2])

    @given(st.integers(1, 60), st.integers(-20, 60), decimals())
    def test_nothing_is_rounded(self, precision: int, scale: int, number: Decimal) -> None:
        """A decimal(p,s) holds unscaled numbers of p digits: a number is one of them, or an issue."""
        _, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        whole = int("".join(map(str, digits))) * 10 ** max(exponent + scale, 0)
        unscaled, rest = divmod(whole, 10 ** max(-exponent - scale, 0))
        expected: object = number
        if rest:
            expected = SCALE
        elif unscaled >= 10**precision:
            expected = PRECISION
        found = outcome(converter(f"decimal({precision},{scale})"), number)
        assert expected == (Decimal(found) if isinstance(found, str) else found)


def _single(number: float) -> bytes:
    return struct.pack("<f", number)


class TestFloats:
    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_float64_round_trip(self, number: float) -> None:
        """A float64 comes through unchanged, as a number and as text, sign of zero included."""
        for spelled in (number, repr(number), Decimal(repr(number))):
            assert struct.pack("<d", number) == struct.pack("<d", converter("float64")(spelled))

    @given(st.floats(width=32, allow_nan=False, allow_infinity=False))
    def test_float32_round_trip(self, number: float) -> None:
        """A float32 names the same single-precision number after the translation."""
        found = converter("float32")(number)
        assert isinstance(found, float)
        assert _single(number) == _single(found)

    @given(st.floats(width=32, allow_nan=False, allow_infinity=False))
    def test_float32_shortest(self, number: float) -> None:
        """With one digit less, rounded, it would name another number."""
        assume(number)
        found = converter("float32")(number)
        digits = len(Decimal(repr(found)).normalize().as_tuple().digits)
        assert 1 == digits or _single(number) != _single(float(f"{number:.{digits - 1}g}"))

    @given(st.decimals(-999999, 999999, places=0), st.integers(-36, 30))
    def test_float32_gives_back_six_digits(self, coefficient: Decimal, exponent: int) -> None:
        """Six decimal digits survive single precision, so a writer that sends the double of 1.1 gives 1.1."""
        number = float(f"{coefficient}E{exponent}")
        assume(number == 0 or abs(number) >= 2.0**-126)
        (as_sent,) = struct.unpack("<f", _single(number))
        assert number == converter("float32")(as_sent)


class TestBinarySpellings:
    @pytest.mark.parametrize(
        ("read", "value", "expected"),
        [
            (values.bytes_from_hex, "00ff", "AP8="),
            (values.bytes_from_hex, "00FF", "AP8="),
            (values.bytes_from_hex, "", ""),
            (values.bytes_from_hex, "0", Issue("NOT_HEX")),
            (values.bytes_from_hex, "zz", Issue("NOT_HEX")),
            (values.bytes_from_hex, "é", NOT_ASCII),
            (values.bytes_from_hex, b"00", NOT_TEXT),
            (values.bytes_from_base64, "AP8=", "AP8="),
            (values.bytes_from_base64, "", ""),
            (values.bytes_from_base64, "AP8", Issue("NOT_BASE64")),
            (values.bytes_from_base64, "AP8=\n", Issue("NOT_BASE64")),
            (values.bytes_from_base64, "A P8=", Issue("NOT_BASE64")),
            (values.bytes_from_base64, "é", NOT_ASCII),
            (values.bytes_from_latin1, "\x00ÿ", "AP8="),
            (values.bytes_from_latin1, "Ā", Issue("NOT_LATIN1")),
            (values.bytes_from_latin1, b"x", NOT_TEXT),
        ],
    )
    def test_table(self, read: Callable[[object], str], value: object, expected: object) -> None:
        """A writer's spelling of bytes becomes base64, or an issue when it is not that spelling."""
        check(read, value, expected)

    @given(st.binary(max_size=40))
    def test_all_spellings_agree(self, content: bytes) -> None:
        """The same bytes, in hex, base64, latin-1 or as they are, have one canonical form."""
        expected = base64.b64encode(content).decode()
        assert expected == values.bytes_from_hex(content.hex())
        assert expected == values.bytes_from_base64(expected)
        assert expected == values.bytes_from_latin1(content.decode("latin-1"))
        assert expected == converter("bytes")(content)


class TestZones:
    @pytest.mark.parametrize(
        ("zone", "value", "expected"),
        [
            ("+08:00", "2024-02-29 12:00:00", "2024-02-29T04:00:00Z"),
            ("Asia/Shanghai", "2024-02-29 12:00:00.5", "2024-02-29T04:00:00.5Z"),
            ("America/New_York", "2024-01-15 12:00:00", "2024-01-15T17:00:00Z"),
            ("America/New_York", "2024-07-15 12:00:00", "2024-07-15T16:00:00Z"),
            ("America/New_York", "2024-03-10 02:30:00", Issue("LOCAL_TIME_AMBIGUOUS")),  # never: clocks went forward
            ("America/New_York", "2024-11-03 01:30:00", Issue("LOCAL_TIME_AMBIGUOUS")),  # twice: clocks went back
            ("America/New_York", "2024-11-03 01:30:00-04:00", "2024-11-03T05:30:00Z"),
            ("Asia/Shanghai", "0001-01-01 00:00:00", OUT_OF_RANGE),
            (None, "2024-02-29 12:00:00", Issue("ZONE_MISSING")),
        ],
    )
    def test_default(self, zone: str | None, value: str, expected: object) -> None:
        """Text without a zone is read in the default zone; a local time that happened twice or never is an issue."""
        check(timestamptz_in(zone), value, expected)

    @pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "/etc/passwd", "Asia", "+24:00", "+08:60"])
    def test_unknown(self, name: str) -> None:
        """A zone that does not exist is named, whatever the file system holds under that name."""
        with pytest.raises(ValueError, match=r"unknown time zone '.*'; use an offset such as \+08:00 or a name"):
            values.zone(name)

    @given(st.datetimes(), st.integers(-(24 * 60) + 1, 24 * 60 - 1), st.text("0123456789", max_size=9))
    def test_instant(self, local: datetime, minutes: int, fraction: str) -> None:
        """Whatever its offset, a zoned time is written as the same instant in UTC, fraction digits as sent."""
        local = local.replace(microsecond=0)
        sign, (hour, minute) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
        dotted = f".{fraction}" if fraction else ""
        try:
            expected: object = f"{(local - timedelta(minutes=minutes)).isoformat()}{dotted}Z"
        except OverflowError:
            expected = OUT_OF_RANGE
        found = outcome(converter("timestamptz"), f"{local.isoformat()}{dotted}{sign}{hour:02d}:{minute:02d}")
        assert expected == found


class TestRawText:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("0000-00-00", "0000-00-00"),
            (b"\x00\xff", "AP8="),
            (Decimal("1E+3000"), "1E+3000"),
            (7, "7"),
            ("a\ud800", "a\\ud800"),
        ],
    )
    def test_raw(self, value: object, expected: str) -> None:
        """The raw text of an issue can always be written: bytes as base64, a lone surrogate escaped."""
        assert expected == Unrepresentable("CODE", value).raw


def test_named_zones_do_not_come_from_the_machine(tmp_path: Path) -> None:
    """Another image with another tz database gives the same bytes."""
    (tmp_path / "Asia").mkdir()
    utc = resources.files("tzdata.zoneinfo").joinpath("UTC").read_bytes()
    (tmp_path / "Asia" / "Shanghai").write_bytes(utc)
    values.zone.cache_clear()
    zoneinfo.reset_tzpath([tmp_path])
    try:
        assert timedelta(hours=8) == values.zone("Asia/Shanghai").utcoffset(datetime(2026, 1, 1))
    finally:
        zoneinfo.reset_tzpath()
        values.zone.cache_clear()
