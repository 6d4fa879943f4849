"""Rows of DTS Avro: tables with changing columns, nulls by name, repeated rows, special decimals."""

from __future__ import annotations

import pytest

from tests.repository.pages import page
from tests.translator.dialects.dts_avro.composer import NONE, NULL, compose, decimal, fields, integer, row
from tests.translator.dialects.dts_avro.messages import MYSQL, refused, row_of, value_of
from tests.translator.dialects.made import made
from translator.dialects.dts_avro import DtsAvro
from translator.dialects.dts_avro.types import MICROSECOND_SOURCES
from translator.message import Changes, Message, RowChange, Setup, TableName


@pytest.mark.requirement("dts_avro.decode.6")
def test_a_table_that_changes_its_columns() -> None:
    """If a table gets a column, with or without a new metaVersion, each row is read with its own columns."""
    dialect = made(DtsAvro, Setup("src"), {})
    narrow = row("INSERT", {"a": (3, integer(1))})
    wide = row("INSERT", {"a": (3, integer(1)), "b": (3, integer(2))})
    renamed = row("INSERT", {"x": (3, integer(1))})
    retyped = row("INSERT", {"a": (8, integer(1))})
    after = []
    for value in (narrow, wide, renamed, retyped, narrow):
        outcome = dialect.decode(Message("raw", 0, 0, 0, None, value))
        assert isinstance(outcome, Changes)
        (change,) = outcome.changes
        assert isinstance(change, RowChange)
        assert change.schema is not None
        after.append((change.after, change.schema.columns[0].native))
    one = ({"a": 1}, "INT32")
    assert [one, ({"a": 1, "b": 2}, "INT32"), ({"x": 1}, "INT32"), ({"a": 1}, "INT64"), one] == after


@pytest.mark.requirement("dts_avro.map.4")
@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE"])
def test_null_by_name_is_noted(operation: str) -> None:
    """EmptyObject.NULL was never observed. It is read as null, and a note counts it."""
    change = row_of(row(operation, {"a": (3, integer(1)), "b": (3, NULL), "c": (3, NONE)}))
    image = change.before if operation == "DELETE" else change.after
    assert ({"a": 1, "b": None}, ["c"], ["EMPTY_OBJECT_NULL=b"]) == (image, change.unavailable, change.notes)


@pytest.mark.requirement("dts_avro.map.10")
def test_the_same_row_under_another_offset_is_an_event_of_its_own() -> None:
    """A writer that resumes resends rows. Nothing is dropped here, and the event has the content key."""
    value = row("INSERT", {"a": (3, integer(1))}, tags={"pk_uk_info": '{"PRIMARY":["a"]}'})
    first, again = row_of(value), row_of(value)
    assert first == again
    assert (TableName("shop", None, "orders"), "72469@78", ("a",)) == (again.table, again.pos_native, again.key_columns)


@pytest.mark.requirement("dts_avro.map.11")
def test_the_page_speaks_of_partitions() -> None:
    """The page explains the order that each policy keeps."""
    text = page("dialects/dts_avro.md")
    for words in ("hash of primary key", "All to partition 0", "not ordered relative to the rows"):
        assert words in text


@pytest.mark.requirement("dts_avro.values.1")
@pytest.mark.parametrize("special", ["NaN", "Infinity", "-Infinity", "~"])
def test_special_decimals_as_text(special: str) -> None:
    """They fit no decimal column but an undeclared one. Either way, the text is kept."""
    assert ("decimal", ("NOT_A_NUMBER", special)) == value_of(MYSQL, 246, decimal(special))
    assert ("unknown", special) == value_of(MYSQL, 77, decimal(special))


@pytest.mark.requirement("dts_avro.values.3")
def test_the_sources_of_micros() -> None:
    """These are MySQL and PostgreSQL and no others (§4.4)."""
    assert frozenset({"MySQL", "PostgreSQL"}) == MICROSECOND_SOURCES


def test_an_image_longer_than_its_columns() -> None:
    """Longer and shorter images are rejected, because pairing by index would put values into wrong columns."""
    for image in ([integer(1)], [integer(1)] * 3):
        value = compose("INSERT", fields=fields(a=3, b=3), afterImages=image)
        assert ("INVALID_FIELD", "$.afterImages") == refused(value)
