"""What the rows of a table share: key, schema, and the cache for both (§5 and 6)."""

from typing import Any

import pytest

from tests.translator.dialects.dts_avro.composer import (
    NONE,
    binary,
    character,
    compose,
    fields,
    integer,
    local,
    row,
    text,
)
from tests.translator.dialects.dts_avro.messages import refused, row_of
from tests.translator.dialects.made import made
from translator.dialects.dts_avro import DtsAvro
from translator.message import DeclaredTable, Message, Setup

A, B = integer(1), integer(2)
COLUMNS = fields(a=3, b=3)
TWO_KEYS = {"pk_uk_info": '{"uk":["b"],"PRIMARY":["b","a"]}'}
UNIQUE_ONLY = {"pk_uk_info": '{"uk_b":["b"],"uk_a":["a"]}'}
CONFIGURED = DeclaredTable("shop.*", key=("a",))


@pytest.mark.requirement("dts_avro.map.6", "dts_avro.reject.7")
@pytest.mark.parametrize(
    ("expected", "tags", "given"),
    [
        (("primary", ("b", "a"), None), TWO_KEYS, {}),
        (("primary", ("b", "a"), None), TWO_KEYS, {"tables": [CONFIGURED], "unique_key_as_key": True}),
        (("none", (), None), UNIQUE_ONLY, {}),
        (("unique", ("b",), None), UNIQUE_ONLY, {"unique_key_as_key": True}),
        (("configured", ("a",), None), UNIQUE_ONLY, {"tables": [CONFIGURED]}),
        (("configured", ("a",), None), {}, {"tables": [CONFIGURED]}),
        (("none", (), None), {}, {"tables": [DeclaredTable("shop.*", key=("z",))]}),
        (("none", (), ["PK_UK_INFO_INVALID"]), {"pk_uk_info": "PRIMARY"}, {}),
        (("none", (), ["PK_UK_INFO_INVALID"]), {"pk_uk_info": '{"PRIMARY":"a"}'}, {}),
        (("none", (), ["PK_UK_INFO_INVALID"]), {"pk_uk_info": '{"PRIMARY":["z"]}'}, {}),
        (("none", (), ["PK_UK_INFO_INVALID"]), {"pk_uk_info": '{"PRIMARY":[]}'}, {}),
        (("none", (), ["PK_UK_INFO_INVALID"]), {"pk_uk_info": "[" * 100_000}, {}),
        (("none", (), ["PK_UK_INFO_INVALID"]), {"pk_uk_info": '{"PRIMARY":["a"],"PRIMARY":["b"]}'}, {}),
        (("none", (), ["PK_UK_INFO_INVALID"]), {"pk_uk_info": '{"uk":["a"],"\\u0075k":["b"]}'}, {}),
        (("primary", ("a",), None), {"pk_uk_info": ' {"PRIMARY" : ["a"], "u\\":k":["b"]}'}, {}),
    ],
)
def test_the_key(expected: tuple[str, Any, Any], tags: dict[str, str], given: dict[str, Any]) -> None:
    """The key is PRIMARY, else by option the first unique key, else the declared one. A useless tag is noted."""
    change = row_of(compose("INSERT", fields=COLUMNS, afterImages=[A, B], tags=tags), **given)
    assert expected == (change.key_kind, change.key_columns, change.notes)
    assert change.schema is not None
    assert expected[:2] == (change.schema.key_kind, change.schema.key_columns)


@pytest.mark.parametrize(
    ("noted", "before", "tags"),
    [
        (False, [A, B], TWO_KEYS),
        (False, [A, B], {}),
        (False, None, {}),
        (True, None, TWO_KEYS),
        (True, [NONE, B], TWO_KEYS),
        (True, [NONE, NONE], TWO_KEYS),
        (False, [NONE, B], {"pk_uk_info": '{"PRIMARY":["b"]}'}),
    ],
)
def test_an_update_that_does_not_tell_its_old_key_is_noted(noted: bool, before: Any, tags: dict[str, str]) -> None:
    """If such an update changed the key, a consumer keeps the row of the old key."""
    change = row_of(compose("UPDATE", fields=COLUMNS, beforeImages=before, afterImages=[A, B], tags=tags))
    assert (["KEY_OLD_UNKNOWN"] if noted else None) == change.notes


