"""Random table histories sent as DTS records: a consumer ends with the tables of the source."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.demo.shop import Shop
from tests.sizes import examples
from tests.translator.dialects.canal.history import History, histories, table_of
from tests.translator.dialects.dts_avro.history import (
    SOURCES,
    Form,
    canonical,
    messages,
    rendered,
    tables_of,
    translated,
)

FORMS = st.builds(
    Form,
    st.sampled_from(list(SOURCES.values())),
    st.sampled_from(["v2", "v3"]),
    st.sampled_from(["full", "key", "none"]),
    st.booleans(),
)


def expected_tables(shop: Shop, form: Form) -> dict[str, dict[str, Any]]:
    """Return the tables of the shop as a consumer must have them."""
    found = {}
    for name, rows in shop.rows.items():
        shape = shop.shape(name)
        canonical_rows = [canonical(shape, row, form.source) for row in rows.values()]
        found[name] = {json.dumps({column: row[column] for column in shape.key}): row for row in canonical_rows}
    return found


@pytest.mark.requirement("dts_avro.tests.1")
@examples(0.6)
@given(st.integers(0, 10_000), st.integers(1, 60), st.none() | st.integers(5, 40), FORMS)
def test_the_tables_of_the_source_come_back(seed: int, length: int, new_column_at: int | None, form: Form) -> None:
    """This covers all kinds of columns, several tables, loads, key changes and a new column, in any form."""
    shop = Shop(seed)
    sent = rendered(shop.history(length, new_column_at), form)
    found = tables_of(translated(sent))
    expected = {name: rows for name, rows in expected_tables(shop, form).items() if name in found or rows}
    assert expected == {name: _completed(rows, shop.shape(name)) for name, rows in found.items()}


def _completed(rows: dict[str, Any], shape: Any) -> dict[str, Any]:
    """Add the new column to an older row. In the source, it is null."""
    names = [column.name for column in shape.columns]
    return {key: {name: row.get(name) for name in names} for key, row in rows.items()}


@pytest.mark.requirement("dts_avro.map.10")
@examples(0.6)
@given(histories(), st.sampled_from(["full", "key", "none"]), st.data())
def test_a_topic_read_twice_in_part(history: History, before: str, data: st.DataObject) -> None:
    """A consumer that rereads messages in order from any offset ends with the same rows."""
    sent = messages(history, Form(before=before))
    start = data.draw(st.integers(0, len(sent)))
    end = data.draw(st.integers(start, len(sent)))
    again = [*sent[:end], *sent[start:]]
    rows = tables_of(translated(again)).get("t", {})
    assert table_of(history) == rows


@pytest.mark.parametrize("options", [{}, {"transactions": True, "extras": True}])
def test_marks_change_no_table(options: dict[str, Any]) -> None:
    """Heartbeats, transactions and fillers between rows become separate events or are skipped."""
    shop = Shop(7)
    changes = list(shop.history(40))
    quiet, busy = (tables_of(translated(rendered(changes, Form(marks=marks)), **options)) for marks in (False, True))
    assert quiet == busy == expected_tables(shop, Form())
