"""Cells -> canonical scalars and issues (§4 and 5)."""

import math
import struct

import pytest

from tests.translator.dialects.dts_avro.composer import (
    Cell,
    binary,
    binary_geometry,
    character,
    date_time,
    decimal,
    float_,
    integer,
    local,
    text,
    text_geometry,
    timestamp,
    zoned,
)
from tests.translator.dialects.dts_avro.messages import MYSQL, ORACLE, POSTGRESQL, SQL_SERVER, value_of
from translator.dialects.dts_avro import charsets

_POINT = struct.pack("<BIdd", 1, 1, 1.5, 2.5)
_POINT_BASE64 = "AQEAAAAAAAAAAAD4PwAAAAAAAARA"


@pytest.mark.requirement(
    "dts_avro.reject.6",
    "dts_avro.values.1",
    "dts_avro.values.2",
    "dts_avro.values.3",
    "dts_avro.values.5",
    "dts_avro.values.6",
    "dts_avro.values.7",
)
@pytest.mark.parametrize(
    ("expected", "number", "cell"),
    [
        # integers: wide enough for signed and unsigned
        (("int16", 255), 1, integer(255, 1)),
        (("int32", 65_535), 2, integer(65_535, 2)),
        (("int64", 4_294_967_295), 3, integer(4_294_967_295, 4)),
        (("int32", -8_388_608), 9, integer(-8_388_608, 3)),
        (("int64", -(2**63)), 8, integer(-(2**63), 8)),
        (("int64", ("OUT_OF_RANGE", "9223372036854775808")), 8, integer(2**63, 8)),
        (("uint64", "18446744073709551615"), 16, integer(2**64 - 1, 8)),
        (("int32", ("NOT_AN_INTEGER", "+1")), 2, integer("+1")),
        (("int32", ("NOT_AN_INTEGER", "１")), 2, integer("１")),
        # numbers with a decimal point
        (("decimal", "1050.00"), 246, decimal("1050.00", 6, 2)),
        (("decimal", "100"), 0, decimal("1E+2")),
        (("decimal", ("NOT_A_NUMBER", "~")), 246, decimal("~")),
        (("float32", 1.1), 4, float_(1.100000023841858)),
        (("float64", 1.100000023841858), 5, float_(1.100000023841858)),
        (("float64", "NaN"), 5, float_(math.nan)),
        (("float64", "-Infinity"), 5, float_(-math.inf)),
        # dates and times
        (("date", "2023-10-17"), 10, date_time(year=2023, month=10, day=17)),
        (("date", "2023-10-17"), 14, local(2023, 10, 17, 0, 0, 0)),
        (("date", ("INVALID_DATE", "2023-10-17T00:00:01")), 10, local(2023, 10, 17, 0, 0, 1)),
        (("date", ("ZERO_DATE", "0000-00-00")), 10, date_time(year=0, month=0, day=0)),
        (("date", ("ZERO_DATE", "2020-00-17")), 10, date_time(year=2020, month=0, day=17)),
        (("date", ("INVALID_DATE", "2023-02-29")), 10, date_time(year=2023, month=2, day=29)),
        (("timestamp", "2023-10-17T15:02:00"), 12, local(2023, 10, 17, 15, 2, 0)),
        (("timestamp", "2023-10-17T15:02:00.000008"), 18, local(2023, 10, 17, 15, 2, 0, 8)),
        (("timestamp", ("INVALID_TIMESTAMP", "2023-10-17")), 12, date_time(year=2023, month=10, day=17)),
        (("timestamp", ("INVALID_TIME", "2023-10-17T24:00:00")), 12, local(2023, 10, 17, 24, 0, 0)),
        (
            ("timestamp", ("FRACTION_OUT_OF_RANGE", "2023 10 17 15 2 0 1000000000")),
            12,
            local(2023, 10, 17, 15, 2, 0, 10**9),
        ),
        (("timestamp", ("INVALID_TIMESTAMP", "2023 - - 1 - - -")), 12, date_time(year=2023, hour=1)),
        (("time", "838:59:59"), 11, date_time(hour=838, minute=59, second=59)),
        (("time", "-00:00:01.500000"), 19, date_time(hour=0, minute=0, second=-1, millis=-500_000)),
        (("time", ("INVALID_TIME", "839:00:00")), 11, date_time(hour=839, minute=0, second=0)),
        (("time", ("INVALID_TIME", "- - - -1 30 0 -")), 11, date_time(hour=-1, minute=30, second=0)),
        (("int16", 2023), 13, date_time(year=2023)),
        (("int16", 0), 13, date_time(year=0)),
        (("timestamptz", "2021-07-29T10:09:29.000008Z"), 7, timestamp(1_627_553_369, 8)),
        (("timestamptz", "2022-02-15T08:16:56.350000Z"), 17, timestamp(1_644_913_016, 350_000)),
        (("timestamptz", "1969-12-31T23:59:59Z"), 17, timestamp(-1)),
        (("timestamptz", ("ZERO_DATE", "0 s 0 micros")), 7, timestamp(0)),
        (("timestamptz", ("OUT_OF_RANGE", "253402300800 s 0 micros")), 7, timestamp(253_402_300_800)),
        (("timestamptz", ("OUT_OF_RANGE", f"{2**62} s 0 micros")), 7, timestamp(2**62)),
        # text, labels, documents, bytes
        (("string", "€"), 253, character(b"\x80", "latin1")),
        (("string", "茶"), 15, character("茶".encode("gb18030"), "GB18030")),
        (("string", "茶"), 254, character("茶".encode("utf-16-be"), "utf16")),
        (("string", ("UNKNOWN_CHARSET", "swe7:fQ==")), 253, character(b"}", "swe7")),
        (("string", ("UNKNOWN_CHARSET", ":fQ==")), 253, character(b"}", "")),
        (("string", ("UNDECODABLE", "utf8:/w==")), 253, character(b"\xff", "utf8")),
        (("bytes", "/w=="), 253, character(b"\xff", "binary")),
        (("bytes", "/w=="), 253, binary(b"\xff", "BINARY")),
        (("string", "long"), 252, character("long")),
        (("bytes", "/w=="), 252, binary(b"\xff")),
        (("bytes", "/w=="), 249, binary(b"\xff")),
        (("string", None), 253, None),
        (("bytes", None), 252, None),
        (("json", '{"a": 1.0}'), 245, text('{"a": 1.0}', "JSON")),
        (("enum", "open"), 247, text("open", "ENUM")),
        (("enum", ("LABEL_MISSING", "2")), 247, integer(2)),
        (("set", "a,b"), 248, text("a,b", "SET")),
        # geometry: WKB, possibly after MySQL's SRID
        (("geometry", _POINT_BASE64), 255, binary_geometry(_POINT)),
        (("geometry", _POINT_BASE64), 255, binary_geometry(bytes(4) + _POINT)),
        (("geometry", "AAAAAAEAAAAAAAAAAAAAAAAAAAAA"), 255, binary_geometry(b"\0\0\0\0\1" + bytes(16))),
        (("geometry", ("SRID_UNSUPPORTED", "5hAAAA==")), 255, binary_geometry(b"\xe6\x10\0\0" + _POINT)),
        (("geometry", ("NOT_WKB", "AQI=")), 255, binary_geometry(b"\1\2")),
        (("geometry", ("NOT_BYTES", "POINT(1 2)")), 255, text_geometry("POINT(1 2)")),
        # a number that no table lists
        (("unknown", "7"), 77, integer(7)),
        (("unknown", "1.10"), 77, decimal("1.10")),
        (("unknown", "0.1"), 77, float_(0.1)),
        (("unknown", "NaN"), 77, float_(math.nan)),
        (("unknown", "t"), 77, character("t")),
        (("unknown", "/w=="), 77, binary(b"\xff")),
        (("unknown", "/w=="), 77, character(b"\xff", "binary")),
        (("unknown", "0000-00-00"), 77, date_time(year=0, month=0, day=0)),
        (("unknown", "-0044-03-15"), 77, date_time(year=-44, month=3, day=15)),
        (("unknown", ("INVALID_DATETIME", "2023 -1 2 - - - -")), 77, date_time(year=2023, month=-1, day=2)),
        (("unknown", ("INVALID_DATETIME", "2023 1 2 - - - 5")), 77, date_time(year=2023, month=1, day=2, millis=5)),
        (("unknown", ("INVALID_DATETIME", "2023 1 2 -3 0 0 0")), 77, local(2023, 1, 2, -3, 0, 0)),
    ],
)
def test_mysql(expected: tuple[object, object], number: int, cell: Cell) -> None:
    """A MySQL column has the type of its number. A value without a faithful form is an issue."""
    assert _short(expected) == _short(value_of(MYSQL, number, cell))


