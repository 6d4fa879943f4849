"""Types and values of Qlik's Avro, with the writer schema alone and with metadata."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translator.dialects.qlik import avro
from tests.translator.dialects.qlik.avro import body, data_schema, framed, registered, row, written
from tests.translator.dialects.qlik.messages import (
    bare,
    change,
    dialect,
)
from translator.message import RowChange


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a logical type."""
    return {"type": kind, "logicalType": name, **more}


DECIMAL = logical("bytes", "decimal", precision=9, scale=2)


@pytest.mark.requirement("qlik.values.1")
@pytest.mark.parametrize(
    ("kind", "sent", "type_", "expected"),
    [
        ("boolean", b"\x01", "boolean", True),
        ("int", b"\x01", "int32", -1),
        ("long", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "int64", -(2**63)),
        ("float", bytes.fromhex("cdcc8c3f"), "float32", 1.1),
        ("float", bytes.fromhex("0000c07f"), "float32", "NaN"),
        ("double", bytes.fromhex("9a9999999999b93f"), "float64", 0.1),
        ("double", bytes.fromhex("000000000000f0ff"), "float64", "-Infinity"),
        ("bytes", b"\x04\x00\xff", "bytes", "AP8="),
        ("string", b"\x00", "string", ""),
        ({"type": "fixed", "name": "F", "size": 2}, b"\x00\xff", "bytes", "AP8="),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x02", "string", "B"),
        (DECIMAL, b"\x04\xfb\x2e", "decimal(9,2)", "-12.34"),
        ({"type": "fixed", "name": "F", "size": 2, **{k: v for k, v in DECIMAL.items() if k != "type"}},
         b"\x04\xd2", "decimal(9,2)", "12.34"),
        (logical("int", "date"), b"\x01", "date", "1969-12-31"),
        (logical("int", "time-millis"), b"\x02", "time", "00:00:00.001"),
        (logical("long", "time-micros"), b"\x02", "time", "00:00:00.000001"),
        (logical("long", "timestamp-millis"), b"\x02", "timestamp", "1970-01-01T00:00:00.001"),
        (logical("long", "timestamp-micros"), b"\x02", "timestamp", "1970-01-01T00:00:00.000001"),
        (logical("long", "timestamp-nanos"), b"\x02", "timestamp", "1970-01-01T00:00:00.000000001"),
        (logical("long", "local-timestamp-millis"), b"\x02", "timestamp", "1970-01-01T00:00:00.001"),
        (logical("long", "local-timestamp-micros"), b"\x02", "timestamp", "1970-01-01T00:00:00.000001"),
        (logical("long", "local-timestamp-nanos"), b"\x02", "timestamp", "1970-01-01T00:00:00.000000001"),
        (logical("string", "uuid"), b"\x02a", "uuid", "a"),
    ],
)  # fmt: skip
def test_types_of_avro(kind: Any, sent: bytes, type_: str, expected: Any) -> None:
    """Each type of a writer schema maps to a canonical type."""
    read = _one_cell(kind, sent)
    assert ({"c": expected}, None) == (read.after, read.issues)
    assert read.schema is not None
    assert [type_] == [column.type for column in read.schema.columns]


def _one_cell(kind: Any, sent: bytes, index: int = 1) -> RowChange:
    """Return a row of one column with the bytes `sent`."""
    schema = data_schema({"c": kind}, "com.attunity.queue.msg.tsk.S.T")
    union = schema["fields"][0]["type"]["fields"][0]["type"]
    if isinstance(kind, list):
        union[1:] = kind
    rest = written(avro.record("Rest", [("h", schema["fields"][2]["type"])]), {"h": body("INSERT")["headers"]})
    return row(registered({5: schema}), framed(5, bytes([2 * index]) + sent + b"\0" + rest))


@pytest.mark.requirement("qlik.values.1")
@pytest.mark.parametrize(
    ("kind", "sent", "code"),
    [
        (logical("int", "date"), b"\xfe\xff\xff\xff\x0f", "OUT_OF_RANGE"),
        (logical("int", "time-millis"), b"\x01", "INVALID_TIME"),
        (logical("bytes", "decimal", precision=2), b"\x04\x04\xd2", "PRECISION_EXCEEDED"),
        (DECIMAL, b"\x00", "NOT_A_NUMBER"),
        (["int", "string"], b"\x02", "NOT_A_SCALAR"),
        (avro.record("R", [("a", "int")]), b"\x02", "NOT_A_SCALAR"),
    ],
)
def test_avro_values_without_a_form(kind: Any, sent: bytes, code: str) -> None:
    """The column is omitted and reported, and the row continues."""
    read = _one_cell(kind, sent)
    assert ({}, [code]) == (read.after, [issue.code for issue in read.issues or ()])


