"""Avro in Confluent's frame: registry schemas, names by namespace, and key records (§3b)."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.envelope import Column
from tests.translator.dialects.qlik.avro import (
    COLUMNS,
    NAMESPACE,
    body,
    data_schema,
    framed,
    key_schema,
    record,
    record_of,
    registered,
    row,
    written,
)
from tests.translator.dialects.qlik.messages import refusal
from translator.dialects.qlik import Qlik
from translator.errors import MessageError
from translator.message import DeclaredTable, Needs, RowChange, TableName, Writer

SCHEMA = data_schema(COLUMNS, NAMESPACE)
KEY = key_schema({"id": "int"})
ROW = {"id": 1, "name": "a"}
OLD = {"id": 1, "name": "b"}
TABLE = TableName(None, "TSTDTA", "CINMAD")
ONE_COLUMN = record("Data", [("a", "int")])


def value(operation: str = "INSERT", data: Any = ROW, before: Any = None, **headers: Any) -> bytes:
    """Return a data message of schema 5."""
    return framed(5, written(SCHEMA, body(operation, data, before, **headers)))


def known(schema: Any = SCHEMA, **options: Any) -> Qlik:
    """The dialect that knows schema 5 and the key schema 6."""
    return registered({5: schema, 6: KEY}, **options)


def code_of(reader: Qlik, raw: bytes, key: bytes | None = None) -> str:
    """Return the code of the error that a record raises."""
    with pytest.raises(MessageError) as caught:
        reader.decode(record_of(raw, key))
    return caught.value.code.value


# -- the frame


@pytest.mark.requirement("qlik.decode.2")
@pytest.mark.parametrize("raw", [b"\0", b"\0\0\0\0"])
def test_short_frame(raw: bytes) -> None:
    """A frame has five bytes."""
    assert ("FRAMING", "$") == refusal(known(), raw)


@pytest.mark.requirement("qlik.detect.1")
def test_schema_of_the_registry() -> None:
    """An unknown schema is requested by its big-endian number."""
    assert Needs("registry/258", 258) == known().decode(record_of(b"\0\0\0\1\2"))


def test_datum() -> None:
    """Only the record follows the frame."""
    assert ("MALFORMED_AVRO", "$.data.id") == refusal(known(), b"\0\0\0\0\5")
    assert ("MALFORMED_AVRO", "$") == refusal(known(), value() + b"\0")
    for end in range(5, len(value())):
        assert "MALFORMED_AVRO" == refusal(known(), value()[:end])[0]


@pytest.mark.requirement("qlik.decode.2")
@pytest.mark.parametrize(
    "schema",
    [
        b"",
        b'syntax = "proto3";',
        b'{"type":"object","properties":{}}',
        {"type": "array", "items": "null"},
        "string",
        KEY,
        record("DataRecord", [("data", "int"), ("headers", record("Headers", [("operation", "string")]))]),
        record("DataRecord", [("data", ONE_COLUMN)]),
        record(
            "DataRecord", [("data", record("Data", [("a", "int")])), ("headers", record("Headers", [("op", "int")]))]
        ),
    ],
)
def test_schema_of_something_else(schema: Any) -> None:
    """An invalid schema, or one that is not for data records, rejects its messages by number and stops nothing."""
    reader = known(schema)
    with pytest.raises(MessageError, match="schema 5 of the registry"):
        reader.decode(record_of(value()))
    assert code_of(reader, value()) in ("MALFORMED_AVRO", "UNSUPPORTED_SHAPE")


# -- rows


@pytest.mark.parametrize(
    ("operation", "before", "op", "images"),
    [
        ("REFRESH", None, "r", (None, ROW)),
        ("INSERT", None, "c", (None, ROW)),
        ("UPDATE", OLD, "u", (OLD, ROW)),
        ("UPDATE", None, "u", (None, ROW)),
        ("DELETE", None, "d", (ROW, None)),
        ("DELETE", OLD, "d", (OLD, None)),
    ],
)
def test_operations(operation: str, before: Any, op: str, images: Any) -> None:
    """Each operation has the same images as in JSON."""
    read = row(known(), value(operation, ROW, before))
    assert (op, *images) == (read.op, read.before, read.after)
    assert Writer("confluent_avro", "certain", task="chips-qa") == read.writer


def test_schema_of_the_table() -> None:
    """The writer schema lists all columns. All of them are unions, so nullability is unknown."""
    schema = data_schema({"id": "int", "at": {"type": "long", "logicalType": "timestamp-micros"}}, NAMESPACE)
    read = row(registered({5: schema}), framed(5, written(schema, body("INSERT", {"id": 1, "at": None}))))
    assert read.schema is not None
    assert (
        Column("id", "int32", native="int"),
        Column("at", "timestamp", native="long timestamp-micros"),
    ) == read.schema.columns


def test_nullable_data() -> None:
    """If a schema allows null data, a delete has its row only in beforeData."""
    inner = record("Data", [("id", ["null", "int"])])
    schema = record("DataRecord", [("data", ["null", inner]), ("beforeData", ["null", "Data"]), *_headers()])
    reader = registered({5: schema}, topics="S.T")
    read = row(reader, framed(5, written(schema, {"data": None, "beforeData": {"id": 7}, **_head("DELETE")})))
    assert ({"id": 7}, None) == (read.before, read.after)


def test_no_before_image() -> None:
    """A task without before images has no beforeData."""
    schema = record("DataRecord", [("data", record("Data", [("id", ["null", "int"])])), *_headers()])
    reader = registered({5: schema}, topics="S.T")
    read = row(reader, framed(5, written(schema, {"data": {"id": 7}, **_head("UPDATE")})))
    assert (None, {"id": 7}) == (read.before, read.after)


def _headers() -> list[tuple[str, Any]]:
    return [(field["name"], field["type"]) for field in SCHEMA["fields"] if field["name"] == "headers"]


def _head(operation: str) -> dict[str, Any]:
    return {"headers": body(operation)["headers"]}


@pytest.mark.requirement("qlik.values.1")
def test_declared_types() -> None:
    """A task without logical types sends dates as text, and the operator can declare them."""
    schema = data_schema({"id": "int", "day": "string", "n": "string", "raw": "string"}, NAMESPACE)
    types = {"id": "int32", "day": "date", "n": "decimal(5,2)", "raw": "bytes"}
    reader = registered({5: schema}, (DeclaredTable("TSTDTA.*", columns=types),))
    cells = {"id": 1, "day": "1993-11-25", "n": "1.5", "raw": "00FF"}
    read = row(reader, framed(5, written(schema, body("INSERT", cells))))
    assert {"id": 1, "day": "1993-11-25", "n": "1.50", "raw": "AP8="} == read.after
    assert read.schema is not None
    assert [*types.values()] == [column.type for column in read.schema.columns]


def test_column_that_is_not_declared() -> None:
    """The writer schema knows all columns, including undeclared ones."""
    reader = known(tables=(DeclaredTable("*", columns={"name": "string"}),))
    read = row(reader, value())
    assert read.schema is not None
    assert (["int32", "string"], None) == ([column.type for column in read.schema.columns], read.notes)


# -- the table of a message


@pytest.mark.requirement("qlik.metadata.3")
@pytest.mark.parametrize(
    ("namespace", "table", "task", "notes"),
    [
        ("com.attunity.queue.msg.chips-qa.TSTDTA.CINMAD", TABLE, "chips-qa", None),
        ("com.attunity.queue.msg.loan.main", TableName(None, "loan", "main"), None, ["TABLE_ASSUMED"]),
        ("com.attunity.queue.msg.orders", TableName(None, None, "orders"), None, None),
    ],
)
def test_table_by_namespace(namespace: str, table: TableName, task: str | None, notes: Any) -> None:
    """The namespace has task, schema and table, or some of them (§3b)."""
    schema = data_schema(COLUMNS, namespace)
    read = row(registered({5: schema}), framed(5, written(schema, body("INSERT", ROW))))
    assert (table, task, notes) == (read.table, read.writer.task, read.notes)


@pytest.mark.requirement("qlik.metadata.3")
@pytest.mark.parametrize(
    "namespace",
    [
        "com.attunity.queue.msg",
        "com.attunity.queue.msg.",
        "com.attunity.queue.msg.a.b.c.d",
        "com.attunity.queue.msg.a..c",
        "org.example.loan",
        None,
    ],
)
def test_namespace_that_names_no_table(namespace: str | None) -> None:
    """With more than three segments or none, their meaning is unknown, but a topic can provide the table."""
    schema = data_schema(COLUMNS, namespace)
    raw = framed(5, written(schema, body("INSERT", ROW)))
    assert "TABLE_UNKNOWN" == code_of(registered({5: schema}), raw)
    assert TableName(None, "S", "T") == row(registered({5: schema}, topics="S.T"), raw).table


def test_topics_go_before_the_namespace() -> None:
    """The operator's setting for a topic overrides the namespace."""
    assert TableName(None, "S", "T") == row(known(topics="S.T"), value()).table
    assert TABLE == row(known(topics="other=S.T"), value()).table


