"""Canal: text of a cell -> canonical scalar or issue (§7)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import Issue
from tests.translator.dialects.canal.messages import canal, of_type, row, rows
from translator.dialects.canal.mysql_type import parse
from translator.dialects.canal.types import Spelling, coding
from translator.message import Limits
from translator.values import Unrepresentable


def convert(type_: str, text: str, **spelling: Any) -> object:
    """Return the canonical scalar, or the code of the issue in angle brackets."""
    try:
        return coding(parse(type_), Spelling(**spelling)).convert(text)
    except Unrepresentable as bad:
        return f"<{bad.code}>"


@pytest.mark.requirement("canal.produce.3", "canal.reject.6")
@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (-128, "tinyint", "-128"),
        ("<OUT_OF_RANGE>", "tinyint", "128"),
        (255, "tinyint unsigned", "255"),
        (5, "bool", "5"),
        (8388607, "mediumint", "8388607"),
        ("<OUT_OF_RANGE>", "mediumint", "8388608"),
        ("<OUT_OF_RANGE>", "mediumint", "-8388609"),
        (16777215, "mediumint unsigned", "16777215"),
        ("<OUT_OF_RANGE>", "mediumint unsigned", "16777216"),
        ("<OUT_OF_RANGE>", "int unsigned", "-1"),
        (-9223372036854775808, "bigint", "-9223372036854775808"),
        ("18446744073709551615", "bigint unsigned", "18446744073709551615"),
        ("<OUT_OF_RANGE>", "serial", "-1"),
        ("<NOT_AN_INTEGER>", "int", ""),
        ("<NOT_AN_INTEGER>", "int", "1.0"),
        ("<NOT_ASCII>", "int", "１"),
        ("999.00", "decimal(10,2)", "999.0"),
        ("1000000.00", "decimal(10,2)", "1E6"),
        ("<SCALE_EXCEEDED>", "decimal(10,2)", "0.005"),
        ("<PRECISION_EXCEEDED>", "decimal(4,2)", "100.00"),
        ("0.10", "decimal", "0.10"),
        ("<NOT_A_NUMBER>", "decimal(10,2)", ""),
        (3.14, "float", "3.14"),
        (1e10, "float", "1.0E10"),
        (9.9, "float", "9.899999618530273"),
        (9.899999618530273, "double", "9.899999618530273"),
        ("<NOT_A_NUMBER>", "double", ""),
        (True, "bit(1)", "1"),
        (False, "bit(1)", "0"),
        ("<OUT_OF_RANGE>", "bit(1)", "2"),
        (5, "bit(3)", "5"),
        ("<OUT_OF_RANGE>", "bit(3)", "8"),
        ("18446744073709551615", "bit(64)", "18446744073709551615"),
        ("<OUT_OF_RANGE>", "bit(33)", "8589934592"),
        ("8589934591", "bit(33)", "8589934591"),
        (2023, "year", "2023"),
        (0, "year", "0000"),
        ("<OUT_OF_RANGE>", "year", "2156"),
    ],
)
def test_numbers(value: object, type_: str, text: str) -> None:
    """Numbers are exact and within the column's range. Anything else is an issue, including an empty text."""
    assert value == convert(type_, text)


@pytest.mark.requirement("canal.produce.3", "canal.reject.6")
@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        ("2020-02-29", "date", "2020-02-29"),
        ("<ZERO_DATE>", "date", "0000-00-00"),
        ("<ZERO_DATE>", "date", "2020-00-10"),
        ("<INVALID_DATE>", "date", "2021-02-29"),
        ("2024-05-06T07:08:09.120000", "datetime(6)", "2024-05-06 07:08:09.120000"),
        ("2024-05-06T07:08:09", "timestamp", "2024-05-06 07:08:09"),
        ("<ZERO_DATE>", "datetime", "0000-00-00 00:00:00"),
        ("<ZERO_DATE>", "timestamp(6)", "0000-00-00 00:00:00.000000"),
        ("<INVALID_TIMESTAMP>", "datetime", ""),
        ("-838:59:59", "time", "-838:59:59"),
        ("100:00:00.5", "time(1)", "100:00:00.5"),
        ("<OUT_OF_RANGE>", "time", "839:00:00"),
        ("<INVALID_TIME>", "time", "12:60:00"),
    ],
)
def test_dates_and_times(value: object, type_: str, text: str) -> None:
    """Digits are kept as sent. Dates outside the calendar and times outside MySQL's range are issues."""
    assert value == convert(type_, text)


