"""A DELETE whose row is only in the Kafka key (§7, 8 and 11)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.translator.dialects.qlik.messages import SCHEMA_ID, bare, dialect, enveloped, events, message, taught
from translator.dialects.qlik import Qlik
from translator.errors import MessageError
from translator.message import Changes, DeclaredTable, Message, Needs, RowChange, TableName

TOLD: dict[str, dict[str, Any]] = {
    "id": {"type": "INT4", "primaryKeyPosition": 1},
    "name": {},
    "raw": {"type": "BYTES"},
}


def deleted(key: bytes | None, data: Any = None, before: Any = None) -> Message:
    """Return a DELETE with that key."""
    value = enveloped(bare("DELETE", data, before, columnMask="07", changeMask="01"), SCHEMA_ID)
    return msgspec.structs.replace(message(value), key=key)


def row(reader: Qlik, record: Message) -> RowChange:
    """Return the only row change of a record."""
    outcome = reader.decode(record)
    assert isinstance(outcome, Changes)
    (only,) = outcome.changes
    assert isinstance(only, RowChange)
    return only


def refused(reader: Qlik, record: Message) -> tuple[str, str]:
    """Return the code and path of the error that a record raises."""
    with pytest.raises(MessageError) as caught:
        reader.decode(record)
    return caught.value.code.value, caught.value.path


@pytest.mark.requirement("qlik.rows.1")
@pytest.mark.parametrize("data", [None, {}, {"id": None, "name": None, "raw": None}])
@pytest.mark.parametrize("before", [None, {}])
def test_key_object(data: Any, before: Any) -> None:
    """A JSON object with the key columns identifies the row, with the columns' types."""
    read = row(taught(TOLD), deleted(b'{"id": "7", "raw": "00ff"}', data, before))
    assert ({"id": 7, "raw": "AP8="}, None, ("id",), "primary") == (
        read.before,
        read.after,
        read.key_columns,
        read.key_kind,
    )
    assert (["ROW_FROM_KEY"], None) == (read.notes, read.unavailable)


ROWS: dict[str, dict[str, Any]] = {
    "REFRESH": {"data": {"id": "7", "n": "1"}},
    "INSERT": {"data": {"id": "7", "n": "1"}},
    "UPDATE": {"data": {"id": "7", "n": "2"}, "before": {"id": "7", "n": "1"}},
    "DELETE": {"data": {"id": "7", "n": "2"}},
}


def carrying(operation: str, key: bytes | None, **images: Any) -> Message:
    """Return a message without metadata, with that Kafka key."""
    return msgspec.structs.replace(message(bare(operation, **(images or ROWS[operation]))), key=key)


@pytest.mark.parametrize("operation", ROWS)
def test_the_key_of_a_row(operation: str) -> None:
    """Every operation takes the key from the same Kafka key as a DELETE without a row. Otherwise a row inserted without
    a key would remain when the key is deleted.
    """
    (event,) = events(dialect(), carrying(operation, b'{"id": 7}'))
    assert ('{"id":"7"}', None, "primary", None) == (event.key, event.key_old, event.key_kind, event.notes)
    (deletion,) = events(dialect(), carrying("DELETE", b'{"id": "7"}', data=None))
    assert (event.key, event.key_kind) == (deletion.key, deletion.key_kind)


def test_a_key_of_several_columns_that_changes() -> None:
    """The values come from the images, because the Kafka key provides only column names."""
    images = {"data": {"b": "2", "a": "1"}, "before": {"b": "3", "a": "1"}}
    (event,) = events(dialect(), carrying("UPDATE", b'{"a": "1", "b": "2"}', **images))
    assert ('{"a":"1","b":"2"}', '{"a":"1","b":"3"}') == (event.key, event.key_old)


@pytest.mark.parametrize("operation", ROWS)
def test_the_key_of_a_row_in_the_schema(operation: str) -> None:
    """If the columns are declared without a key, or the metadata has none, the schema has it too."""
    columns = {"id": "int64", "n": "int32"}
    told = {"id": {"type": "INT8"}, "n": {"type": "INT4"}}
    declared, learned = dialect(tables=(DeclaredTable("S.T", columns=columns),)), taught(told)
    schemas = []
    for images in (ROWS[operation], {"data": None, "before": None}) if operation == "DELETE" else (ROWS[operation],):
        body = bare(operation, **images)
        for reader, value in ((declared, body), (learned, enveloped(body, SCHEMA_ID))):
            change = row(reader, msgspec.structs.replace(message(value), key=b'{"id": 7}'))
            assert change.schema is not None
            assert (("id",), ("id",), "primary") == (
                change.key_columns,
                change.schema.key_columns,
                change.schema.key_kind,
            )
            schemas.append(change.schema)
    assert {schema.id for schema in schemas[2:]} <= {schema.id for schema in schemas[:2]}