def _short(result: tuple[object, object]) -> tuple[object, object]:
    """Return raw base64 truncated, so that the table above stays readable."""
    type_, value = result
    if isinstance(value, tuple) and value[0] == "SRID_UNSUPPORTED":
        return type_, (value[0], value[1][:6])
    return result


@pytest.mark.requirement("dts_avro.values.3", "dts_avro.values.5")
@pytest.mark.parametrize(
    ("expected", "number", "cell"),
    [
        (("decimal", "12"), 2, decimal("12", 2, 0)),
        (("timestamp", "2023-10-17T15:02:00.000000008"), 180, local(2023, 10, 17, 15, 2, 0, 8)),
        (("timestamp", ("OUT_OF_RANGE", "-0044-03-15T00:00:00")), 12, local(-44, 3, 15, 0, 0, 0)),
        (("interval", "-1-02"), 182, date_time(year=-1, month=-2)),
        (("interval", "0-05"), 182, date_time(year=0, month=5)),
        (("interval", "-0-05"), 182, date_time(year=0, month=-5)),
        (("interval", "3 04:05:06.700000000"), 183, date_time(day=3, hour=4, minute=5, second=6, millis=700_000_000)),
        (("interval", ("INVALID_INTERVAL", "2023-10-17")), 182, date_time(year=2023, month=10, day=17)),
        (("string", "é"), 1, character(b"\xe9", "WE8MSWIN1252")),
        (("float32", 1.1), 100, float_(1.100000023841858)),
        (("bytes", "AQ=="), 23, binary(b"\1", "RAW")),
        (("string", "AAAB"), 69, text("AAAB", "ROWID")),
        (("timestamptz", "1970-01-01T00:00:00Z"), 231, timestamp(0)),
        (("unknown", None), 29, None),
    ],
)
def test_oracle(expected: tuple[object, object], number: int, cell: Cell) -> None:
    """An Oracle column has the type of its number, and its fractions are nanoseconds."""
    assert expected == value_of(ORACLE, number, cell)


