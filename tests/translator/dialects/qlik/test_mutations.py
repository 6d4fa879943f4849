"""For any value, the Qlik dialect gives an outcome or a MessageError, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.dialects.qlik.messages import (
    CASES,
    SCHEMA_ID,
    bare,
    dialect,
    enveloped,
    message,
    metadata,
    sample,
    taught,
)
from translator.dialects.qlik import Qlik
from translator.errors import MessageError
from translator.message import Changes, Learned, Message

COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"type": "INT4", "primaryKeyPosition": 1},
    "n": {"type": "NUMERIC", "precision": 1000, "scale": 1000},
    "at": {"type": "DATETIME"},
    "raw": {"type": "BYTES"},
    "f": {"type": "REAL4"},
}
ROW = {"id": 1, "n": "0.5", "at": "2023-01-01T00:00:00", "raw": "00", "f": 1.5}
TYPED = json.dumps(enveloped(bare("UPDATE", ROW, ROW, columnMask="1F", changeMask="01"), SCHEMA_ID)).encode()
RENAMED = json.loads(sample("renamed_sections", "options.json"))["message_format"]
READERS = (taught(COLUMNS), dialect(), dialect(untyped="translate"), dialect(message_format=RENAMED))
SAMPLES = {path.read_bytes() for path in CASES.glob("*/message.json")}
VALUES = sorted(SAMPLES | {TYPED, json.dumps(metadata(COLUMNS)).encode()})


def outcome(reader: Qlik, value: bytes) -> object:
    """Return the outcome, or the refusal as a value. Learned metadata is also compiled."""
    try:
        found = reader.decode(Message("t", 0, 0, 0, None, value))
    except MessageError as refused:
        return (refused.code, refused.reason, refused.path)
    if isinstance(found, Learned):
        reader.learn(found.key, found.document)
    return found


def test_the_values_are_valid() -> None:
    """The originals are translated or learned, except that the legacy layout is rejected."""
    refused = [v for v in VALUES if not any(isinstance(outcome(r, v), Changes | Learned) for r in READERS)]
    assert [sample("legacy_flat")] == refused


@pytest.mark.requirement("qlik.test_inputs.3")
@pytest.mark.parametrize("value", VALUES, ids=len)
def test_truncated(value: bytes) -> None:
    """A truncated message is rejected, or skipped if empty, but never half a row."""
    whole = value.rstrip()
    for end in range(1, len(whole)):
        for reader in READERS:
            assert isinstance(outcome(reader, whole[:end]), tuple)


@given(st.sampled_from(VALUES), st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), max_size=8))
def test_flipped(value: bytes, flips: list[tuple[int, int]]) -> None:
    """A message with changed bytes gives an outcome or a refusal, the same each time."""
    changed = bytearray(value)
    for place, byte in flips:
        changed[place % len(changed)] = byte
    for reader in READERS:
        assert outcome(reader, bytes(changed)) == outcome(reader, bytes(changed))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)
HEADERS = st.sampled_from(["changeSequence", "timestamp", "transactionId", "changeMask", "columnMask"])
NUMBERS = st.from_regex(rb"-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,25})?", fullmatch=True)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(COLUMNS, JSON)), st.dictionaries(HEADERS | st.text(), JSON))
def test_any_values(row: dict[str, Any], headers: dict[str, Any]) -> None:
    """With any cells and headers, the row has an outcome or a refusal."""
    for operation in ("INSERT", "UPDATE", "DELETE"):
        body = {"data": row, "headers": {**headers, "operation": operation}}
        value = json.dumps(enveloped(body, SCHEMA_ID)).encode()
        for reader in READERS:
            outcome(reader, value)


@given(NUMBERS)
def test_any_number(number: bytes) -> None:
    """A number of any size in any place gives an outcome or a refusal."""
    for member in (b'"id": 1', b'"f": 1.5', b'"n": "0.5"'):
        value = TYPED.replace(member, member.split(b" ")[0] + b" " + number)
        for reader in READERS:
            outcome(reader, value)


@given(st.sampled_from(VALUES), st.data())
def test_any_member_of_another_type(value: bytes, data: st.DataObject) -> None:
    """Any member of a valid message can have any value."""
    whole = json.loads(value)
    parent: Any = whole
    while True:
        name = data.draw(st.sampled_from(sorted(parent)))
        if not isinstance(parent[name], dict) or not parent[name] or data.draw(st.booleans()):
            break
        parent = parent[name]
    parent[name] = data.draw(JSON)
    for reader in READERS:
        outcome(reader, json.dumps(whole).encode())


@given(st.text(min_size=8, alphabet="ABCDEFGHIJ0123456789"))
def test_no_cell_in_a_refusal(secret: str) -> None:
    """A refusal never quotes a value of the row."""
    cell = f"#{secret}#"
    wrong = [
        bare("INSERT", {"a": cell}, {"a": cell}),
        bare("INSERT", {"a": cell}, columnMask="FG"),
        bare("READ", {"a": cell}),
        bare("INSERT", {"a": cell}, timestamp=cell),
        bare("UPDATE", {"a": cell}, {"b": cell}, columnMask="01"),
        bare("INSERT", cell),
        {"data": cell},
    ]
    for body in wrong:
        with pytest.raises(MessageError) as refused:
            dialect().decode(message(body))
        assert secret not in str(refused.value)