def test_what_is_told_goes_before_the_key() -> None:
    """The key of the metadata or of the operator takes precedence."""
    declared = dialect(tables=(DeclaredTable("S.T", key=("n",)),))
    assert (("n",), "configured") == (
        (found := row(declared, carrying("INSERT", b'{"id": 7}'))).key_columns,
        found.key_kind,
    )
    value = enveloped(bare("INSERT", {"id": "7", "name": "a", "raw": None}), SCHEMA_ID)
    assert ("id",) == row(taught(TOLD), msgspec.structs.replace(message(value), key=b'{"name": "a"}')).key_columns


@pytest.mark.parametrize("key", [b'{"id": 1, "other": 2}', b'{"schema": null, "payload": {"id": 7}}', b"{}"])
def test_a_key_of_other_columns(key: bytes) -> None:
    """It is not the key of this row, which continues without one."""
    (event,) = events(dialect(), carrying("INSERT", key))
    assert (None, "none", ["KEY_INCOMPLETE"]) == (event.key, event.key_kind, event.notes)


@pytest.mark.parametrize(
    "key", [None, b"", b"7", b"S+T", b"[7]", b'{"id": 7', b'{"id": 7, "id": 8}', b"{3F25-04E0}", b"\0"]
)
def test_a_key_that_names_no_columns(key: bytes | None) -> None:
    """The row is read without it."""
    (event,) = events(dialect(), carrying("INSERT", key))
    assert (None, "none", None) == (event.key, event.key_kind, event.notes)


def test_row_goes_before_the_key() -> None:
    """If the message has the row, the key is ignored."""
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
    """An object must have each key column once and not null, and only columns of the table."""
    assert code == refused(taught(TOLD), deleted(key))[0]


@pytest.mark.requirement("qlik.rows.1")
@pytest.mark.parametrize("key", [None, b"", b"7", b"S+T", b"7|8", b"\0\0\0\0\5\x0e", b"[7]", b'"7"'])
def test_key_that_is_no_object(key: bytes | None) -> None:
    """Text can be the name of the table, so it is not taken for the row. It is rejected without waiting."""
    assert ("MISSING_FIELD", "$.message") == refused(taught(TOLD), deleted(key))
    assert ("MISSING_FIELD", "$.message") == refused(dialect(), deleted(key))


def test_waits_for_metadata() -> None:
    """If the key may identify the row, its columns and types come from the metadata."""
    assert Needs(SCHEMA_ID) == dialect().decode(deleted(b'{"id": 7}'))


@pytest.mark.requirement("qlik.rows.1")
def test_text_of_the_key_column() -> None:
    """With `message_key: primary_key`, the text is the value of the only key column."""
    reader = dialect(tables=(DeclaredTable("S.T", key=("id",), columns={"id": "int32"}),), message_key="primary_key")
    record = msgspec.structs.replace(message(bare("DELETE")), key=b"7")
    assert ({"id": 7}, ["ROW_FROM_KEY"]) == (row(reader, record).before, row(reader, record).notes)
    assert "INVALID_FIELD" == refused(reader, msgspec.structs.replace(record, key=b"\xff"))[0]


def test_text_that_begins_as_an_object_does() -> None:
    """Identifiers can be in braces. What is not JSON is text if the operator says that keys are."""
    reader = dialect(tables=(DeclaredTable("S.T", key=("id",)),), message_key="primary_key")
    text = "{3F2504E0-4F89-11D3-9A0C-0305E82C3301}"
    assert {"id": text} == row(reader, msgspec.structs.replace(message(bare("DELETE")), key=text.encode())).before
    record = msgspec.structs.replace(message(bare("DELETE")), key=b'{"id": 7, "id": 8}')
    assert "INVALID_FIELD" == refused(reader, record)[0]


@pytest.mark.parametrize("key", [(), ("id", "name")])
def test_text_of_several_columns(key: tuple[str, ...]) -> None:
    """Text of several columns has no documented delimiter. Without a known key, its column is unknown."""
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
    """For other operations, the key is not the row."""
    record = msgspec.structs.replace(message(bare(operation)), key=b'{"id": 7}')
    assert ("MISSING_FIELD", "$.data") == refused(dialect(), record)


# -- the table by key


def keyed(key: bytes | None) -> Message:
    """Return an INSERT with that key."""
    return msgspec.structs.replace(message(bare("INSERT", {"id": 1})), key=key)


@pytest.mark.requirement("qlik.metadata.3")
def test_table_by_key() -> None:
    """With `message_key: table`, the text names the table if no topic does."""
    assert (
        TableName(None, "SHOP", "ORDERS") == row(dialect(topics=None, message_key="table"), keyed(b"SHOP+ORDERS")).table
    )
    assert TableName(None, "S", "T") == row(dialect(message_key="table"), keyed(b"SHOP+ORDERS")).table
    assert ("TABLE_UNKNOWN", "$") == refused(dialect(topics=None), keyed(b"SHOP+ORDERS"))


@pytest.mark.parametrize("key", [None, b"", b"ORDERS", b"A+B+C", b"+ORDERS", b"SHOP+", b"\xff+T"])
def test_key_that_names_no_table(key: bytes | None) -> None:
    """Other text is not a name and is not split by guessing."""
    assert ("TABLE_UNKNOWN", "$key") == refused(dialect(topics=None, message_key="table"), keyed(key))