@pytest.mark.requirement("dts_avro.map.3")
def test_the_schema_lists_every_column() -> None:
    """The schema has the names in order of `fields`, types by number, and the source's type names."""
    columns = fields(id=8, name=253, mystery=4242)
    schema = row_of(compose("INSERT", fields=columns, afterImages=[A, None, NONE], tags=TWO_KEYS)).schema
    assert schema is not None
    expected = [
        ("id", "int64", "INT64"),
        ("name", "string", "VAR_STRING"),
        ("mystery", "unknown", "dataTypeNumber 4242"),
    ]
    assert expected == [(column.name, column.type, column.native) for column in schema.columns]
    assert ("src", "shop", None, "orders") == (schema.source, schema.db, schema.schema, schema.table)


def test_a_schema_does_not_depend_on_values() -> None:
    """Rows of a table share a schema. Null, withheld and broken values change nothing."""
    columns: dict[str, Any] = {"fields": fields(a=3, t=12, s=253)}
    rows = [
        [A, local(2023, 10, 17, 0, 0, 0), character("x")],
        [None, None, None],
        [NONE, local(0, 0, 0, 0, 0, 0), character(b"\xff", "swe7")],
    ]
    schemas = {row_of(compose("INSERT", afterImages=cells, **columns)).schema for cells in rows}
    assert 1 == len(schemas)


def test_text_or_bytes_is_told_by_the_values_of_the_message() -> None:
    """VARBINARY has the type number of VARCHAR, so either image may decide. A declaration also covers nulls."""
    columns: dict[str, Any] = {"fields": fields(a=3, v=253)}
    blob = binary(b"\xff", "BINARY")
    null = compose("INSERT", afterImages=[A, None], **columns)
    told = compose("UPDATE", beforeImages=[A, blob], afterImages=[A, None], **columns)
    assert ["string", "bytes"] == [_type_of_v(row_of(value)) for value in (null, told)]
    declared = [DeclaredTable("*", columns={"v": "bytes"})]
    assert ["bytes", "bytes"] == [_type_of_v(row_of(value, tables=declared)) for value in (null, told)]
    assert {"a": 1, "v": "/w=="} == row_of(told).before


def _type_of_v(change: Any) -> str:
    return str(change.schema.columns[1].type)


def test_text_and_bytes_in_one_column_are_a_dead_letter() -> None:
    """No column can hold both."""
    images: dict[str, Any] = {"beforeImages": [text("x")], "afterImages": [binary(b"x")]}
    assert ("INVALID_FIELD", "$.afterImages") == refused(compose("UPDATE", fields=fields(v=253), **images))


@pytest.mark.requirement("dts_avro.decode.6")
def test_a_layout_that_was_given_up_leaves_no_issue() -> None:
    """The first record with text in a bytes column is read twice, and its event is that of the second reading."""
    dialect = made(DtsAvro, Setup("src"), {})
    value = compose("UPDATE", fields=fields(v=252), beforeImages=[integer(5)], afterImages=[text("x")])
    outcomes = [dialect.decode(Message("raw", 0, 0, 0, None, value)) for _ in range(2)]
    assert outcomes[0] == outcomes[1]
    assert (None, {"v": "5"}, {"v": "x"}) == (row_of(value).issues, row_of(value).before, row_of(value).after)


@pytest.mark.requirement("dts_avro.decode.6")
def test_layouts_are_forgotten_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layout cache is bounded, and eviction changes no outcome."""
    monkeypatch.setattr("translator.dialects.dts_avro.reader.TABLES", 2)
    dialect = made(DtsAvro, Setup("src"), {})
    for memory in (dialect._rows._known, dialect._rows._layouts._known):
        memory._most = 7_000  # two or three tables
    columns = {"a": (3, A), "v": (253, binary(b"x", "BINARY"))}
    values = [row("INSERT", columns, objectName=f"shop.t{n}") for n in range(5)] * 2
    outcomes = [dialect.decode(Message("raw", 0, 0, 0, None, value)) for value in values]
    assert outcomes[:5] == outcomes[5:]
    rows = dialect._rows
    memories = (rows._known, rows._layouts._known, dialect._reader._known)
    assert all(0 < len(memory) <= 3 for memory in memories)
