"""Metadata messages are learned, stored, and joined to rows (§2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cdc_core.envelope import Column
from tests.translator.dialects.qlik.messages import (
    SCHEMA_ID,
    bare,
    change,
    dialect,
    enveloped,
    events,
    message,
    metadata,
    refusal,
    sample,
    taught,
)
from translator.dialects.qlik.metadata import Metadata
from translator.errors import FatalError
from translator.message import DeclaredTable, Learned, TableName, Writer

COLUMNS: dict[str, dict[str, Any]] = {"id": {"type": "INT4", "primaryKeyPosition": 1, "nullable": False}, "name": {}}


def learned(value: bytes | dict[str, Any]) -> Learned:
    """Return what a metadata message teaches."""
    outcome = dialect().decode(message(value))
    assert isinstance(outcome, Learned)
    return outcome


def broken(*path: str, value: Any) -> dict[str, Any]:
    """Return a metadata message with another value at a place of its body. `...` removes the member."""
    whole = metadata(COLUMNS)
    parent = whole["message"]
    for name in path[:-1]:
        parent = parent[name]
    if value is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return whole


# -- learning


@pytest.mark.requirement("qlik.metadata.1", "qlik.test_inputs.2")
def test_same_message_same_bytes() -> None:
    """A republished metadata message gives the same bytes, whatever the order of its columns and members."""
    first = learned(sample("metadata_learned"))
    body = msgspec.json.decode(sample("metadata_learned"))
    listed = body["message"]["tableStructure"]["tableColumns"]
    body["message"]["tableStructure"]["tableColumns"] = dict(reversed(listed.items()))
    again = learned(msgspec.json.encode(dict(reversed(body.items()))))
    assert SCHEMA_ID == first.key
    assert first == again


@pytest.mark.requirement("qlik.metadata.1")
def test_document_holds_what_is_needed() -> None:
    """The document has lineage, columns by ordinal and the data schema, in compact JSON."""
    document = learned(metadata({"a": {"ordinal": 2}, "b": {"ordinal": 1, "type": "INT4"}}, task="t")).document
    rest = '"length":0,"precision":0,"scale":0,"key":0,"nullable":null'
    expected = (
        f'{{"schemaId":"{SCHEMA_ID}","server":null,"task":"t","schema":"S","table":"T","tableVersion":null,'
        f'"timestamp":null,"columns":[{{"name":"b","ordinal":1,"type":"INT4",{rest}}},'
        f'{{"name":"a","ordinal":2,"type":"STRING",{rest}}}],"dataSchema":"{{}}"}}'
    )
    assert expected == document.decode()


def test_learn_is_frozen_and_repeatable() -> None:
    """Learning a document again gives the same immutable result."""
    document = learned(sample("metadata_learned")).document
    first, again = dialect().learn("key", document), dialect().learn("key", document)
    assert isinstance(first, Metadata)
    assert first == again
    with pytest.raises(AttributeError):
        first.document.table = "x"  # type: ignore[misc]


@pytest.mark.parametrize("document", [b"", b"{}", b"[1]", b"\xff", b'{"schemaId":"x"}'])
def test_stored_document_of_somebody_else(document: bytes) -> None:
    """Other content in the metadata topic stops the process, because types would have to be guessed."""
    with pytest.raises(FatalError):
        dialect().learn("key", document)


def test_lookup_of_something_else_is_a_bug() -> None:
    """The lookup returns only what learn() created."""
    with pytest.raises(TypeError):
        dialect({SCHEMA_ID: object()}).decode(message(enveloped(bare("INSERT", {"a": 1}), SCHEMA_ID)))


# -- joining


@pytest.mark.requirement("qlik.metadata.3")
def test_row_with_metadata() -> None:
    """Metadata provides the row's table, writer, types, key and complete schema."""
    reader = taught(COLUMNS, server="srv", task="tsk")
    read = change(reader, enveloped(bare("INSERT", {"id": 1, "name": "a"}), SCHEMA_ID))
    assert TableName(None, "S", "T") == read.table
    assert Writer("enveloped_json", "certain", server="srv", task="tsk") == read.writer
    assert {"id": 1, "name": "a"} == read.after
    assert (("id",), "primary") == (read.key_columns, read.key_kind)
    assert read.schema is not None
    assert ("src", "S", "T", "primary") == (
        read.schema.source,
        read.schema.schema,
        read.schema.table,
        read.schema.key_kind,
    )
    assert (
        Column("id", "int32", nullable=False, key=1, native="INT4"),
        Column("name", "string", native="STRING"),
    ) == read.schema.columns


