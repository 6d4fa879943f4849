"""Operations, images and tables of the Qlik dialect."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.envelope import Issue
from tests.translator.dialects.qlik.messages import SCHEMA_ID, bare, change, dialect, enveloped, message, refusal
from translator.dialects.qlik.envelope_fields import OPERATIONS
from translator.errors import ConfigError
from translator.message import DeclaredTable, Needs, Skip, TableName

ROW = {"id": 1, "name": "a"}
OLD = {"id": 1, "name": "b"}


# -- operations


@pytest.mark.requirement("qlik.headers.1")
@pytest.mark.parametrize(("word", "op"), [("REFRESH", "r"), ("INSERT", "c"), ("UPDATE", "u"), ("DELETE", "d")])
def test_operations(word: str, op: str) -> None:
    """Each of Replicate's four operations maps to a canonical one, in any case."""
    assert op == change(dialect(), bare(word, ROW)).op
    assert op == change(dialect(), bare(word.lower(), ROW)).op


def test_every_operation_is_tested() -> None:
    """The table of operations has only the four entries above."""
    assert {"REFRESH", "INSERT", "UPDATE", "DELETE"} == set(OPERATIONS)


@pytest.mark.requirement("qlik.headers.1")
@pytest.mark.parametrize("word", ["READ", "CREATE", "TRUNCATE", "UPSERT", "", "ınsert"])
def test_unknown_operation(word: str) -> None:
    """An operation that Replicate does not write is rejected and not read as the closest one."""
    assert ("UNKNOWN_OPERATION", "$.headers.operation") == refusal(dialect(), bare(word, ROW))


@pytest.mark.requirement("qlik.headers.1")
@pytest.mark.parametrize(
    ("word", "code"), [(None, "MISSING_FIELD"), (1, "INVALID_FIELD"), (["UPDATE"], "INVALID_FIELD")]
)
def test_operation_is_a_string(word: Any, code: str) -> None:
    """An operation is required and must be text."""
    assert (code, "$.headers.operation") == refusal(dialect(), bare(word, ROW))


# -- images


@pytest.mark.requirement("qlik.values.1")
def test_insert() -> None:
    """An insert has its new row in the order sent, and no old row. Untyped numbers are text."""
    read = change(dialect(), bare("INSERT", {"z": 1, "a": "x", "n": None, "b": True}))
    assert [("z", "1"), ("a", "x"), ("n", None), ("b", True)] == list((read.after or {}).items())
    assert read.before is None


@pytest.mark.requirement("qlik.rows.2")
@pytest.mark.parametrize("before", [None, {}])
def test_update_without_before(before: Any) -> None:
    """An update without beforeData is legal, and its old row is unknown."""
    read = change(dialect(), bare("UPDATE", ROW, before))
    assert (None, {"id": "1", "name": "a"}) == (read.before, read.after)


def test_update_with_before() -> None:
    """An update keeps both images."""
    read = change(dialect(), bare("UPDATE", ROW, OLD))
    assert ({"id": "1", "name": "b"}, {"id": "1", "name": "a"}) == (read.before, read.after)


@pytest.mark.requirement("qlik.rows.1")
@pytest.mark.parametrize(("data", "before"), [(OLD, None), (OLD, {}), (None, OLD), ({}, OLD), (ROW, OLD)])
def test_delete(data: Any, before: Any) -> None:
    """A delete has its row in beforeData, otherwise in data, and no new row."""
    read = change(dialect(), bare("DELETE", data, before))
    assert ({"id": "1", "name": "b"}, None) == (read.before, read.after)


NULLS = {"id": None, "name": None}


def test_delete_with_an_image_of_nulls() -> None:
    """An image of nulls does not hide the row in the other one."""
    for images in ((OLD, NULLS), (NULLS, OLD)):
        assert {"id": "1", "name": "b"} == change(dialect(), bare("DELETE", *images)).before


def test_delete_of_a_row_of_nulls() -> None:
    """In a table with a key, it identifies no row. A table without one can have such a row."""
    keyed = dialect(tables=(DeclaredTable("S.T", ("id",)),))
    assert ("MISSING_FIELD", "$") == refusal(keyed, bare("DELETE", NULLS))
    assert NULLS == change(dialect(), bare("DELETE", NULLS)).before