@pytest.mark.requirement("dts_avro.values.1", "dts_avro.values.4", "dts_avro.values.6", "dts_avro.values.7")
@pytest.mark.parametrize(
    ("expected", "number", "cell"),
    [
        (("int32", 1), 23, integer(1)),
        (("boolean", True), 16, text("t", "BOOL")),
        (("boolean", False), 16, text("false", "BOOL")),
        (("boolean", ("NOT_A_BOOLEAN", "maybe")), 16, text("maybe", "BOOL")),
        (("json", '{"é":1}'), 3802, binary('{"é":1}'.encode(), "JSON")),
        (("json", ("UNDECODABLE", "/w==")), 3802, binary(b"\xff", "JSON")),
        (("json", "{}"), 114, text("{}", "JSON")),
        (("string", "12:30:00+08"), 1266, zoned("+08", hour=12, minute=30, second=0)),
        (("string", "(1,2)"), 600, text("(1,2)", "XTYPE")),
        (("string", "(1,2)"), 600, text_geometry("(1,2)")),
        (("uuid", "0e2b"), 2950, text("0e2b", "UUID")),
        (("interval", "1 day"), 1186, text("1 day")),
        (("decimal", ("NOT_A_NUMBER", "NaN")), 1700, decimal("NaN")),
        (("string", "é"), 25, character(b"\xe9", "LATIN1")),
        (("timestamp", "2023-10-17T15:02:00.000008"), 1114, local(2023, 10, 17, 15, 2, 0, 8)),
        (("unknown", "happy"), 16_401, text("happy", "NEWTYPE")),
    ],
)
def test_postgresql(expected: tuple[object, object], number: int, cell: Cell) -> None:
    """A PostgreSQL column has the type of its OID. User-defined types are unknown and passed on."""
    assert expected == value_of(POSTGRESQL, number, cell)