@pytest.mark.requirement("qlik.metadata.4")
def test_ordinals_of_metadata() -> None:
    """Masks use the metadata's ordinals, even with gaps and another order in the message. Nothing is assumed."""
    reader = taught({"a": {"ordinal": 2}, "b": {"ordinal": 5}, "c": {"ordinal": 9}})
    row = {"c": None, "a": None, "b": "x"}
    read = change(reader, enveloped(bare("UPDATE", row, changeMask="10", columnMask="110"), SCHEMA_ID))
    assert {"c": None, "b": "x"} == read.after
    assert (["a"], ["b"], None) == (read.unavailable, read.changed, read.notes)


def test_column_that_metadata_does_not_know() -> None:
    """A row with a column that its metadata lacks does not have that schema and is rejected."""
    value = enveloped(bare("INSERT", {"id": 1, "surprise": 2}), SCHEMA_ID)
    assert ("INVALID_FIELD", "$.message.data") == refusal(taught(COLUMNS), value)


def test_key_order() -> None:
    """The key follows its positions and not the order of the columns."""
    reader = taught({"a": {"primaryKeyPosition": 2}, "b": {}, "c": {"primaryKeyPosition": 1}})
    assert ("c", "a") == change(reader, enveloped(bare("INSERT", {"a": "1"}), SCHEMA_ID)).key_columns


def test_key_by_declaration() -> None:
    """The operator's key is used only if the metadata has none."""
    tables = (DeclaredTable("S.T", key=("name",)),)
    value = enveloped(bare("INSERT", {"id": 1, "name": "a"}), SCHEMA_ID)
    keyless = change(taught({"id": {"type": "INT4"}, "name": {}}, tables), value)
    assert (("name",), "configured") == (keyless.key_columns, keyless.key_kind)
    assert keyless.schema is not None
    assert (("name",), "configured") == (keyless.schema.key_columns, keyless.schema.key_kind)
    assert (("id",), "primary") == (change(taught(COLUMNS, tables), value).key_columns, "primary")


@pytest.mark.requirement("qlik.metadata.2")
def test_untyped_ignores_metadata() -> None:
    """With `untyped: translate`, metadata is not looked up, so an event does not depend on what was learned."""
    value = enveloped(bare("INSERT", {"id": 1}), SCHEMA_ID)
    found = learned(metadata(COLUMNS))
    document = dialect().learn(found.key, found.document)
    unlearned, known = dialect(untyped="translate"), dialect({SCHEMA_ID: document}, untyped="translate")
    assert change(unlearned, value) == change(known, value)
    assert ({"id": "1"}, None) == (change(known, value).after, change(known, value).schema)


# -- rejected metadata


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        (("schemaId",), ..., "MISSING_FIELD"),
        (("schemaId",), "", "MISSING_FIELD"),
        (("schemaId",), "F" * 129, "INVALID_FIELD"),
        (("schemaId",), "OTHER", "INVALID_FIELD"),
        (("dataSchema",), 1, "INVALID_FIELD"),
        (("dataSchema",), "ü" * 5_001, "LIMIT_EXCEEDED"),
        (("lineage",), ..., "MISSING_FIELD"),
        (("lineage", "table"), ..., "MISSING_FIELD"),
        (("lineage", "table"), "", "INVALID_FIELD"),
        (("lineage", "schema"), 1, "INVALID_FIELD"),
        (("lineage", "tableVersion"), "1", "INVALID_FIELD"),
        (("lineage", "tableVersion"), -1, "INVALID_FIELD"),
        (("tableStructure",), ..., "MISSING_FIELD"),
        (("tableStructure", "tableColumns"), {}, "INVALID_FIELD"),
        (("tableStructure", "tableColumns"), [], "INVALID_FIELD"),
        (("tableStructure", "tableColumns"), {f"c{n}": {} for n in range(21)}, "LIMIT_EXCEEDED"),
    ],
)
def test_broken_metadata(path: tuple[str, ...], value: Any, code: str) -> None:
    """Incomplete or contradictory metadata teaches nothing."""
    assert (code, ".".join(("$.message", *path))) == refusal(dialect(), broken(*path, value=value))


