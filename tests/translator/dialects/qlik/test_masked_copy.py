"""Masked copies of Qlik's Avro and of declared sections have other cells and are otherwise unchanged."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.dialects.qlik.avro import (
    body,
    data_schema,
    enveloped,
    framed,
    key_schema,
    record,
    record_of,
    registered,
    row,
    taught,
    written,
)
from tests.translator.dialects.qlik.messages import dialect
from translator.dialects import MaskedValues
from translator.errors import Unmaskable

MASKED = MaskedValues(b"a key of the tests")

NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
CELLS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": ("int", st.integers(-(2**31), 2**31 - 1)),
    "long": ("long", st.integers(-(2**63), 2**63 - 1)),
    "float": ("float", st.floats(width=32)),
    "double": ("double", st.floats()),
    "bytes": ("bytes", st.binary() | st.text().map(str.encode)),
    "text": ("string", st.text()),
    "fixed": ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3) | st.just(b"100")),
    "enum": ({"type": "enum", "name": "E", "symbols": ["Jane", "Joe"]}, st.sampled_from(["Jane", "Joe"])),
    "yes": ("boolean", st.booleans()),
    "day": ({"type": "int", "logicalType": "date"}, st.integers(0, 40_000)),
    "micros": ({"type": "long", "logicalType": "time-micros"}, st.integers(0, 86_399_999_999)),
    "nanos": (NANOS, st.integers(0, 2 * 10**18)),
}
SCHEMA = data_schema({name: kind for name, (kind, _) in CELLS.items()})
ROWS = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in CELLS.items()})


@given(data=ROWS, before=ROWS | st.none())
def test_cells_of_all_types(data: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Each cell is replaced in place by another of its type. Headers, frame, nulls, booleans and symbols stay."""
    reader = registered({7: SCHEMA}, topics="S.T")
    message = record_of(framed(7, written(SCHEMA, body("UPDATE", data, before, transactionId="4711"))))
    copy = reader.masked_copy(message, MASKED)
    one, other = (row(reader, found.value or b"") for found in (message, copy))
    assert (one.op, one.pos_native, one.tx, one.ts_commit_us) == (
        other.op,
        other.pos_native,
        other.tx,
        other.ts_commit_us,
    )
    for of, masked in ((one.after, other.after), (one.before, other.before)):
        for name, cell in (of or {}).items():
            assert type(cell) is type((masked or {})[name])
            if name in ("enum", "yes") or cell is None:
                assert cell == (masked or {})[name]


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("int", 14472), ("long", -(2**63)), ("double", 1234.5), ("float", 1234.5), ("bytes", b"Jane Doe"),
        ("bytes", b"\xff\xfe\xfd"), ("string", "Jane Doe"), ({"type": "fixed", "name": "F", "size": 3}, b"100"),
        ({"type": "int", "logicalType": "date"}, 19_000), (NANOS, 1_700_000_000_000_000_000),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, b"\xfb\x2e"),
        ({"type": "string", "logicalType": "uuid"}, "123e4567-e89b-12d3-a456-426614174abc"),
        (["int", "string"], "Jane Doe"), (record("Inner", [("name", "string")]), {"name": "Jane Doe"}),
    ],
)  # fmt: skip
def test_no_cell_stays(kind: Any, cell: Any) -> None:
    """This covers either image and frame, and a schema outside or inside the message."""
    inner = data_schema({"c": kind}) if not isinstance(kind, list) else data_schema({"c": "null"})
    if isinstance(kind, list):
        inner["fields"][0]["type"]["fields"][0]["type"] = ["null", *kind]
    datum = written(inner, body("UPDATE", {"c": cell}, {"c": cell}))
    secret = written({"type": "record", "name": "R", "fields": [{"name": "c", "type": kind}]}, {"c": cell})[-3:]
    for reader, value in (
        (registered({7: inner}, topics="S.T"), framed(7, datum)),
        (dialect({}), enveloped(datum, None, inner)),
    ):
        copy = reader.masked_copy(record_of(value), MASKED).value or b""
        assert secret in value
        assert secret not in copy
        assert row(reader, value).op == row(reader, copy).op


def test_by_learned_metadata() -> None:
    """A row in an envelope without its schema is recognized by earlier metadata."""
    columns = {"ID": {"ordinal": 1, "type": "STRING", "length": 20, "nullable": True, "primaryKeyPosition": 0}}
    schema = data_schema({"ID": "string"}, headers=7)
    reader = taught(columns, schema)
    value = enveloped(written(schema, body(data={"ID": "Jane Doe"})))
    copy = reader.masked_copy(record_of(value), MASKED)
    assert b"Jane Doe" not in (copy.value or b"")
    assert row(reader, value).key_columns == row(reader, copy.value or b"").key_columns
    with pytest.raises(Unmaskable, match="its metadata or schema is unknown"):
        dialect({}).masked_copy(record_of(value), MASKED)


@pytest.mark.parametrize("known", [True, False])
def test_keys_in_the_frame(known: bool) -> None:
    """The key is read with its schema if known. Otherwise the bytes after the frame are replaced."""
    schemas = {7: data_schema({"ID": "string"}), **({8: key_schema({"ID": "string"})} if known else {})}
    reader = registered(schemas, topics="S.T")
    value, key = (
        written(schemas[7], body(data={"ID": "Jane Doe"})),
        written(key_schema({"ID": "string"}), {"ID": "Jane Doe"}),
    )
    copy = reader.masked_copy(record_of(framed(7, value), framed(8, key)), MASKED)
    assert framed(8, b"") == (copy.key or b"")[:5]
    assert (len(framed(8, key)), False) == (len(copy.key or b""), b"Jane" in (copy.key or b""))
    if known:
        assert copy.key == framed(8, written(schemas[8], row(reader, copy.value or b"").after))


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"headers": "h/", "data": "d/", "before_data": "b/"}, {"h": 1, "d": {"name": 2}, "b": {"name": 2}}),
        ({"headers": "h", "data": "d", "before_data": "b"}, {"h_operation": 1, "d_name": 2, "b_name": 2}),
        ({"headers": "", "data": "d", "before_data": "b"}, {"operation": 1, "d_name": 2, "b_name": 2}),
        ({"headers": "h/", "data": "", "before_data": "b"}, {"h": 1, "name": 2, "b_name": 2}),
    ],
)
def test_sections_that_the_operator_names(given: dict[str, str], sent: dict[str, Any]) -> None:
    """Headers are kept and rows are masked, whatever the sections are called."""
    head = {"operation": "UPDATE", "changeSequence": "20230321213416580000000000000000042"}
    spelled = json.loads(json.dumps(sent), parse_int=lambda text: head if text == "1" else "Jane Doe")
    if "h_operation" in spelled:
        spelled |= {f"h_{name}": text for name, text in head.items()}
    if "operation" in spelled:
        spelled |= head
    value = json.dumps({"message": spelled}).encode()
    reader = dialect({}, topics="S.T", message_format=given)
    copy = msgspec.json.decode(reader.masked_copy(record_of(value), MASKED).value or b"")["message"]
    assert spelled.keys() == copy.keys()
    for name, member in spelled.items():
        assert (member == copy[name]) == (name.startswith("h") or name in head), name
