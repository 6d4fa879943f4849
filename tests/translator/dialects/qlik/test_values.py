"""Values of Qlik columns by their type in the metadata (§6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdc_core.envelope import Issue
from tests.translator.dialects.qlik.messages import SCHEMA_ID, bare, change, dialect, enveloped, taught
from translator.dialects.qlik.document import TYPES
from translator.message import DeclaredTable, RowChange


def typed(type_: str, value: Any, **told: Any) -> RowChange:
    """Return a row with one value of a type."""
    return change(taught({"c": {"type": type_, **told}}), enveloped(bare("INSERT", {"c": value}), SCHEMA_ID))


@pytest.mark.requirement("qlik.values.1")
@pytest.mark.parametrize(
    ("type_", "sent", "expected"),
    [
        ("BOOLEAN", True, True),
        ("INT1", -128, -128),
        ("INT2", 32767, 32767),
        ("INT4", -(2**31), -(2**31)),
        ("INT8", 2**63 - 1, 2**63 - 1),
        ("UINT1", 255, 255),
        ("UINT2", 65535, 65535),
        ("UINT4", 2**32 - 1, 2**32 - 1),
        ("UINT8", "18446744073709551615", "18446744073709551615"),
        ("NUMERIC", "14", "14"),
        ("REAL4", 1.1, 1.1),
        ("REAL8", 0.1, 0.1),
        ("STRING", "", ""),
        ("WSTRING", "ü", "ü"),
        ("CLOB", "c", "c"),
        ("NCLOB", "n", "n"),
        ("BYTES", "00fF", "AP8="),
        ("BLOB", "", ""),
        ("DATE", "1993-11-25", "1993-11-25"),
        ("TIME", "14:34:21", "14:34:21"),
        ("DATETIME", "2023-03-21 14:34:21.000000", "2023-03-21T14:34:21.000000"),
    ],
)
def test_types(type_: str, sent: Any, expected: Any) -> None:
    """Every type has its canonical form, with the values of the format page."""
    read = typed(type_, sent)
    assert ({"c": expected}, None) == (read.after, read.issues)
    assert {"c": None} == typed(type_, None, nullable=True).after


def test_every_type_is_tested() -> None:
    """The examples above cover all types."""
    (mark,) = (mark for mark in test_types.pytestmark if mark.name == "parametrize")
    assert set(TYPES) == {type_ for type_, _, _ in mark.args[1]}


def test_numeric_with_scale() -> None:
    """A NUMERIC has exactly its scale. More digits are an issue and never rounded."""
    assert {"c": "2.50"} == typed("NUMERIC", "2.5", precision=10, scale=2).after
    assert {"c": "2.50"} == typed("NUMERIC", 2.5, precision=10, scale=2).after
    assert [Issue("c", "SCALE_EXCEEDED", "2.505")] == typed("NUMERIC", "2.505", precision=10, scale=2).issues


@pytest.mark.requirement("qlik.values.1")
@pytest.mark.parametrize(
    ("type_", "sent", "code"),
    [
        ("INT1", 128, "OUT_OF_RANGE"),
        ("BYTES", "ABC", "NOT_HEX"),
        ("BLOB", "xy", "NOT_HEX"),
        ("DATE", "0000-00-00", "ZERO_DATE"),
        ("DATE", "１９９３-11-25", "INVALID_DATE"),
        ("DATETIME", "2023-03-21T14:34:21Z", "ZONE_UNEXPECTED"),
        ("NUMERIC", "many", "NOT_A_NUMBER"),
    ],
)
def test_values_without_a_form(type_: str, sent: Any, code: str) -> None:
    """An invalid value for its type is omitted and reported, and the row continues."""
    read = typed(type_, sent)
    assert ({}, [Issue("c", code, str(sent))]) == (read.after, read.issues)


def test_length_is_of_text_and_bytes() -> None:
    """The length is part of the schema only if it limits the value. INT4 10 is a display width."""
    for type_, length in (("STRING", 20), ("BYTES", 20), ("INT4", None), ("REAL8", None)):
        schema = typed(type_, None, length=20).schema
        assert schema is not None
        assert length == schema.columns[0].length


@pytest.mark.parametrize("framed", [False, True])
def test_half_a_character_is_an_issue_of_its_column(framed: bool) -> None:
    """A lone surrogate has no UTF-8. In a cell of either image, it affects that column and not the message."""
    body = bare("UPDATE", {"c": "\ud800", "d": "new"}, {"c": "old", "d": "\ud800"})
    told = {"c": {"type": "STRING", "ordinal": 1}, "d": {"type": "STRING", "ordinal": 2}}
    reader = taught(told) if framed else dialect(tables=(DeclaredTable("*.T", key=("c",)),))
    read = change(reader, json.dumps(enveloped(body, SCHEMA_ID) if framed else body).encode())
    assert ({"d": "new"}, {"c": "old"}) == (read.after, read.before)
    assert [("d", "LONE_SURROGATE"), ("c", "LONE_SURROGATE")] == [
        (found.col, found.code) for found in read.issues or ()
    ]
