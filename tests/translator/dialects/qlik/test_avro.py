"""Avro in the Replicate envelope: metadata, rows and masks (§2, 3a and 5)."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from tests.translator.dialects.made import made
from tests.translator.dialects.qlik import messages
from tests.translator.dialects.qlik.avro import (
    COLUMNS,
    ENVELOPE,
    NAMESPACE,
    body,
    data_schema,
    enveloped,
    metadata,
    metadata_body,
    record,
    row,
    taught,
    written,
)
from tests.translator.dialects.qlik.messages import SCHEMA_ID, dialect, message, refusal
from translator.dialects.qlik import Qlik
from translator.dialects.qlik.row_schema import RowSchema
from translator.errors import MessageError
from translator.message import Learned, Needs, Setup, TableName, Writer

TOLD: dict[str, dict[str, Any]] = {"id": {"type": "INT4", "primaryKeyPosition": 1}, "name": {}}
SCHEMA = data_schema(COLUMNS)
ROW = {"id": 1, "name": "a"}
OLD = {"id": 1, "name": "b"}


def value(operation: str = "INSERT", data: Any = ROW, before: Any = None, **headers: Any) -> bytes:
    """Return a data message that references its schema by id."""
    return enveloped(written(SCHEMA, body(operation, data, before, **headers)))


# -- the envelope


@pytest.mark.requirement("qlik.detect.1")
def test_first_bytes() -> None:
    """The magic is not a field with a length but the first bytes of the value (§3a)."""
    assert value().startswith(bytes.fromhex("61744D5347044454"))


@pytest.mark.parametrize("cut", [5, 6, 8, 9, 10, 20, 43, 44, 45, 60])
def test_truncated(cut: int) -> None:
    """A truncated envelope is rejected."""
    assert "MALFORMED_AVRO" == refusal(taught(TOLD, SCHEMA), value()[:cut])[0]


@pytest.mark.requirement("qlik.decode.1")
def test_bytes_after_the_envelope() -> None:
    """Bytes after the envelope, or after the record in its message, are rejected."""
    assert ("MALFORMED_AVRO", "$") == refusal(taught(TOLD, SCHEMA), value() + b"\0")
    with pytest.raises(MessageError, match=r"^the envelope is followed by 3 unexpected bytes at \$$"):
        taught(TOLD, SCHEMA).decode(message(value() + b"\0\0\0"))
    longer = enveloped(written(SCHEMA, body("INSERT", ROW)) + b"\0")
    assert ("MALFORMED_AVRO", "$.message") == refusal(taught(TOLD, SCHEMA), longer)


@pytest.mark.requirement("qlik.detect.3")
@pytest.mark.parametrize(
    ("raw", "code", "path"),
    [
        (b"atMSG\x04MT\0\0\0\0", "UNKNOWN_TYPE", "$.type"),
        (b"atMSG\x04\xff\xff\0\0\0\0", "MALFORMED_AVRO", "$.type"),
        (b"atMSG\x04DT\x04", "MALFORMED_AVRO", "$.headers"),
        (b"atMSG\x04DT\0\x01", "MALFORMED_AVRO", "$.messageSchemaId"),
        (b"atMSG\x04DT\0\0\x02\x01", "MALFORMED_AVRO", "$.messageSchema"),
        (b"atMSG\x04DT\0\0\0\x03", "MALFORMED_AVRO", "$.message"),
        (b"atMSG\x04DT\x02\xff\xff\xff\xff\x0f", "MALFORMED_AVRO", "$.headers"),
        (b"atMSG\x04DT\x02\x03\x10\x02a\x02b\0\0\0\0", "MALFORMED_AVRO", "$.headers"),
        (b"atMSG\x04DT\0\0\0\0", "MISSING_FIELD", "$.messageSchemaId"),
        (b"atMSG\x04MD\0\0\0\0", "MISSING_FIELD", "$.messageSchema"),
        (b"atMSG\x04DT\0\x02\x82\x02" + b"F" * 129 + b"\0\0", "INVALID_FIELD", "$.messageSchemaId"),
        (b"atMSG\x04DT\0\x02\x14registry/5\0\0", "INVALID_FIELD", "$.messageSchemaId"),
        (b"atMSh\x04DT\0\0\0\0", "FRAMING", "$"),
    ],
)
def test_envelope(raw: bytes, code: str, path: str) -> None:
    """Every member of the envelope is validated, and an error states its place."""
    assert (code, path) == refusal(dialect(), raw)


@pytest.mark.parametrize("headers", [{}, {"app": "x", "more": "y"}])
def test_envelope_headers(headers: dict[str, str]) -> None:
    """Headers are for applications. Replicate sets them to null, and their content has no effect."""
    reader = taught(TOLD, SCHEMA)
    inner = written(SCHEMA, body("INSERT", ROW))
    assert row(reader, enveloped(inner)) == row(reader, enveloped(inner, headers=headers))


# -- metadata


@pytest.mark.requirement("qlik.metadata.1")
def test_metadata_is_that_of_json() -> None:
    """Avro and JSON metadata with the same content give the same document."""
    told = metadata_body(TOLD, SCHEMA)
    in_avro = dialect().decode(message(metadata(TOLD, SCHEMA)))
    in_json = dialect().decode(message(messages.enveloped(told, SCHEMA_ID, "MD")))
    assert isinstance(in_avro, Learned)
    assert isinstance(in_json, Learned)
    assert (in_json.key, in_json.document) == (in_avro.key, in_avro.document)


@pytest.mark.requirement("qlik.metadata.1")
@pytest.mark.parametrize("name", ["Lineage", "TableStructure", "TableColumns", "MetadataMessage", "id"])
def test_column_that_is_called_like_a_record(name: str) -> None:
    """A column's record has the column's name, which another record may already have (§2)."""
    columns = {name: {"type": "INT4", "primaryKeyPosition": 1}, "other": {}}
    schema = data_schema({name: "int", "other": "string"})
    reader = taught(columns, schema)
    read = row(reader, enveloped(written(schema, body("INSERT", {name: 7, "other": "x"}))))
    assert ({name: 7, "other": "x"}, (name,)) == (read.after, read.key_columns)


def test_metadata_truncated_or_damaged() -> None:
    """Metadata that does not match its schema's length teaches nothing."""
    whole = metadata(TOLD, SCHEMA)
    for end in range(5, len(whole), 7):
        assert "MALFORMED_AVRO" == refusal(dialect(), whole[:end])[0]


