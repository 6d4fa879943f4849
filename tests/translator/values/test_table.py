"""Source scalar -> canonical scalar: a table per type, with the spellings that break other tools."""

import math
from decimal import Decimal

import pytest

from tests.translator.values.outcome import (
    NOT_A_NUMBER,
    NOT_AN_INTEGER,
    NOT_ASCII,
    NOT_TEXT,
    OUT_OF_RANGE,
    PRECISION,
    SCALE,
    TOO_FAR,
    Issue,
    check,
)
from translator import values
from translator.values import converter

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
    (b"1", Issue("NOT_A_BOOLEAN")),
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
    ("1" * 2001, OUT_OF_RANGE),
    ("1" * 5000, OUT_OF_RANGE),
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
    (10**2001 - 1, "9" * 2001),
    (10**2001, TOO_FAR),
    (-(10**2001), TOO_FAR),
    ("12345678901234567890123456789012345678.9", "12345678901234567890123456789012345678.9"),
    ("1E400", "1" + "0" * 400),
    ("1E-400", "0." + "0" * 399 + "1"),
    ("4.9E-324", "0." + "0" * 323 + "49"),
    ("1" + "0" * 2000, "1" + "0" * 2000),
    ("0." + "0" * 1999 + "1", "0." + "0" * 1999 + "1"),
    (Decimal("1" * 900 + "E400"), "1" * 900 + "0" * 400),
    ("1E401", TOO_FAR),
    ("1E-401", TOO_FAR),
    ("0E-401", TOO_FAR),
    (Decimal("1E401"), TOO_FAR),
    (Decimal("1E-401"), TOO_FAR),
    ("1" * 900 + "E401", TOO_FAR),
    ("1E1999", TOO_FAR),
    ("0E1999", "0"),
    ("1" + "0" * 2001, TOO_FAR),
    ("0." + "0" * 2000 + "1", TOO_FAR),
    ("1." + "1" * 2001, TOO_FAR),
    ("1" * 2001, "1" * 2001),
    ("1" * 2002, TOO_FAR),
    ("1E999999999", TOO_FAR),
    (Decimal("1E+999999999"), TOO_FAR),
    ("1E9999999999", TOO_FAR),
    ("1E-99999999999999999999", TOO_FAR),
    ("1E0000000000002", "100"),
    ("-.5E1", "-5"),
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
    # Oracle's NUMBER(3,-2) keeps hundreds, and NUMBER(3,5) keeps three digits after two zeros.
    ("decimal(3,-2)", "12300", "12300"),
    ("decimal(3,-2)", "-100", "-100"),
    ("decimal(3,-2)", "0", "0"),
    ("decimal(3,-2)", "99900", "99900"),
    ("decimal(3,-2)", "100000", PRECISION),
    ("decimal(3,-2)", "12345", SCALE),
    ("decimal(3,-2)", "-5", SCALE),
    ("decimal(3,5)", "0.00123", "0.00123"),
    ("decimal(3,5)", "0.01230", PRECISION),
    ("decimal(2000,400)", "1E-400", "0." + "0" * 399 + "1"),
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
    (2.0**-149, 1e-45),  # the smallest: one digit identifies it
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
    ("10000-01-01", OUT_OF_RANGE),
    ("294276-12-31", OUT_OF_RANGE),
    ("+12024-01-01", OUT_OF_RANGE),
    ("-0044-03-15", OUT_OF_RANGE),
    ("-4712-01-01 00:00:00", OUT_OF_RANGE),
    ("0044-03-15 BC", OUT_OF_RANGE),
    ("infinity", OUT_OF_RANGE),
    ("-infinity", OUT_OF_RANGE),
    ("+2024-01-01", Issue("INVALID_DATE")),
    ("-44-03-15", Issue("INVALID_DATE")),
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
    ("-00:00:00", "00:00:00"),
    ("-0:00:00.00", "00:00:00.00"),
    ("-00:00:00.01", "-00:00:00.01"),
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
    ("10000-01-01 00:00:00", OUT_OF_RANGE),
    ("-0044-03-15 00:00:00", OUT_OF_RANGE),
    ("0044-03-15 00:00:00 BC", OUT_OF_RANGE),
    ("infinity", OUT_OF_RANGE),
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
    ("10000-01-01 00:00:00+00:00", OUT_OF_RANGE),
    ("-infinity", OUT_OF_RANGE),
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
    """The column's type determines the encoding. A value without a faithful form is an issue with its reason."""
    check(converter(name), value, expected)


def test_every_type_has_its_table() -> None:
    """Every canonical type has a table, and every table a type."""
    assert set(values.CANONICAL_TYPES) == set(TABLE)


@pytest.mark.parametrize("name", ["varchar", "Decimal(9,2)", "decimal(9, 2)", "decimal(9)", "decimal(9,2)\n", ""])
def test_unknown_type(name: str) -> None:
    """The error for an unknown type names it and lists all types."""
    with pytest.raises(ValueError, match=r"unknown type .*; expected boolean, int8, .*, or decimal\(p,s\)"):
        converter(name)


@pytest.mark.parametrize("name", ["decimal(2001,0)", "decimal(10,401)", "decimal(10,-401)"])
def test_no_wider_than_the_widest_number(name: str) -> None:
    """Precision and scale are limited to those of numbers."""
    with pytest.raises(ValueError, match="the precision must not exceed 2000, and the scale must not exceed 400"):
        converter(name)