# -- keys


def framed_key(cells: Any, schema: Any = KEY) -> bytes:
    """Return a key of schema 6."""
    return framed(6, written(schema, cells))


def test_key_by_record() -> None:
    """The fields of an Avro key are the table's primary key."""
    read = row(known(), value(), framed_key({"id": 1}))
    assert (("id",), "primary") == (read.key_columns, read.key_kind)
    assert read.schema is not None
    assert ("id",) == read.schema.key_columns


def test_key_by_declaration() -> None:
    """A declared key makes the lookup unnecessary."""
    reader = registered({5: SCHEMA}, (DeclaredTable("TSTDTA.CINMAD", key=("name",)),))
    read = row(reader, value(), framed_key({"id": 1}))
    assert (("name",), "configured") == (read.key_columns, read.key_kind)


def test_schema_of_the_key_is_needed() -> None:
    """Otherwise it would be random whether an event has its key."""
    assert Needs("registry/6", 6) == registered({5: SCHEMA}).decode(record_of(value(), framed_key({"id": 1})))


@pytest.mark.parametrize("key", [None, b"", b"1", b"TSTDTA+CINMAD", b"\0\0"])
def test_key_of_another_kind(key: bytes | None) -> None:
    """Text provides no columns."""
    read = row(known(), value(), key)
    assert ((), "none") == (read.key_columns, read.key_kind)