@pytest.mark.requirement("qlik.metadata.1")
def test_announcement() -> None:
    """A higher tableVersion is announced with the table's schema. The first one changes nothing."""
    first = dialect().decode(message(metadata(TOLD, SCHEMA)))
    raised = dialect().decode(message(metadata(TOLD, SCHEMA, tableVersion=2)))
    assert isinstance(first, Learned)
    assert isinstance(raised, Learned)
    assert () == first.announces
    (event,) = raised.announces
    assert ("schema", TableName(None, "S", "T"), None) == (event.kind, event.table, event.ts_commit_us)
    assert Writer("enveloped_avro", "certain", server="srv", task="tsk") == event.writer
    assert event.ddl is not None
    assert ("metadata", None, None, False) == (event.ddl.type, event.ddl.sql, event.ddl.tables, event.ddl.parsed)
    assert event.schema is not None
    assert ["id", "name"] == [column.name for column in event.schema.columns]
    assert row(taught(TOLD, SCHEMA), value()).schema == event.schema


# -- rows


@pytest.mark.parametrize(
    ("operation", "before", "images"),
    [
        ("REFRESH", None, (None, ROW)),
        ("INSERT", None, (None, ROW)),
        ("UPDATE", OLD, (OLD, ROW)),
        ("UPDATE", None, (None, ROW)),
        ("DELETE", None, (ROW, None)),
        ("DELETE", OLD, (OLD, None)),
    ],
)
def test_operations(operation: str, before: Any, images: Any) -> None:
    """Each operation has the same images as in JSON."""
    read = row(taught(TOLD, SCHEMA), value(operation, ROW, before))
    assert images == (read.before, read.after)
    assert (TableName(None, "S", "T"), ("id",)) == (read.table, read.key_columns)
    assert Writer("enveloped_avro", "certain", server="srv", task="tsk") == read.writer


@pytest.mark.requirement("qlik.headers.4")
def test_headers_of_2018() -> None:
    """Two headers were added later, and they can be absent."""
    schema = data_schema(COLUMNS, headers=7)
    short = {name: text for name, text in body("INSERT", ROW)["headers"].items() if "Event" not in name}
    read = row(taught(TOLD, schema), enveloped(written(schema, {**body("INSERT", ROW), "headers": short})))
    assert read.tx is not None
    assert ("60008", None, None) == (read.tx.id, read.tx.seq, read.tx.last)