def test_sources_without_a_map_are_unknown() -> None:
    """No type numbers were published for SQL Server, so every column is unknown and read by its branch."""
    assert ("unknown", "7") == value_of(SQL_SERVER, 1, integer(7))
    moment = local(2023, 10, 17, 15, 2, 0, 8)
    assert ("unknown", "2023-10-17T15:02:00.000000008") == value_of(SQL_SERVER, 12, moment)


@pytest.mark.requirement("dts_avro.values.1")
@pytest.mark.parametrize(
    ("expected", "number", "cell", "declared"),
    [
        ("18446744073709551615", 8, integer(2**64 - 1, 8), "uint64"),
        (1, 1, integer(1, 1), "int8"),
        (True, 1, integer(1, 1), "boolean"),
        ("348.000", 246, decimal("348.00"), "decimal(8,3)"),
        (12, 2, decimal("12"), "int32"),
        (None, 253, None, "bytes"),
        ("5A==", 253, character(b"\xe4", "latin1"), "bytes"),
        ("2023-10-17", 253, character("2023-10-17"), "date"),
        ("7", 77, integer(7), "string"),
        ("0.5", 5, float_(0.5), "string"),
    ],
)
def test_a_declared_type_wins(expected: object, number: int, cell: Cell, declared: str) -> None:
    """`tables:` overrides the type of a column by its name."""
    assert (declared, expected) == value_of(MYSQL, number, cell, declared=declared)


def test_bytes_in_a_column_declared_as_text_are_an_issue() -> None:
    """The declared type determines the encoding, whatever arrives."""
    assert ("string", ("NOT_TEXT", "/w==")) == value_of(MYSQL, 253, binary(b"\xff"), declared="string")


_WIDE = {
    **dict.fromkeys(("ucs2", "utf16", "al16utf16", "utf-16", "utf-16be"), "utf-16-be"),
    **dict.fromkeys(("utf16le", "utf-16le"), "utf-16-le"),
    "utf32": "utf-32-be",
}


@pytest.mark.requirement("dts_avro.values.5")
@pytest.mark.parametrize("charset", sorted(set(charsets.MYSQL) | set(charsets.OTHERS)))
def test_every_charset_reads_ascii(charset: str) -> None:
    """Every codec of the tables exists and reads what it writes."""
    for table in (charsets.MYSQL, charsets.OTHERS):
        if charset in table:
            assert "Az09" == table[charset]("Az09".encode(_WIDE.get(charset, "ascii")))


@pytest.mark.requirement("dts_avro.values.5")
def test_latin1_of_mysql_passes_its_five_holes() -> None:
    """MySQL's latin1 is cp1252, except that 81, 8D, 8F, 90 and 9D are unchanged."""
    assert "€\x81\x8d\x8f\x90\x9dÿ" == charsets.MYSQL["latin1"](b"\x80\x81\x8d\x8f\x90\x9d\xff")