@pytest.mark.parametrize("word", ["INSERT", "REFRESH", "UPDATE"])
def test_old_row_of_nulls(word: str) -> None:
    """An old row of nulls was not sent if the table has a key. Without one, an update may have such a row."""
    keyed = dialect(tables=(DeclaredTable("S.T", ("id",)),))
    assert change(keyed, bare(word, ROW, NULLS)).before is None
    assert (NULLS if word == "UPDATE" else None) == change(dialect(), bare(word, ROW, NULLS)).before
    assert {"id": None, "name": "b"} == change(keyed, bare("UPDATE", ROW, {**NULLS, "name": "b"})).before


@pytest.mark.requirement("qlik.rows.1")
def test_delete_without_row() -> None:
    """A delete without a row is rejected."""
    assert ("MISSING_FIELD", "$") == refusal(dialect(), bare("DELETE", None, None))


@pytest.mark.requirement("qlik.rows.1")
@pytest.mark.parametrize("word", ["REFRESH", "INSERT", "UPDATE"])
@pytest.mark.parametrize("data", [None, {}])
def test_row_is_required(word: str, data: Any) -> None:
    """A missing required row is rejected."""
    assert ("MISSING_FIELD", "$.data") == refusal(dialect(), bare(word, data))


@pytest.mark.parametrize("word", ["REFRESH", "INSERT"])
def test_row_before_an_insert(word: str) -> None:
    """An insert with an old row is contradictory."""
    assert ("INVALID_FIELD", "$.beforeData") == refusal(dialect(), bare(word, ROW, OLD))


@pytest.mark.requirement("qlik.decode.3", "qlik.test_inputs.4")
@pytest.mark.parametrize("section", ["data", "beforeData"])
@pytest.mark.parametrize("wrong", ["text", [], 1, False])
def test_sections_are_objects(section: str, wrong: Any) -> None:
    """A section of another JSON type is rejected, even if it would not be read."""
    assert ("INVALID_FIELD", f"$.{section}") == refusal(dialect(), {**bare("DELETE", ROW, ROW), section: wrong})


def test_column_limit() -> None:
    """A row wider than the limit is rejected."""
    wide = {f"c{n}": n for n in range(21)}
    assert ("LIMIT_EXCEEDED", "$.data") == refusal(dialect(), bare("INSERT", wide))


def test_nested_value_is_an_issue() -> None:
    """A value that no column can have is omitted and reported, and the row continues."""
    read = change(dialect(), bare("INSERT", {"id": 1, "deep": {"a": 1}}))
    assert {"id": "1"} == read.after
    assert [Issue("deep", "NOT_TEXT", '{"a": 1}')] == read.issues


def test_null_without_mask_is_noted() -> None:
    """Outside a full load, a null without a columnMask may not have been captured. The assumption is noted."""
    assert ["NULLS_ASSUMED"] == change(dialect(), bare("INSERT", {"id": 1, "n": None})).notes
    assert change(dialect(), bare("REFRESH", {"id": 1, "n": None})).notes is None
    assert change(dialect(), bare("INSERT", ROW)).notes is None


# -- the table of a message


@pytest.mark.requirement("qlik.metadata.3")
@pytest.mark.parametrize(
    ("topics", "table"),
    [
        ("S.T", TableName(None, "S", "T")),
        ("T", TableName(None, None, "T")),
        ("other=X.Y,t=S.T", TableName(None, "S", "T")),
        ("t*=S.T, *=X.Y", TableName(None, "S", "T")),
        ("?=S.T", TableName(None, "S", "T")),
        ({"other": "X.Y", "*": "S.T"}, TableName(None, "S", "T")),
    ],
)
def test_topics(topics: Any, table: TableName) -> None:
    """The operator assigns tables by topic, and the first matching pattern counts."""
    assert table == change(dialect(topics=topics), bare("INSERT", ROW)).table