@pytest.mark.requirement("qlik.metadata.2")
def test_waits_for_metadata() -> None:
    """Avro cannot be read without its schema, whatever the options say."""
    for reader in (dialect(), dialect(untyped="translate")):
        assert Needs(SCHEMA_ID) == reader.decode(message(value()))


def test_embedded_schema_is_preferred() -> None:
    """A message is read with its own schema. Its table and types come from the referenced metadata."""
    reader = taught(TOLD, data_schema({"id": "string"}))
    inner = written(SCHEMA, body("INSERT", ROW))
    read = row(reader, enveloped(inner, schema=SCHEMA))
    assert (ROW, TableName(None, "S", "T")) == (read.after, read.table)
    assert Needs(SCHEMA_ID) == dialect().decode(message(enveloped(inner, schema=SCHEMA)))


def test_broken_message_does_not_wait() -> None:
    """If the schema is known, a malformed message is rejected immediately."""
    assert "MALFORMED_AVRO" == refusal(dialect(), enveloped(b"\x01", schema=SCHEMA))[0]


@pytest.mark.parametrize("untyped", ["wait", "translate"])
def test_embedded_schema_without_metadata(untyped: str) -> None:
    """Without an id, or with unwanted metadata, the schema provides the types and the operator the table."""
    schema_id = SCHEMA_ID if untyped == "translate" else None
    read = row(
        dialect(untyped=untyped), enveloped(written(SCHEMA, body("INSERT", ROW)), schema_id=schema_id, schema=SCHEMA)
    )
    assert (TableName(None, "S", "T"), ROW, "none") == (read.table, read.after, read.key_kind)
    assert read.schema is not None
    assert ["int32", "string"] == [column.type for column in read.schema.columns]


def test_table_of_an_embedded_schema_by_namespace() -> None:
    """If no topic matches, the namespace provides the table."""
    schema = data_schema(COLUMNS, NAMESPACE)
    read = row(dialect(topics=None), enveloped(written(schema, body("INSERT", ROW)), schema_id=None, schema=schema))
    assert (TableName(None, "TSTDTA", "CINMAD"), "chips-qa") == (read.table, read.writer.task)


@pytest.mark.parametrize(
    "schema", ["{}", "nonsense", json.dumps({"type": "array", "items": "null"}), json.dumps(ENVELOPE), '"string"', ""]
)
def test_data_schema_that_is_none(schema: str) -> None:
    """JSON metadata has one too, so metadata with any is learned. Avro messages that need it are rejected."""
    reader = taught(TOLD, schema)
    assert refusal(reader, value())[0] in ("MALFORMED_AVRO", "UNSUPPORTED_SHAPE")


def test_metadata_without_data_schema() -> None:
    """Avro cannot be read without a data schema."""
    known: dict[str, object] = {}
    reader = dialect(known)
    told = metadata_body(TOLD, SCHEMA)
    del told["dataSchema"]
    learned = reader.decode(message(messages.enveloped(told, SCHEMA_ID, "MD")))
    assert isinstance(learned, Learned)
    known[learned.key] = reader.learn(learned.key, learned.document)
    assert ("MISSING_FIELD", "$.messageSchemaId") == refusal(reader, value())


def test_json_rows_of_avro_metadata() -> None:
    """Metadata is the same for both, so JSON rows can also reference it."""
    read = messages.change(taught(TOLD, SCHEMA), messages.enveloped(messages.bare("INSERT", ROW), SCHEMA_ID))
    assert ROW == read.after


# -- masks


@pytest.mark.requirement("qlik.masks.1")
@pytest.mark.parametrize("size", [1, 2, 3, 17])
@pytest.mark.parametrize("order", ["big", "little"])
def test_masks_of_any_length(size: int, order: Any) -> None:
    """A mask is bytes, by default in the order of the hex text."""
    columns = {f"c{n}": "string" for n in range(1, size * 8 + 1)}
    told = {name: {"ordinal": n} for n, name in enumerate(columns, 1)}
    schema = data_schema(columns)
    reader = wide(told, schema, avro_masks=order)
    change = 1 | 1 << (size * 8 - 1)
    captured = (1 << size * 8) - 1 & ~2
    cells = {name: None if name == "c2" else "x" for name in columns}
    masks = {"changeMask": change.to_bytes(size, order), "columnMask": captured.to_bytes(size, order)}
    read = row(reader, enveloped(written(schema, body("UPDATE", cells, None, **masks))))
    assert (["c1", f"c{size * 8}"], ["c2"], None) == (read.changed, read.unavailable, read.notes)


