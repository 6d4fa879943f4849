"""Canal: damaged messages become dead letters and never crashes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.dialects.canal.messages import FULL, UPDATE, canal, message, of_type
from tests.translator.dialects.case import CASES
from translator.errors import MessageError

PROFILES: Mapping[str, dict[str, Any]] = {
    "oss": {},
    "partial": {"row_image": "partial", "timezone": "Europe/Berlin", "tinyint1_as_boolean": True},
    "dts": {"profile": "dts", "instance": {"created": "2021-01-01T00:00:00Z", "restarted": ["2023-11-14T22:13:20Z"]}},
    "dts_legacy": {"profile": "dts_legacy"},
}
DIALECTS = {name: canal(**options) for name, options in PROFILES.items()}

TYPES = {
    "b": "bit(9)", "y": "year", "d": "date", "dt": "datetime(6)", "ts": "timestamp", "t": "time(3)",
    "bin": "binary(4)", "blob": "blob", "g": "point", "j": "json", "e": "enum('a','b''c')", "s": "set('x','y')",
    "dec": "decimal(10,2)", "f": "float", "db": "double", "u": "bigint unsigned", "m": "mediumint", "bo": "boolean",
}  # fmt: skip
CELLS = {
    "b": "511", "y": "2024", "d": "2024-01-02", "dt": "2024-01-02 03:04:05.000006", "ts": "2024-01-02 03:04:05",
    "t": "-12:13:14.5", "bin": "ab", "blob": "ÿ", "g": "\0\0\0\0\x01\x01\0\0\0", "j": '{"a": 1}', "e": "2", "s": "3",
    "dec": "1.5", "f": "1.0E10", "db": "0.1", "u": "18446744073709551615", "m": "-5", "bo": "1",
}  # fmt: skip
WIDE = of_type("UPDATE", [CELLS], [{**CELLS, "m": None}], mysqlType=TYPES, pkNames=["u", "e"])

SAMPLES = [
    *(path.read_bytes() for path in sorted((CASES / "canal").glob("*/message.*"))),
    *(
        json.dumps(body).encode()
        for body in (UPDATE, WIDE, of_type("DELETE", None, [FULL]), of_type("TRUNCATE", sql="TRUNCATE TABLE orders"))
    ),
    json.dumps(WIDE, ensure_ascii=False).encode(),
]


def survives(value: bytes) -> None:
    """Check that every profile gives an outcome or a refusal. Any other exception fails the test."""
    for dialect in DIALECTS.values():
        with contextlib.suppress(MessageError):
            dialect.decode(message(value))


@pytest.mark.requirement("canal.reject.1")
@pytest.mark.parametrize("sample", SAMPLES, ids=range(len(SAMPLES)))
def test_every_truncation(sample: bytes) -> None:
    """A message truncated at any byte is rejected or read."""
    for end in range(len(sample)):
        survives(sample[:end])


@given(
    st.sampled_from(SAMPLES), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4)
)
def test_random_bytes(sample: bytes, flips: list[tuple[int, int]]) -> None:
    """So is a message with some bytes changed."""
    damaged = bytearray(sample)
    for place, byte in flips:
        damaged[place % len(damaged)] = byte
    survives(bytes(damaged))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda child: st.lists(child, max_size=3) | st.dictionaries(st.sampled_from([*UPDATE, *TYPES]), child, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([UPDATE, WIDE]), st.dictionaries(st.sampled_from([*UPDATE, "_tidb"]), JSON, max_size=4))
def test_random_members(body: dict[str, Any], members: dict[str, Any]) -> None:
    """So is one with any JSON values as members."""
    survives(json.dumps({**body, **members}).encode())


@given(
    st.dictionaries(st.sampled_from(sorted(TYPES)), st.text(max_size=30), min_size=1),
    st.dictionaries(st.sampled_from(sorted(TYPES)), st.text("bitenum()',0123456789 \\", max_size=20)),
)
def test_random_cells_and_types(cells: dict[str, str], types: dict[str, str]) -> None:
    """Any text in a cell is a value or an issue, whatever text its type is."""
    body = {**WIDE, "type": "INSERT", "data": [{**CELLS, **cells}], "old": None, "mysqlType": {**TYPES, **types}}
    for dialect in DIALECTS.values():
        dialect.decode(message(json.dumps(body).encode()))


@given(st.sampled_from(SAMPLES))
def test_the_same_message_gives_the_same_outcome(sample: bytes) -> None:
    """No state between messages affects a result."""
    for name, options in PROFILES.items():
        outcomes = []
        for dialect in (canal(**options), DIALECTS[name], DIALECTS[name]):
            try:
                outcomes.append(repr(dialect.decode(message(sample))))
            except MessageError as error:
                outcomes.append(str(error))
        assert 1 == len(set(outcomes))
