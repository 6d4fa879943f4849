"""Reading records with a schema that arrived with them uses exactly the bytes of the record, or fails."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.dialects.test_avro_schema import record
from translator.dialects._avro_datum import DatumReader
from translator.dialects._avro_schema import parse_schema
from translator.errors import MessageError
from translator.message import Limits

SCHEMA = record(
    ("flag", "boolean"),
    ("small", "int"),
    ("big", ["null", "long"]),
    ("single", "float"),
    ("double", "double"),
    ("raw", "bytes"),
    ("text", ["null", "string"]),
    ("color", {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}),
    ("id", {"type": "fixed", "name": "Id", "size": 4}),
    ("inner", ["null", record(("x", ["null", "int"]), ("again", "Id"), name="Inner")]),
    ("nothing", "null"),
)
ROW: dict[str, Any] = {
    "flag": True,
    "small": -70_000,
    "big": 2**63 - 1,
    "single": 0.5,
    "double": 0.1,
    "raw": b"\x00\xff",
    "text": "ü",
    "color": "BLUE",
    "id": b"abcd",
    "inner": {"x": 300, "again": b"efgh"},
    "nothing": None,
}


def reader(schema: Any = SCHEMA) -> DatumReader:
    """Return the reader of a schema."""
    return DatumReader(parse_schema(json.dumps(schema).encode(), Limits()))


def written(row: Any, schema: Any = SCHEMA) -> bytes:
    """Return the bytes of a record, written by fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


READER = reader()
DATUM = written(ROW)


def path_of(data: bytes, schema: Any = SCHEMA) -> str:
    """Return the path of a record's damage."""
    with pytest.raises(MessageError) as caught:
        reader(schema).read(data)
    assert "MALFORMED_AVRO" == caught.value.code
    return caught.value.path


def test_every_type() -> None:
    """Every type is read as it was written."""
    assert ROW == READER.read(DATUM)
    assert list(ROW) == list(READER.read(DATUM))


def test_logical_types_are_left_to_the_caller() -> None:
    """Numbers and bytes are returned raw, because the caller knows what a date is."""
    schema = record(
        ("day", {"type": "int", "logicalType": "date"}),
        ("price", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}),
    )
    plain = record(("day", "int"), ("price", "bytes"))
    row = {"day": 10**9, "price": b"\x04\xd2"}
    assert row == reader(schema).read(written(row, plain))


def test_truncated() -> None:
    """A truncated record is rejected."""
    for end in range(len(DATUM)):
        assert path_of(DATUM[:end]).startswith("$")


@pytest.mark.requirement("qlik.decode.1")
def test_bytes_after_the_record() -> None:
    """A record followed by more bytes is rejected."""
    assert "$" == path_of(DATUM + b"\0")


LONG = record(("n", "long"))
INT = record(("n", "int"))


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (LONG, b"\x80" * 10 + b"\x01"),
        (LONG, b"\xff" * 9 + b"\x02"),
        (INT, b"\x80\x80\x80\x80\x10"),
        (INT, b"\x80\x80\x80\x80\x80\x00"),
        (record(("n", ["null", "long"])), b"\x02" + b"\x80" * 10 + b"\x00"),
        (record(("n", ["null", "string"])), b"\x02\x01"),
        (record(("n", ["null", "string"])), b"\x03\x00"),
        (record(("n", ["null", "int", "string"])), b"\x06"),
        (record(("n", "boolean")), b"\x02"),
        (record(("n", "bytes")), b"\x01"),
        (record(("n", "string")), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (record(("n", ["null", "int"])), b"\x01\x02"),
        (record(("n", ["null", "int"])), b"\x04\x02"),
        (record(("n", {"type": "enum", "name": "E", "symbols": ["A"]})), b"\x01"),
        (record(("n", {"type": "enum", "name": "E", "symbols": ["A"]})), b"\x02"),
        (record(("n", {"type": "fixed", "name": "F", "size": 4_000_000})), b"\x00"),
    ],
)
def test_what_fastavro_lets_through(schema: Any, data: bytes) -> None:
    """Overlong integers, negative lengths, and invalid indexes of branches and symbols are rejected with the field."""
    assert "$.n" == path_of(data, schema) or data == b"\x00"


@pytest.mark.parametrize("number", [-(2**63), -65, -64, -1, 3, 63, 64, 2**63 - 1])
@pytest.mark.parametrize(
    ("what", "type_"),
    [
        ("union index", ["null", "int", "string"]),
        ("enum ordinal", {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}),
    ],
)
def test_an_index_that_is_none(number: int, what: str, type_: Any) -> None:
    """A small index is shown, because a later schema may have it. Any other may be a misplaced value."""
    with pytest.raises(MessageError) as caught:
        reader(record(("n", type_))).read(written({"n": number}, LONG))
    named = str(number) if -64 <= number <= 63 else "outside -64 to 63"
    assert f"the record does not match its schema: {what} {named}; allowed: 0 to 2" == caught.value.reason


def test_long_within_its_bounds() -> None:
    """Both ends of 64 bits are valid."""
    for number in (-(2**63), 2**63 - 1):
        assert {"n": number} == reader(LONG).read(written({"n": number}, LONG))


def test_int_within_its_bounds() -> None:
    """Both ends of 32 bits are valid, also in a union."""
    for schema in (INT, record(("n", ["null", "int"])), record(("n", ["int", "null"]))):
        for number in (-(2**31), 2**31 - 1, 0, -64, 63, 64):
            assert {"n": number} == reader(schema).read(written({"n": number}, schema))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 10_000])
def test_texts_of_any_size(size: int) -> None:
    """Up to 63 bytes, the length is one byte."""
    for schema in (record(("n", "string")), record(("n", ["null", "string"]))):
        assert {"n": "x" * size} == reader(schema).read(written({"n": "x" * size}, schema))


def test_index_of_more_bytes_than_it_needs() -> None:
    """Any reader accepts them, so they are not damage."""
    schema = record(("n", ["null", "int"]))
    assert {"n": 1} == reader(schema).read(b"\x82\x00\x02")
    assert {"n": None} == reader(schema).read(b"\x80\x00")


def test_text_that_is_not_utf8() -> None:
    """Such a string is rejected."""
    assert "$" == path_of(b"\x02\xff", record(("n", "string")))


def test_schema_of_no_record() -> None:
    """Only records are read here."""
    with pytest.raises(MessageError):
        reader("int")


def test_no_bytes_for_many_values() -> None:
    """Nulls take no bytes, but there are exactly as many as the schema has fields."""
    schema = record(*((f"c{n}", "null") for n in range(100)))
    assert dict.fromkeys((f"c{n}" for n in range(100)), None) == reader(schema).read(b"")


@given(st.lists(st.tuples(st.integers(0, len(DATUM) - 1), st.integers(0, 255)), min_size=1, max_size=5))
def test_damaged(flips: list[tuple[int, int]]) -> None:
    """Changed bytes are another record or none. A record read from them is not longer when written again."""
    damaged = bytearray(DATUM)
    for place, byte in flips:
        damaged[place] = byte
    with suppress(MessageError):
        assert len(written(READER.read(bytes(damaged)))) <= len(damaged)