@pytest.mark.requirement("qlik.values.1")
@pytest.mark.parametrize(
    ("told", "kind", "cell", "type_", "expected"),
    [
        ({"type": "DATE"}, "string", "1993-11-25", "date", "1993-11-25"),
        ({"type": "DATE"}, logical("int", "date"), 8729, "date", "1993-11-25"),
        ({"type": "TIME"}, "string", "01:02:03", "time", "01:02:03"),
        ({"type": "TIME"}, logical("int", "time-millis"), 1, "time", "00:00:00.001"),
        ({"type": "DATETIME"}, "string", "2023-03-21 14:34:21.000000", "timestamp", "2023-03-21T14:34:21.000000"),
        ({"type": "DATETIME"}, logical("long", "timestamp-micros"), 1, "timestamp", "1970-01-01T00:00:00.000001"),
        ({"type": "NUMERIC", "precision": 9, "scale": 2}, "string", "12.5", "decimal(9,2)", "12.50"),
        ({"type": "NUMERIC", "precision": 9, "scale": 2}, DECIMAL, b"\x04\xd2", "decimal(9,2)", "12.34"),
        ({"type": "NUMERIC", "precision": 9, "scale": 3}, DECIMAL, b"\x04\xd2", "decimal(9,3)", "12.340"),
        ({"type": "NUMERIC"}, DECIMAL, b"\x04\xd2", "decimal", "12.34"),
        ({"type": "INT1"}, "int", -128, "int8", -128),
        ({"type": "INT2"}, "int", 32767, "int16", 32767),
        ({"type": "INT4"}, "int", 1, "int32", 1),
        ({"type": "INT8"}, "long", 2**62, "int64", 2**62),
        ({"type": "UINT1"}, "int", 255, "uint8", 255),
        ({"type": "UINT2"}, "long", 65535, "uint16", 65535),
        ({"type": "UINT4"}, "long", 2**32 - 1, "uint32", 2**32 - 1),
        ({"type": "UINT8"}, "string", "18446744073709551615", "uint64", "18446744073709551615"),
        ({"type": "UINT8"}, logical("bytes", "decimal", precision=20), b"\x00" + b"\xff" * 8, "uint64",
         "18446744073709551615"),
        ({"type": "REAL4"}, "float", 0.5, "float32", 0.5),
        ({"type": "REAL8"}, "double", 0.1, "float64", 0.1),
        ({"type": "BYTES"}, "bytes", b"\x00\xff", "bytes", "AP8="),
        ({"type": "BLOB"}, "string", "00FF", "bytes", "AP8="),
        ({"type": "CLOB"}, "string", "x", "string", "x"),
        ({"type": "WSTRING"}, "string", "ü", "string", "ü"),
        ({"type": "BOOLEAN"}, "boolean", True, "boolean", True),
    ],
)  # fmt: skip
def test_types_of_metadata_in_avro(told: dict[str, Any], kind: Any, cell: Any, type_: str, expected: Any) -> None:
    """With metadata, the type is Replicate's, and the writer schema gives its encoding, logical types or not."""
    plain = kind["type"] if isinstance(kind, dict) else kind
    reader = avro.taught({"c": told}, data_schema({"c": kind}))
    read = row(reader, avro.enveloped(written(data_schema({"c": plain}), body("INSERT", {"c": cell}))))
    assert ({"c": expected}, None) == (read.after, read.issues)
    assert read.schema is not None
    assert [type_] == [column.type for column in read.schema.columns]


@pytest.mark.parametrize(
    ("told", "kind", "cell"),
    [
        ({"type": "INT1"}, "int", 128),
        ({"type": "STRING"}, "bytes", b"text"),
        ({"type": "DATE"}, "int", 8729),
        ({"type": "BYTES"}, "string", "0"),
        ({"type": "NUMERIC", "precision": 3, "scale": 2}, "string", "12.34"),
    ],
)
def test_metadata_that_avro_contradicts(told: dict[str, Any], kind: Any, cell: Any) -> None:
    """A value of another type is an issue and is never converted."""
    schema = data_schema({"c": kind})
    read = row(avro.taught({"c": told}, schema), avro.enveloped(written(schema, body("INSERT", {"c": cell}))))
    assert ({}, 1) == (read.after, len(read.issues or ()))


@pytest.mark.requirement("qlik.values.2")
@pytest.mark.parametrize("text", ["1", "1.50", "true", "1993-11-25", "00FF", "null", ""])
def test_no_type_by_the_look(text: str) -> None:
    """A string without a declared type is unchanged, in JSON and in Avro."""
    assert {"c": text} == change(dialect(), bare("INSERT", {"c": text})).after
    schema = data_schema({"c": "string"}, "com.attunity.queue.msg.tsk.S.T")
    assert {"c": text} == row(registered({5: schema}), framed(5, written(schema, body("INSERT", {"c": text})))).after