def wide(told: dict[str, Any], schema: Any, **options: Any) -> Qlik:
    """The dialect for tables with many columns, after their metadata."""
    known: dict[str, object] = {}
    reader = made(Qlik, Setup("src", lookup=known.get), {"topics": "S.T", **options})
    learned = reader.decode(message(metadata(told, schema)))
    assert isinstance(learned, Learned)
    known[learned.key] = reader.learn(learned.key, learned.document)
    return reader


@pytest.mark.requirement("qlik.metadata.5")
@pytest.mark.parametrize(
    ("declared", "cell", "found"),
    [
        ("string", "<a/>", "<a/>"),
        ("long", 5, "5"),
        ("double", 1.5, "1.5"),
        ("boolean", True, True),
        ({"type": "int", "logicalType": "date"}, 1, "1970-01-02"),
        ("bytes", b"x", None),
    ],
)
def test_column_of_an_unknown_type(declared: Any, cell: Any, found: Any) -> None:
    """If metadata does not say, the column has type unknown as in JSON, and the schema is not consulted."""
    schema = data_schema(COLUMNS | {"doc": declared})
    reader = taught({**TOLD, "doc": {"type": "XML"}}, schema)
    read = row(reader, enveloped(written(schema, body("INSERT", {**ROW, "doc": cell}))))
    assert (found, ["TYPE_UNKNOWN=doc"]) == ((read.after or {}).get("doc"), read.notes)
    assert [column.type for column in read.schema.columns if read.schema] == ["int32", "string", "unknown"]
    assert ([] if found is not None else ["doc"]) == [issue.col for issue in read.issues or ()]


@pytest.mark.requirement("qlik.masks.2")
def test_mask_of_the_other_order() -> None:
    """Bits above the highest ordinal reveal the wrong order. The message is rejected with the relevant option."""
    columns = {f"c{n}": "string" for n in range(1, 10)}
    schema = data_schema(columns)
    reader = taught({name: {} for name in columns}, schema)
    changed = enveloped(written(schema, body("UPDATE", dict.fromkeys(columns, "x"), columnMask=b"\xff\x01")))
    assert ("INVALID_FIELD", "$.message.headers.columnMask") == refusal(reader, changed)
    with pytest.raises(MessageError, match="avro_masks"):
        reader.decode(message(changed))


@pytest.mark.requirement("qlik.masks.2")
def test_bits_of_no_column_in_a_single_byte() -> None:
    """One byte has no order, so bits above the last column are ignored."""
    reader = taught(TOLD, SCHEMA)
    read = row(reader, value("UPDATE", changeMask=b"\xfe", columnMask=b"\xff"))
    assert (["name"], None, None) == (read.changed, read.unavailable, read.notes)
    assert "INVALID_FIELD" == refusal(reader, value("UPDATE", columnMask=b"\x01\xff"))[0]


@pytest.mark.requirement("qlik.masks.1")
def test_mask_of_no_bytes() -> None:
    """An empty mask is unknown, like an empty text."""
    read = row(taught(TOLD, SCHEMA), value("UPDATE", changeMask=b"", columnMask=b""))
    assert (None, None) == (read.changed, read.unavailable)


def test_fixed_mask() -> None:
    """A mask can be a fixed instead of bytes."""
    schema = json.loads(json.dumps(data_schema(COLUMNS)))
    for field in schema["fields"][2]["type"]["fields"]:
        if field["name"] == "columnMask":
            field["type"] = {"type": "fixed", "name": "Mask", "size": 1}
    read = row(
        taught(TOLD, schema), enveloped(written(schema, body("UPDATE", {"id": 1, "name": None}, columnMask=b"\1")))
    )
    assert ({"id": 1}, ["name"]) == (read.after, read.unavailable)


# -- headers of other types


