"""The key of a row comes from `tables:`, or from `key` in an update if that is unambiguous."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.envelope import Issue
from tests.translator.dialects.shareplex.messages import KEYED, body, dialect, refusal, row
from translator.message import DeclaredTable

QUEST = dialect()


@pytest.mark.requirement("shareplex.accept.9")
def test_an_update_without_key_needs_its_configured_key_in_data() -> None:
    """A patch without an identity is a dead letter. With the key columns in `data`, their old values are unknown."""
    change = row(dialect(KEYED), body("upd", data={"ID": 7, "A": 1}))
    assert (change.before, change.after, change.key_columns) == (None, {"ID": "7", "A": "1"}, ("ID",))
    assert change.notes == ["KEY_OLD_UNKNOWN"]
    for reader, members in (
        (dialect(KEYED), {"data": {"A": 1}}),
        (dialect(KEYED), {"data": {"A": 1}, "key": None}),
        (dialect(KEYED), {"data": {"A": 1}, "key": {}}),
        (QUEST, {"data": {"ID": 7, "A": 1}}),
    ):
        assert refusal(reader, body("upd", **members))[::2] == ("KEY_MISSING", "$.key")


def test_configured_keys_hold_for_every_operation() -> None:
    """`tables:` defines the key of inserts, updates and deletes, in its own order. A changed key is in both images."""
    reader = dialect(KEYED, preset="dts")
    messages = (
        body("ins", data={"A": 1, "ID": 7}),
        body("upd", data={"ID": 8}, key={"ID": 7, "A": None}),
        body("del", data={"ID": 8}),
    )
    for message in messages:
        change = row(reader, message)
        assert (change.key_columns, change.key_kind, change.notes) == (("ID",), "configured", None)
    changed = row(reader, messages[1])
    assert (changed.before, changed.after) == ({"ID": "7", "A": None}, {"ID": "8"})


def test_key_names_the_key_of_a_native_update() -> None:
    """With preset quest, the columns of `key` are a unique key, and the event states its origin."""
    change = row(QUEST, body("upd", data={"A": 1}, key={"ID": 7, "N": "x"}))
    assert (change.key_columns, change.key_kind, change.notes) == (("ID", "N"), "unique", ["KEY_FROM_MESSAGE"])


@pytest.mark.requirement("shareplex.accept.10")
@pytest.mark.parametrize(
    ("preset", "key", "why"),
    [
        ("quest", {"ID": 7, "A": 1}, "it holds the old value of a changed column: wide, or a changed key"),
        ("quest", {"ID": 7, "N": None}, "it holds a null: wide"),
        ("dts", {"ID": 7}, "this writer sends wide images"),
        ("lenient", {"ID": 7}, "nobody knows what this writer sends"),
    ],
)
def test_key_that_may_be_wide_names_nothing(preset: str, key: dict[str, Any], why: str) -> None:
    """If `key` may be an old image, only `tables:` can define the key. Images are right under both readings."""
    change = row(dialect(preset=preset), body("upd", data={"A": 2}, key=key))
    assert (change.key_columns, change.key_kind, change.notes) == ((), "none", ["KEY_UNDECLARED"]), why
    assert change.before == {name: value and str(value) for name, value in key.items()}


def test_a_key_column_with_an_issue_still_belongs_to_the_key() -> None:
    """A key is never reduced to the columns that could be read."""
    raw = b'{"meta":{"op":"upd","table":"T"},"data":{"A":1},"key":{"ID":1,"N":1e5000}}'
    change = row(QUEST, raw)
    assert change.key_columns == ("ID", "N")
    assert change.issues == [Issue("N", "EXPONENT_OUT_OF_RANGE", "1e5000")]


def test_an_issue_of_both_images_is_told_once() -> None:
    """An update with wide images repeats unchanged columns."""
    table = DeclaredTable("A.T", key=("ID",), columns={"ID": "int32", "N": "int32", "S": "string"})
    change = row(dialect(table), body("upd", data={"ID": 1, "N": "x", "S": "b"}, key={"ID": 1, "N": "x", "S": "a"}))
    assert change.issues == [Issue("N", "NOT_AN_INTEGER", "x")]


@pytest.mark.requirement("shareplex.reject.1")
def test_half_a_character_is_an_issue_in_key_too() -> None:
    """`key` has cells, as `data` does."""
    change = row(dialect(KEYED), body("upd", data={"ID": 1, "S": "b"}, key={"ID": 1, "S": "\ud800"}))
    assert change.issues == [Issue("S", "LONE_SURROGATE", "\\ud800")]
