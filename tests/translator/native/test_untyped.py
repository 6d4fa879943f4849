"""Canal messages without `mysqlType`, and cells that are numbers or booleans, as Flink writes them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.translator.native import needs_extension
from tests.translator.native.test_equality import agree, opened_path
from translator.dialects import build
from translator.message import DeclaredTable, Message, Setup

pytestmark = needs_extension

ROW = {"id": 1, "name": "x", "weight": 5.18, "open": True, "note": None}
TYPED = (DeclaredTable("*", key=("id",), columns={"id": "int64", "name": "string", "weight": "decimal(9,3)"}),)
TABLES = {"undeclared": (), "key": (DeclaredTable("*", key=("id",)),), "columns": TYPED}
TYPES: list[dict[str, Any]] = [{}, {"mysqlType": None}, {"mysqlType": {}}]


def became(body: dict[str, Any], tables: tuple[DeclaredTable, ...] = (), profile: str = "flink_cdc") -> str:
    translator, path = opened_path(build("canal", Setup("source", tables=tables), {"profile": profile}))
    value = msgspec.json.encode({"database": "d", "table": "t", **body})
    return agree(translator, path, Message("raw", 0, 5, 1, None, value))


@pytest.mark.parametrize("types", TYPES, ids=["missing", "null", "empty"])
@pytest.mark.parametrize("tables", [(), TABLES["key"]], ids=["undeclared", "key"])
def test_rows_without_types_are_taken(tables: tuple[DeclaredTable, ...], types: dict[str, Any]) -> None:
    assert became({"type": "INSERT", "data": [ROW, ROW], **types}, tables) == "taken"
    assert became({"type": "DELETE", "data": [ROW], **types}, tables) == "taken"
    assert became({"type": "UPDATE", "data": [ROW], "old": [{"name": "y", "weight": 5.2}], **types}, tables) == "taken"


def test_declared_columns_have_their_types() -> None:
    row = {"id": "1", "name": "x", "weight": "5.18"}
    assert became({"type": "INSERT", "data": [row]}, TYPED) == "taken"
    assert became({"type": "INSERT", "data": [{"id": "1", "weight": "5.18"}]}, TYPED) == "taken"


@pytest.mark.parametrize(
    ("data", "tables", "reason"),
    [
        ([{**ROW, "more": 1}], TYPED, "layout"),
        ([{"name": "x"}], TYPED, "layout"),
        ([ROW, {"id": 2}], (), "columns"),
        ([{**ROW, "name": ["x"]}], (), "shape"),
    ],
    ids=["undeclared column", "no key", "rows differ", "nested"],
)
def test_rows_that_need_notes_or_differ_are_left(
    data: list[Any], tables: tuple[DeclaredTable, ...], reason: str
) -> None:
    assert became({"type": "INSERT", "data": data}, tables) == reason


@pytest.mark.parametrize(
    ("old", "new", "taken"),
    [
        ("1", "2", True),
        ("1", "-1", True),
        ("1.5", "2", True),
        ("1.5", "1.55", True),
        ("0", "1.5", True),
        ('"1"', "1", True),
        ("null", "1", True),
        ("false", "null", True),
        ("1.5", "1.50", False),
        ("2", "2.0", False),
        ("0", "-0", False),
        ("0.0", "0", False),
        ("10", "1e1", False),
        ("true", "1", False),
        ("true", "false", False),
    ],
)
def test_numbers_with_several_spellings(old: str, new: str, taken: bool) -> None:
    """If two spellings can have the same value, the plain path decides whether the column changed."""
    value = f'{{"database":"d","table":"t","type":"UPDATE","data":[{{"a":{new}}}],"old":[{{"a":{old}}}]}}'
    translator, path = opened_path(build("canal", Setup("source"), {"profile": "flink_cdc"}))
    assert agree(translator, path, Message("raw", 0, 5, 1, None, value.encode())) == ("taken" if taken else "cell")


@pytest.mark.parametrize("profile", ["oss", "dts", "ticdc"])
def test_other_writers_send_only_texts(profile: str) -> None:
    assert became({"type": "INSERT", "data": [ROW], "id": 3, "es": 1_700_000_000_000}, profile=profile) == "shape"
    texts = [{"id": "1", "name": None}]
    assert became({"type": "INSERT", "data": texts, "id": 3, "es": 1_700_000_000_000}, profile=profile) == "taken"