@pytest.mark.parametrize("topics", ["", "a.b.c", ".T", "S.", "t=", "t=S.T,u", "=S.T", "t=S.T,", {"t": ""}, {"t": 1}, 5])
def test_topics_not_valid(topics: Any) -> None:
    """A mistake in the option stops the start."""
    with pytest.raises(ConfigError):
        dialect(topics=topics)


def test_unknown_option() -> None:
    """An unknown option stops the start, with the closest match."""
    with pytest.raises(ConfigError, match="did you mean topics"):
        dialect(topic="S.T")
    with pytest.raises(ConfigError):
        dialect(untyped="perhaps")


@pytest.mark.requirement("qlik.metadata.3")
def test_table_unknown() -> None:
    """A message without a table is rejected."""
    reader = dialect(topics={"other": "S.T"})
    assert ("TABLE_UNKNOWN", "$") == refusal(reader, bare("INSERT", {**ROW, "table": "T"}))


@pytest.mark.requirement("qlik.metadata.3")
@pytest.mark.parametrize("names", [{"schema": "S", "table": "T"}, {"table": "T"}])
def test_table_in_message(names: dict[str, str]) -> None:
    """Fields of the Message Format name the table, in the headers or next to them, but never a column of the row."""
    reader = dialect(topics=None)
    expected = TableName(None, names.get("schema"), "T")
    assert expected == change(reader, bare("INSERT", ROW, **names)).table
    assert expected == change(reader, {**bare("INSERT", ROW), **names}).table
    assert expected == change(reader, enveloped({**bare("INSERT", ROW), **names})).table


def test_topics_go_before_the_message() -> None:
    """The operator's setting for a topic overrides a member of the message."""
    assert TableName(None, "S", "T") == change(dialect(), bare("INSERT", ROW, table="X")).table


def test_declared_table() -> None:
    """Declared columns and key provide types, key and schema."""
    declared = DeclaredTable("S.T", key=("id",), columns={"id": "int32", "name": "string"})
    read = change(dialect(tables=(declared,)), bare("INSERT", ROW))
    assert {"id": 1, "name": "a"} == read.after
    assert (("id",), "configured") == (read.key_columns, read.key_kind)
    assert read.schema is not None
    assert ["id", "name"] == [column.name for column in read.schema.columns]


def test_column_beyond_the_declaration() -> None:
    """An undeclared column shows that the list is incomplete: there is no schema, and a note says so."""
    declared = DeclaredTable("S.T", key=("id",), columns={"id": "int32"})
    read = change(dialect(tables=(declared,)), bare("INSERT", ROW))
    assert ({"id": 1, "name": "a"}, None) == (read.after, read.schema)
    assert (("id",), ["COLUMNS_UNDECLARED"]) == (read.key_columns, read.notes)


def test_key_alone_declared() -> None:
    """A declaration without columns provides only the key."""
    read = change(dialect(tables=(DeclaredTable("*.T", key=("id",)),)), bare("INSERT", ROW))
    assert (("id",), None, {"id": "1", "name": "a"}) == (read.key_columns, read.schema, read.after)


# -- messages without a row


@pytest.mark.requirement("qlik.detect.1")
@pytest.mark.parametrize("value", [None, b""])
def test_tombstone(value: bytes | None) -> None:
    """A record without a value is skipped under its own name."""
    assert Skip("tombstone") == dialect().decode(message(value))


@pytest.mark.requirement("qlik.metadata.2", "qlik.test_inputs.2")
def test_waits_for_metadata() -> None:
    """A message with unknown metadata waits for it, even if the topic provides the table."""
    assert Needs(SCHEMA_ID) == dialect().decode(message(enveloped(bare("INSERT", ROW), SCHEMA_ID)))


def test_broken_message_does_not_wait() -> None:
    """A mistake that does not depend on metadata is rejected immediately."""
    reader = dialect()
    assert "UNKNOWN_OPERATION" == refusal(reader, enveloped(bare("READ", ROW), SCHEMA_ID))[0]
    assert "MISSING_FIELD" == refusal(reader, enveloped(bare("INSERT", None), SCHEMA_ID))[0]
    assert "INVALID_FIELD" == refusal(reader, enveloped(bare("INSERT", ROW, columnMask="xy"), SCHEMA_ID))[0]
