"""The edges of the native path: the first invalid value of each type, empty images in every era, exact marks, and the
limits of a message. Random messages rarely come to these.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.translator.native import needs_extension
from tests.translator.native.test_equality import CANONICAL, OPTIONS, ROOMY, agree, opened_path
from translator.dialects import build
from translator.message import Limits, Message, Setup
from translator.translation.native_path import NativePath, native_path
from translator.translation.translate import Translator

pytestmark = needs_extension

ROW, OTHER = {"id": "1", "a": "2"}, {"id": "1", "a": "3"}
BODY: dict[str, Any] = {
    "data": [ROW],
    "database": "d",
    "es": 1_700_000_000_000,
    "id": 7,
    "isDdl": False,
    "mysqlType": {"id": "int", "a": "int"},
    "old": None,
    "pkNames": ["id"],
    "sql": "",
    "table": "t",
    "ts": 1_700_000_000_123,
    "type": "INSERT",
}

# The last valid values of each type, and the first invalid ones. The native path takes the first.
CELLS: list[tuple[str, list[str], list[str]]] = [
    ("tinyint", ["-128", "127"], ["-129", "128"]),
    ("tinyint unsigned", ["0", "255"], ["-1", "256"]),
    ("smallint", ["-32768", "32767"], ["-32769", "32768"]),
    ("smallint unsigned", ["0", "65535"], ["-1", "65536"]),
    ("mediumint", ["-8388608", "8388607"], ["-8388609", "8388608"]),
    ("mediumint unsigned", ["0", "16777215"], ["-1", "16777216"]),
    ("int", ["-2147483648", "2147483647"], ["-2147483649", "2147483648"]),
    ("int unsigned", ["0", "4294967295"], ["-1", "4294967296"]),
    ("bigint", ["-9223372036854775808", "9223372036854775807"], ["-9223372036854775809", "9223372036854775808"]),
    ("bigint unsigned", ["0", "18446744073709551615"], ["-1", "18446744073709551616"]),
    ("date", ["1000-01-01", "2024-02-29", "9999-12-31"], ["0000-05-01", "0999-12-31", "2023-02-29", "2023-13-01"]),
    (
        "datetime(6)",
        ["1000-01-01 00:00:00", "2023-05-01 23:59:59.123456", "2023-05-01 12:00:00.1234567"],
        ["0000-05-01 00:00:00", "0000-00-00 00:00:00", "2023-05-01 24:00:00", "2023-05-01 12:00:00.1234567890"],
    ),
    (
        "timestamp(6)",
        ["2023-05-01 12:00:00", "2023-05-01 12:00:00.123456789"],
        ["0000-05-01 00:00:00", "2023-05-01 12:60:00", "2023-05-01 12:00:00.1234567890"],
    ),
    ("time(6)", ["00:00:00", "23:59:59.123456"], ["24:60:00", "12:00:60", "12:00:00.1234567890"]),
    ("decimal(5,2)", ["999.99", "-999.99"], ["9999.99", "1.999", "1e1", "NaN"]),
    ("bit(1)", ["0", "1"], ["2", "-1"]),
    ("year", ["1901", "2155"], ["19", "0000"]),
    ("double", ["1.5", "-1e300"], ["1e400", "nan"]),
]
_EVERY_CELL = [(type_, value, True) for type_, valid, _ in CELLS for value in valid] + [
    (type_, value, False) for type_, _, invalid in CELLS for value in invalid
]

EMPTY: list[Any] = [None, [], [{}], [{}, {}]]
IMAGES = [
    *((ROW_, empty) for ROW_ in ([ROW], [ROW, OTHER]) for empty in EMPTY),
    *((empty, ROW_) for ROW_ in ([ROW], [ROW, OTHER]) for empty in EMPTY),
    *((first, second) for first in EMPTY for second in EMPTY),
    ([ROW], [OTHER]),
    ([ROW], [{"a": "3"}]),
    ([{"a": "3"}], [ROW]),
    ([ROW, ROW], [OTHER]),
]


def _message(**changes: Any) -> Message:
    return Message("raw", 0, 5, 1, None, msgspec.json.encode(BODY | changes))


def _opened(name: str, **limits: int) -> tuple[Translator, NativePath]:
    setup = Setup("source", limits=Limits(**limits))
    translator = Translator("source", build("canal", setup, OPTIONS[name]), setup.limits)
    path = native_path(translator, [(codec, ROOMY) for codec in CANONICAL])
    assert isinstance(path, NativePath)
    return translator, path


@pytest.mark.parametrize(("type_", "value", "valid"), _EVERY_CELL)
def test_cells(type_: str, value: str, valid: bool) -> None:
    """An invalid value is left to the plain path, unless both paths note the same issue."""
    translator, path = opened_path(build("canal", Setup("source"), OPTIONS["oss"]))
    message = _message(data=[{"id": "1", "a": value}], mysqlType={"id": "int", "a": type_})
    assert agree(translator, path, message) in (("taken",) if valid else ("taken", "cell"))


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("kind", ["INSERT", "UPDATE", "DELETE"])
def test_images(name: str, kind: str) -> None:
    """Images that are empty, missing, incomplete or unequal in number, in every profile and on both sides of an era."""
    translator, path = _opened(name)
    found = {
        agree(translator, path, _message(type=kind, data=data, old=old, ts=ts))
        for data, old in IMAGES
        for ts in (1_600_000_000_123, 1_800_000_000_123)
    }
    assert {"taken", "shape"} <= found


@pytest.mark.parametrize("name", OPTIONS)
def test_marks(name: str) -> None:
    """Values by which a writer shows itself: an id of 0, and times in seconds or missing."""
    translator, path = _opened(name)
    times = (None, 0, 1, 1_700_000_000, 1_700_000_000_000, 1_700_000_000_001)
    for id_ in (None, 0, 1, -1):
        for es in times:
            for ts in times:
                agree(translator, path, _message(id=id_, es=es, ts=ts))


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("kind", ["INSERT", "UPDATE"])
def test_limit_of_rows(kind: str, count: int) -> None:
    translator, path = _opened("oss", rows=3)
    message = _message(type=kind, data=[ROW] * count, old=[{"a": "3"}] * count if kind == "UPDATE" else None)
    assert ("taken" if count == 3 else "size") == agree(translator, path, message)


@pytest.mark.parametrize("spare", [0, -1])
def test_limit_of_bytes(spare: int) -> None:
    message = _message()
    translator, path = _opened("oss", value_bytes=len(message.value or b"") + spare)
    assert ("taken" if spare == 0 else "size") == agree(translator, path, message)
