"""A random table history in SharePlex's format restores the source table."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.demo.shop import Row, Shop, ShopTable
from tests.translator.dialects.canal.history import TABLE, History, histories
from tests.translator.dialects.shareplex.history import (
    FORMS,
    OWNER,
    QUEST,
    TABLES,
    Form,
    canonical,
    declared,
    events_of,
    messages,
    rows_of,
)
from tests.translator.dialects.shareplex.messages import dialect
from translator.message import DeclaredTable

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def by_key(rows: Sequence[Row], table: ShopTable) -> dict[str, Row]:
    """Return rows as a consumer keeps them."""
    return {json.dumps({name: row[name] for name in table.key}): row for row in rows}


@pytest.mark.requirement("shareplex.accept.1")
@given(histories(), FORMS, SIZES)
def test_a_declared_table_comes_back(history: History, form: Form, sizes: list[int]) -> None:
    """In any form and with any number of changes per value, rows, NULLs and keys are right at the end."""
    preset = "dts" if form.wide else "quest"
    events = events_of(dialect(declared(TABLE), preset=preset), messages(history.changes, form, sizes))
    assert len(events) == len(history.changes)
    assert by_key(list(history.rows.values()), TABLE) == rows_of(events)


@given(st.integers(0, 2**32), FORMS, SIZES)
def test_typed_tables_come_back(seed: int, form: Form, sizes: list[int]) -> None:
    """This covers tables of all types in the shop, one with a two-column key. Every value is exact."""
    shop = Shop(seed, TABLES)
    changes = list(shop.history(40))
    events = events_of(dialect(*map(declared, TABLES)), messages(changes, form, sizes))
    for table in TABLES:
        expected = by_key([canonical(row, table) for row in shop.rows[table.name].values()], table)
        assert expected == rows_of(event for event in events if event["table"] == table.name)


@pytest.mark.requirement("shareplex.accept.5")
@given(histories(), FORMS)
def test_a_table_of_which_only_the_key_is_declared_comes_back_as_text(history: History, form: Form) -> None:
    """Without types, numbers are exact text. A NULL omitted by an insert is absent and never another value."""
    only_key = DeclaredTable(f"{OWNER}.*", key=TABLE.key)
    events = events_of(dialect(only_key, preset="lenient"), messages(history.changes, form))
    as_text = [{name: str(value) for name, value in row.items() if value is not None} for row in history.rows.values()]
    sent = {
        key: {name: value for name, value in row.items() if value is not None} for key, row in rows_of(events).items()
    }
    assert by_key(as_text, TABLE) == sent


@given(histories(key_changes=False))
def test_without_tables_the_updates_of_post_have_their_key(history: History) -> None:
    """With preset quest, `key` identifies the row of an update. Inserts and deletes have no key, with a note."""
    events = events_of(dialect(), messages(history.changes, QUEST))
    for change, event in zip(history.changes, events, strict=True):
        if change.op == "update" and change.before is not None:
            assert event["key"] == {"id": str(change.before["id"])}
            assert event["key_kind"] == "unique"
        else:
            assert event["key"] is None
            assert "KEY_UNDECLARED" in event["notes"]