@pytest.mark.requirement("canal.accept.6")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2024-05-05T23:08:09.5Z", "2024-05-06 07:08:09.5"),
        ("<ZERO_DATE>", "0000-00-00 00:00:00"),
        ("<INVALID_TIMESTAMP>", "yesterday"),
        ("<INVALID_TIMESTAMP>", "2024-05-06 07:08:09+99:00"),
    ],
)
def test_timestamps_in_a_configured_zone(value: object, text: str) -> None:
    """TIMESTAMP is printed in the zone of the writer's JVM, and is an instant once that is known."""
    assert value == convert("timestamp(1)", text, timezone="Asia/Shanghai")


@pytest.mark.parametrize(
    ("text", "instant", "note"),
    [
        ("2024-10-27 02:30:00", "2024-10-27T00:30:00Z", "TZ_OVERLAP=at"),
        ("2024-03-31 02:30:00", "2024-03-31T01:30:00Z", "TZ_GAP=at"),
    ],
)
def test_a_local_time_that_happened_twice_or_never(text: str, instant: str, note: str) -> None:
    """When clocks change, a printed time can have two readings or none (§7.1). The row notes which was used."""
    body = of_type("INSERT", [{"at": text}], mysqlType={"at": "timestamp"}, pkNames=None)
    read = row(body, timezone="Europe/Berlin")
    assert ({"at": instant}, ["TZ_ASSUMED=Europe/Berlin", note]) == (read.after, read.notes)


def test_the_zone_is_noted() -> None:
    """Every row of a table with a TIMESTAMP notes the assumed zone. DATETIME needs none."""
    body = of_type("INSERT", [{"at": "2024-05-06 07:08:09"}], mysqlType={"at": "timestamp"}, pkNames=None)
    assert ["TZ_UNKNOWN"] == row(body).notes
    assert ["TZ_ASSUMED=+08:00"] == row(body, timezone="+08:00").notes
    assert row({**body, "mysqlType": {"at": "datetime"}}).notes is None


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


@pytest.mark.requirement("canal.produce.4", "canal.reject.6")
@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (b64(b"\x00\xff\x80"), "blob", "\x00\xff\x80"),
        (b64("é".encode()), "varbinary(9)", "Ã©"),
        ("", "blob", ""),
        (b64(b"ab\0\0"), "binary(4)", "ab"),
        ("<LENGTH_EXCEEDED>", "binary(4)", "abcde"),
        (b64(b"ab"), "binary", "ab"),
        ("<NOT_LATIN1>", "blob", "\u0100"),
        (b64(b"\x01\x01\0\0\0" + bytes(16)), "point", "\0\0\0\0\x01\x01\0\0\0" + "\0" * 16),
        ("<SRID_UNSUPPORTED>", "point", "\xe6\x10\0\0\x01\x01\0\0\0" + "\0" * 16),
        ("<NOT_WKB>", "geometry", ""),
        ("<NOT_WKB>", "geometry", '{"type":"Point","coordinates":[1,2]}'),
    ],
)
def test_bytes(value: str, type_: str, text: str) -> None:
    """One character is one byte. BINARY(n) gets back the zeros that canal omits, and an SRID is not kept."""
    assert value == convert(type_, text)


@pytest.mark.requirement("canal.reject.6")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('{"a": [1, 1.50]}', '{"a": [1, 1.50]}'),
        ("null", "null"),
        ("<JSON_PARTIAL_UPDATE>", "JSON_REPLACE(doc, '$.a', 1)"),
        ("<JSON_PARTIAL_UPDATE>", "json_array_insert(doc, '$[0]', 1)"),
        ("<JSON_PARTIAL_UPDATE>", "JSON_REMOVE(doc, '$.a')"),
        ("<JSON_PARTIAL_UPDATE>", "JSON_INSERT(doc, '$.a', 1)"),
        ("<NOT_JSON>", ""),
        ("<NOT_JSON>", "{'a': 1}"),
        ("<NOT_JSON>", "[" * 100_000),
    ],
)
def test_json_documents(value: str, text: str) -> None:
    """A document stays as printed, but a partial update is not a document."""
    assert value == convert("json", text)