@pytest.mark.requirement("qlik.metadata.4")
@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("type", ..., "MISSING_FIELD"),
        ("type", None, "MISSING_FIELD"),
        ("type", 4, "INVALID_FIELD"),
        ("ordinal", ..., "MISSING_FIELD"),
        ("ordinal", 0, "INVALID_FIELD"),
        ("ordinal", 21, "INVALID_FIELD"),
        ("ordinal", True, "INVALID_FIELD"),
        ("precision", 1001, "INVALID_FIELD"),
        ("scale", -1001, "INVALID_FIELD"),
        ("length", -1, "INVALID_FIELD"),
        ("primaryKeyPosition", -1, "INVALID_FIELD"),
        ("nullable", 1, "INVALID_FIELD"),
    ],
)
def test_broken_column(member: str, value: Any, code: str) -> None:
    """The same holds for a column."""
    path = ("tableStructure", "tableColumns", "name", member)
    assert (code, f"$.message.tableStructure.tableColumns.'name'.{member}") == refusal(
        dialect(), broken(*path, value=value)
    )


@pytest.mark.requirement("qlik.metadata.5")
@pytest.mark.parametrize("sent", ["XML", "JSON", "VARCHAR", "\u0131nt4", "INT4 ", ""])
def test_column_of_an_unknown_type(sent: str) -> None:
    """The column has type unknown, with a note. Others keep their types, and the rows are read."""
    reader = taught(COLUMNS | {"doc": {"type": sent}, "other": {"type": "XML"}})
    value = enveloped(bare("INSERT", {"id": 1, "name": "a", "doc": "<a/>", "other": 1.50}), SCHEMA_ID)
    read = change(reader, value)
    assert ({"id": 1, "name": "a", "doc": "<a/>", "other": "1.5"}, ["TYPE_UNKNOWN=doc"]) == (read.after, read.notes)
    assert read.schema is not None
    assert [("id", "int32"), ("name", "string"), ("doc", "unknown"), ("other", "unknown")] == [
        (column.name, column.type) for column in read.schema.columns
    ]
    assert (sent or None) == read.schema.columns[2].native
    (event,) = events(reader, value)
    assert ('{"id":1}', "full", read.schema.id) == (event.key, event.after_state, event.schema_id)


@pytest.mark.requirement("qlik.metadata.5")
def test_type_in_another_case() -> None:
    """The case of a type does not matter to the schema or to what is stored."""
    lower = {"id": {"type": "int4"}, "name": {"type": "nClob"}}
    upper = {"id": {"type": "INT4"}, "name": {"type": "NCLOB"}}
    assert learned(metadata(lower)) == learned(metadata(upper))
    assert change(taught(lower), enveloped(bare("INSERT", {"id": 1}), SCHEMA_ID)).notes is None


def test_a_document_with_an_unknown_type_is_readable_by_an_earlier_release() -> None:
    """It knows only the documented types and ignores additional members."""
    document = msgspec.json.decode(learned(metadata({"doc": {"type": "XML"}, "name": {}})).document)
    assert [("STRING", "XML"), ("STRING", None)] == [
        (column["type"], column.get("undocumented")) for column in document["columns"]
    ]


def test_a_column_of_an_unknown_type_may_be_a_lob() -> None:
    """LOBs have no bit in a changeMask, and this column may be one, so the changed columns are unknown."""
    reader = taught(COLUMNS | {"doc": {"type": "XML"}})
    row = {"id": 1, "name": "a", "doc": "x"}
    read = change(reader, enveloped(bare("UPDATE", row, row | {"doc": "y"}, changeMask="02"), SCHEMA_ID))
    assert (None, ["TYPE_UNKNOWN=doc"]) == (read.changed, read.notes)


def test_an_unknown_type_is_announced_with_a_new_structure() -> None:
    """The schema event has the note too."""
    found = learned(metadata(COLUMNS | {"doc": {"type": "XML"}}, tableVersion=2))
    assert [["TYPE_UNKNOWN=doc"]] == [change.notes for change in found.announces]


@pytest.mark.requirement("qlik.metadata.4")
@pytest.mark.parametrize("member", ["ordinal", "primaryKeyPosition"])
def test_numbers_are_unique(member: str) -> None:
    """Two columns with the same ordinal or key position are not a valid table."""
    whole = broken("tableStructure", "tableColumns", "name", member, value=1)
    assert ("INVALID_FIELD", "$.message.tableStructure.tableColumns") == refusal(dialect(), whole)


def test_envelope_may_leave_the_id_out() -> None:
    """According to the documentation, the metadata envelope can lack messageSchemaId, because the body has it."""
    assert learned(metadata(COLUMNS)) == learned({**metadata(COLUMNS), "messageSchemaId": None})