def test_key_of_columns_that_the_row_does_not_have() -> None:
    """Another key record is not the key of the table."""
    other = key_schema({"elsewhere": "int"})
    reader = registered({5: SCHEMA, 6: other})
    read = row(reader, value(), framed_key({"elsewhere": 1}, other))
    assert ((), "none") == (read.key_columns, read.key_kind)


def test_schema_of_the_key_that_is_no_record() -> None:
    """An unreadable key schema rejects the message, because a key must not depend on luck."""
    reader = registered({5: SCHEMA, 6: b"nonsense"})
    assert "MALFORMED_AVRO" == code_of(reader, value(), framed(6, b"\x02"))


@pytest.mark.requirement("qlik.rows.1")
def test_row_in_the_key_alone() -> None:
    """A delete with a null row or a row of nulls is for the row in the key."""
    for cells in ({"id": None, "name": None}, ROW):
        read = row(known(), value("DELETE", cells, columnMask=b"\1"), framed_key({"id": 1}))
        expected: Any = ({"id": 1}, ["ROW_FROM_KEY"]) if cells is not ROW else (ROW, read.notes)
        assert expected == (read.before, read.notes)
        assert (("id",), "primary") == (read.key_columns, read.key_kind)


def test_row_in_the_key_with_a_declared_key() -> None:
    """The key record must have the columns of the declared key."""
    tables = (DeclaredTable("*", key=("name",)),)
    reader = registered({5: SCHEMA, 6: KEY}, tables)
    assert "MISSING_FIELD" == code_of(reader, value("DELETE", dict.fromkeys(ROW)), framed_key({"id": 1}))
    fitting = key_schema({"name": "string"})
    reader = registered({5: SCHEMA, 6: fitting}, tables)
    read = row(reader, value("DELETE", dict.fromkeys(ROW)), framed_key({"name": "a"}, fitting))
    assert ({"name": "a"}, "configured") == (read.before, read.key_kind)


def test_damaged_key_of_a_delete() -> None:
    """A key that does not match its schema identifies no row."""
    assert "MALFORMED_AVRO" == code_of(known(), value("DELETE", dict.fromkeys(ROW)), framed(6, b"\x02\x02"))


@pytest.mark.requirement("qlik.masks.3")
def test_masks_by_place() -> None:
    """Without metadata, a column's ordinal is its position in the schema, and that is noted."""
    read = row(known(), value("UPDATE", {"id": 1, "name": None}, changeMask=b"\1", columnMask=b"\1"))
    assert (["id"], ["name"], ["MASK_ORDINALS_ASSUMED"]) == (read.changed, read.unavailable, read.notes)


def test_same_event_every_time() -> None:
    """The cache between messages has no effect on events."""
    reader = known()
    reads: list[RowChange] = [row(reader, value(), framed_key({"id": 1})) for _ in range(3)]
    assert reads[0] == reads[1] == reads[2] == row(known(), value(), framed_key({"id": 1}))


def test_rows_of_different_types() -> None:
    """Normally both images are of one record. With two, a column with two types has none."""
    schema = data_schema(COLUMNS, NAMESPACE)
    schema["fields"][1]["type"] = ["null", record("Before", [("id", "int"), ("name", ["null", "int"])])]
    old = framed(5, written(schema, body("UPDATE", ROW, {"id": 1, "name": 5})))
    assert ("UNSUPPORTED_SHAPE", "$") == refusal(known(schema), old)
    schema["fields"][1]["type"] = ["null", record("Before", [("name", ["string", "null"]), ("gone", "int")])]
    read = row(known(schema), framed(5, written(schema, body("UPDATE", ROW, {"name": "b", "gone": 7}))))
    assert ({"name": "b", "gone": 7}, ROW) == (read.before, read.after)


@pytest.mark.parametrize("declared", [(), (DeclaredTable("TSTDTA.CINMAD", key=("ID",)),)])
def test_key_of_other_columns(declared: tuple[DeclaredTable, ...]) -> None:
    """A key that the row lacks is no key, with a note."""
    reader = registered({5: SCHEMA, 6: key_schema({"ID": "int"})}, tables=declared)
    read = row(reader, value(), framed(6, b"\2"))
    assert ((), "none", ["KEY_INCOMPLETE"]) == (read.key_columns, read.key_kind, read.notes)


def test_key_that_is_no_record() -> None:
    """The reason distinguishes the schema of the key from that of the value."""
    with pytest.raises(MessageError, match="schema 6 of the Kafka key: the schema has type string"):
        registered({5: SCHEMA, 6: "string"}).decode(record_of(value(), framed(6, b"\2a")))