@pytest.mark.requirement("canal.reject.6")
@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        ("a", "enum('a','b,c')", "1"),
        ("b,c", "enum('a','b,c')", "2"),
        ("", "enum('a','b,c')", "0"),
        ("<ENUM_UNKNOWN>", "enum('a','b,c')", "3"),
        ("<ENUM_UNKNOWN>", "enum('a','b,c')", "a"),
        ("<ENUM_UNKNOWN>", "enum('a','b,c')", ""),
        ("1", "enum('2','1')", "2"),
        ("2", "enum", "2"),
        ("", "set('a','b','c')", "0"),
        ("a,c", "set('a','b','c')", "5"),
        ("<SET_UNKNOWN>", "set('a','b','c')", "8"),
        ("<SET_UNKNOWN>", "set('a','b','c')", "a"),
        ("<SET_UNKNOWN>", "set('a','b','c')", "-1"),
        ("<SET_UNKNOWN>", "set('a','b','c')", "9" * 30),
    ],
)
def test_labels_of_open_source_canal(value: str, type_: str, text: str) -> None:
    """ENUM is always a 1-based index into the labels and SET a bit mask (§7.1)."""
    assert value == convert(type_, text)


@pytest.mark.requirement("canal.accept.6")
@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        ("b", "enum('a','b')", "2"),
        ("b", "enum('a','b')", "b"),
        ("", "enum('a','b')", ""),
        ("3", "enum('1','2','3','4')", "3"),
        ("<LABEL_AMBIGUOUS>", "enum('2','1')", "2"),
        ("<ENUM_UNKNOWN>", "enum('a','b')", "c"),
        ("a,c", "set('a','b','c')", "5"),
        ("a,c", "set('a','b','c')", "a,c"),
        ("", "set('a','b','c')", ""),
        ("4", "set('1','2','4')", "4"),
        ("<LABEL_AMBIGUOUS>", "set('2','1')", "2"),
        ("<SET_UNKNOWN>", "set('a','b','c')", "a,d"),
    ],
)
def test_labels_of_dts(value: str, type_: str, text: str) -> None:
    """DTS does not document its form. An index or label is read, and a value that could be both is an issue (§6.3)."""
    assert value == convert(type_, text, labels="either")


@given(st.integers(0, 2**6 - 1))
def test_every_mask_names_its_labels(mask: int) -> None:
    """Joining the labels of a mask gives back the mask."""
    labels = ["a", "b", "c", "d", "e", "f"]
    text = convert("set('a','b','c','d','e','f')", str(mask))
    assert isinstance(text, str)
    assert mask == sum(1 << labels.index(label) for label in text.split(",") if label)


def test_dts_bytes_are_an_assumption() -> None:
    """DTS does not document how it prints bytes, so the assumption is noted."""
    body = of_type("INSERT", [{"raw": "ÿ"}], mysqlType={"raw": "blob"}, pkNames=None)
    assert ["BINARY_ASSUMED=latin1"] == row(body, profile="dts").notes
    assert row(body).notes is None


@pytest.mark.requirement("canal.produce.4")
def test_an_issue_leaves_the_column_out_and_keeps_its_text() -> None:
    """The raw text is kept with the event, truncated to the limit, and no value replaces it."""
    types = {"id": "int", "day": "date"}
    dialect = canal(limits=Limits(issue_raw_chars=4))
    change = row(of_type("INSERT", [{"id": "1", "day": "0000-00-00"}], mysqlType=types), dialect)
    assert ({"id": 1}, [Issue("day", "ZERO_DATE", "0000")]) == (change.after, change.issues)


def test_issues_belong_to_their_row() -> None:
    """A bad value does not affect other rows. With two full images, it is reported once."""
    types = {"id": "int", "day": "date"}
    data = [{"id": "1", "day": "0000-00-00"}, {"id": "2", "day": "2024-01-01"}]
    first, second = rows(of_type("INSERT", data, mysqlType=types))
    assert (1, None) == (len(first.issues or ()), second.issues)
    full = row(of_type("UPDATE", data[:1], [{"id": "3", "day": "0000-00-00"}], mysqlType=types))
    assert [Issue("day", "ZERO_DATE", "0000-00-00")] == full.issues