@pytest.mark.parametrize(
    ("name", "kind", "cell", "code"),
    [
        ("operation", "bytes", b"INSERT", "UNKNOWN_OPERATION"),
        ("operation", ["null", "string"], None, "MISSING_FIELD"),
        ("operation", "int", 1, "INVALID_FIELD"),
        ("changeSequence", "double", 1.5, "INVALID_FIELD"),
        ("transactionId", record("Id", [("a", "int")]), {"a": 1}, "INVALID_FIELD"),
        ("transactionEventCounter", "double", 1.0, "INVALID_FIELD"),
        ("transactionLastEvent", "string", "true", "INVALID_FIELD"),
        ("columnMask", "long", 3, "INVALID_FIELD"),
    ],
)
def test_header_of_another_type(name: str, kind: Any, cell: Any, code: str) -> None:
    """A header of another type is rejected as in JSON."""
    schema = json.loads(json.dumps(data_schema(COLUMNS)))
    for field in schema["fields"][2]["type"]["fields"]:
        if field["name"] == name:
            field["type"] = kind
    told = body("INSERT", ROW)
    told["headers"][name] = cell
    expected = (code, f"$.message.headers.{name}")
    assert expected == refusal(taught(TOLD, schema), enveloped(written(schema, told)))


@pytest.mark.parametrize("name", ["data", "headers"])
def test_section_of_another_type(name: str) -> None:
    """A schema whose sections are not records is not a data schema."""
    schema = record("DataRecord", [(f["name"], "string" if f["name"] == name else f["type"]) for f in SCHEMA["fields"]])
    if name == "data":
        schema["fields"][1]["type"] = ["null", "string"]
    assert "UNSUPPORTED_SHAPE" == refusal(taught(TOLD, schema), value())[0]


@pytest.mark.parametrize(("kind", "cell"), [("bytes", b"S"), ("double", 1.5), ("long", 5)])
@pytest.mark.parametrize("place", ["schema", "table"])
def test_names_of_another_type(place: str, kind: Any, cell: Any) -> None:
    """A name must be text, in metadata and next to the sections of a row."""
    schema = record("DataRecord", [*((f["name"], f["type"]) for f in SCHEMA["fields"]), (place, kind)])
    if place == "schema":
        schema["fields"].append({"name": "table", "type": "string"})
    told = {**body("INSERT", ROW), "table": "T", place: cell}
    value = enveloped(written(schema, told), schema_id=None, schema=schema)
    assert ("INVALID_FIELD", f"$.message.{place}") == refusal(dialect(topics=None), value)


def test_timestamp_whose_schema_states_its_unit() -> None:
    """A number with a unit is a time. One outside the calendar remains a number."""
    schema = json.loads(json.dumps(data_schema(COLUMNS)))
    plain = json.loads(json.dumps(schema))
    for told, kind in ((schema, {"type": "long", "logicalType": "timestamp-millis"}), (plain, "long")):
        next(f for f in told["fields"][2]["type"]["fields"] if f["name"] == "timestamp")["type"] = kind
    reader = taught(TOLD, schema)
    reads = [row(reader, enveloped(written(plain, body("INSERT", ROW, timestamp=count)))) for count in (1500, 2**62)]
    assert [(1_500_000, None), (None, ["TIMESTAMP_UNREADABLE"])] == [(read.ts_commit_us, read.notes) for read in reads]


def test_untyped_avro_is_read_by_its_metadata() -> None:
    """What needs metadata is read with it, including types and table, whatever `untyped` says."""
    read = row(taught(TOLD, SCHEMA, untyped="translate", topics="other=X.Y"), value())
    assert (TableName(None, "S", "T"), ("id",), ROW) == (read.table, read.key_columns, read.after)


# -- caching


def test_schemas_that_came_with_messages_go_again() -> None:
    """The cached ones have at most 4 MiB of text, and nothing else keeps one, because schemas are large."""
    gc.collect()
    before = _row_schemas()
    reader, schema = dialect(topics=None), data_schema({"id": "int"}, NAMESPACE)
    inner, text = written(schema, body("INSERT", {"id": 1})), json.dumps({**schema, "doc": "x" * 8000})
    for number in range(1000):
        read = row(reader, enveloped(inner, None, text.replace("CINMAD", f"T{number}")))
        assert TableName(None, "TSTDTA", f"T{number}") == read.table
    gc.collect()
    assert (_row_schemas() - before) * len(text) <= 4 * 1024 * 1024


def _row_schemas() -> int:
    return sum(isinstance(thing, RowSchema) for thing in gc.get_objects())
