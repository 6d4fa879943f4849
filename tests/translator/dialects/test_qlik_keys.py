"""A DELETE whose row is only in the Kafka key. formats/qlik.md sections 7, 8 and 11."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.translator.dialects._qlik import SCHEMA_ID, bare, dialect, enveloped, message, taught
from translator.dialects.qlik import Qlik
from translator.errors import MessageError
from translator.message import Changes, DeclaredTable, Message, Needs, RowChange, TableName

TOLD: dict[str, dict[str, Any]] = {
    "id": {"type": "INT4", "primaryKeyPosition": 1},
    "name": {},
    "raw": {"type": "BYTES"},
}


def deleted(key: bytes | None, data: Any = None, before: Any = None) -> Message:
    """A DELETE with that key."""
    value = enveloped(bare("DELETE", data, before, columnMask="07", changeMask="01"), SCHEMA_ID)
    return msgspec.structs.replace(message(value), key=key)


def row(reader: Qlik, record: Message) -> RowChange:
    """The one row change of a record."""
    outcome = reader.decode(record)
    assert isinstance(outcome, Changes)
    (only,) = outcome.changes
    assert isinstance(only, RowChange)
    return only


def refused(reader: Qlik, record: Message) -> tuple[str, str]:
    """Code and path of the error that a record raises."""
    with pytest.raises(MessageError) as caught:
        reader.decode(record)
    return caught.value.code.value, caught.value.path


@pytest.mark.parametrize("data", [None, {}, {"id": None, "name": None, "raw": None}])
@pytest.mark.parametrize("before", [None, {}])
def test_key_object(data: Any, before: Any) -> None:
    """A JSON object of the key columns names the row; its values have the types of the columns."""
    read = row(taught(TOLD), deleted(b'{"id": "7", "raw": "00ff"}', data, before))
    assert ({"id": 7, "raw": "AP8="}, None, ("id",), "primary") == (
        read.before,
        read.after,
        read.key_columns,
        read.key_kind,
    )
    assert (["ROW_FROM_KEY"], None) == (read.notes, read.unavailable)


def test_row_goes_before_the_key() -> None:
    """Where the message has the row, the key is not looked at."""
    read = row(taught(TOLD), deleted(b'{"id": 8}', {"id": 7, "name": "a", "raw": None}))
    assert ({"id": 7, "name": "a", "raw": None}, None) == (read.before, read.notes)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (b"{}", "MISSING_FIELD"),
        (b'{"name": "a"}', "MISSING_FIELD"),
        (b'{"id": null}', "MISSING_FIELD"),
        (b'{"id": 1, "other": 2}', "INVALID_FIELD"),
        (b'{"id": 1, "id": 2}', "INVALID_FIELD"),
        (b'{"id": 1', "MALFORMED_JSON"),
        (b'{"id": "\\ud800"}', "INVALID_FIELD"),
    ],
)
def test_object_that_names_no_row(key: bytes, code: str) -> None:
    """An object must have the key columns, each once and not null, and no column that the table lacks."""
    assert code == refused(taught(TOLD), deleted(key))[0]


@pytest.mark.parametrize("key", [None, b"", b"7", b"S+T", b"7|8", b"\0\0\0\0\5\x0e", b"[7]", b'"7"'])
def test_key_that_is_no_object(key: bytes | None) -> None:
    """Text is not taken for the row: it may be the name of the table; refused at once, without waiting."""
    assert ("MISSING_FIELD", "$.message") == refused(taught(TOLD), deleted(key))
    assert ("MISSING_FIELD", "$.message") == refused(dialect(), deleted(key))


def test_waits_for_metadata() -> None:
    """Where the key may name the row, its columns and types come from the metadata."""
    assert Needs(SCHEMA_ID) == dialect().decode(deleted(b'{"id": 7}'))


def test_text_of_the_key_column() -> None:
    """With `message_key: primary_key` the text is the value of the only key column."""
    reader = dialect(tables=(DeclaredTable("S.T", key=("id",), columns={"id": "int32"}),), message_key="primary_key")
    record = msgspec.structs.replace(message(bare("DELETE")), key=b"7")
    assert ({"id": 7}, ["ROW_FROM_KEY"]) == (row(reader, record).before, row(reader, record).notes)
    assert "INVALID_FIELD" == refused(reader, msgspec.structs.replace(record, key=b"\xff"))[0]


def test_text_that_begins_as_an_object_does() -> None:
    """Identifiers are written in braces, too: what is no JSON is text, where the operator says that keys are."""
    reader = dialect(tables=(DeclaredTable("S.T", key=("id",)),), message_key="primary_key")
    text = "{3F2504E0-4F89-11D3-9A0C-0305E82C3301}"
    assert {"id": text} == row(reader, msgspec.structs.replace(message(bare("DELETE")), key=text.encode())).before
    record = msgspec.structs.replace(message(bare("DELETE")), key=b'{"id": 7, "id": 8}')
    assert "INVALID_FIELD" == refused(reader, record)[0]


@pytest.mark.parametrize("key", [(), ("id", "name")])
def test_text_of_several_columns(key: tuple[str, ...]) -> None:
    """Text of several columns has no delimiter that anybody documents; without a key nothing says whose text it is."""
    tables = (DeclaredTable("S.T", key=key),) if key else ()
    reader = dialect(tables=tables, message_key="primary_key")
    record = msgspec.structs.replace(message(bare("DELETE")), key=b"7|8")
    assert ("MISSING_FIELD", "$key") == refused(reader, record)


def test_object_without_a_known_key() -> None:
    """The members of the object are the key of this delete."""
    record = msgspec.structs.replace(message(bare("DELETE")), key=json.dumps({"a": 1, "b": "x"}).encode())
    read = row(dialect(), record)
    assert ({"a": "1", "b": "x"}, ("a", "b"), "primary") == (read.before, read.key_columns, read.key_kind)


def test_value_that_its_type_cannot_hold() -> None:
    """It is an issue, as in a row."""
    read = row(taught(TOLD), deleted(b'{"id": "seven"}'))
    assert ({}, ["NOT_AN_INTEGER"]) == (read.before, [issue.code for issue in read.issues or ()])


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "REFRESH"])
def test_other_operations(operation: str) -> None:
    """A key is no row of any other operation."""
    record = msgspec.structs.replace(message(bare(operation)), key=b'{"id": 7}')
    assert ("MISSING_FIELD", "$.data") == refused(dialect(), record)


# -- the table by key


def keyed(key: bytes | None) -> Message:
    """An INSERT with that key."""
    return msgspec.structs.replace(message(bare("INSERT", {"id": 1})), key=key)


def test_table_by_key() -> None:
    """With `message_key: table` the text names the table, where no topic does."""
    assert (
        TableName(None, "SHOP", "ORDERS") == row(dialect(topics=None, message_key="table"), keyed(b"SHOP+ORDERS")).table
    )
    assert TableName(None, "S", "T") == row(dialect(message_key="table"), keyed(b"SHOP+ORDERS")).table
    assert ("TABLE_UNKNOWN", "$") == refused(dialect(topics=None), keyed(b"SHOP+ORDERS"))


@pytest.mark.parametrize("key", [None, b"", b"ORDERS", b"A+B+C", b"+ORDERS", b"SHOP+", b"\xff+T"])
def test_key_that_names_no_table(key: bytes | None) -> None:
    """Anything else is no name: the text is not taken apart by a guess."""
    assert ("TABLE_UNKNOWN", "$key") == refused(dialect(topics=None, message_key="table"), keyed(key))
