"""Qlik: which tests show each box of the checklist (§11); here those found nowhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.translator.dialects._checklist import Tests, boxes, exists
from tests.translator.dialects.qlik import avro, messages
from tests.translator.dialects.qlik.avro import body, data_schema, framed, registered, row, written
from tests.translator.dialects.qlik.messages import (
    SCHEMA_ID,
    SEQUENCE,
    bare,
    change,
    dialect,
    enveloped,
    message,
    taught,
)
from translator.dialects.qlik import Qlik
from translator.message import Learned, Limits, RowChange, Setup
from translator.translation.translate import Events, Translator

DETECT: Mapping[str, Tests] = {
    "by first bytes: atMSG, 00, {; else unknown framing; null or empty is a tombstone": (
        "dialects.qlik.test_frame::test_variants",
        "dialects.qlik.test_frame::test_blanks_before_json",
        "dialects.qlik.test_frame::test_no_layout",
        "dialects.qlik.test_avro::test_first_bytes",
        "dialects.qlik.test_registry::test_schema_of_the_registry",
        "dialects.qlik.test_decode::test_tombstone",
    ),
    "JSON: magic must be atMSG; the bare form needs headers and data or beforeData; the legacy format by name": (
        "dialects.qlik.test_frame::test_envelope",
        "dialects.qlik.test_frame::test_no_layout",
        "dialects.qlik.test_frame::test_refused_by_name",
        "dialects.qlik.test_sections::test_declared",
        "dialects.test_cases::test_case[qlik/legacy_flat]",
    ),
    "type: DT, MD, else unknown message type": (
        "dialects.qlik.test_frame::test_envelope",
        "dialects.qlik.test_avro::test_envelope",
    ),
}

METADATA: Mapping[str, Tests] = {
    "MD by schemaId: lineage, columns, dataSchema; the same content is the same document; other content is the newer "
    "document (choosing between them is the metadata topic's)": (
        "dialects.qlik.test_metadata::test_document_holds_what_is_needed",
        "dialects.qlik.test_metadata::test_same_message_same_bytes",
        "dialects.qlik.test_avro::test_metadata_is_that_of_json",
        "dialects.qlik.test_avro::test_column_that_is_called_like_a_record",
        "dialects.qlik.test_avro::test_announcement",
        "dialects.qlik.test_checklist::test_an_id_with_other_content",
        "dialects.test_cases::test_case[qlik/avro_metadata]",
        "dialects.test_cases::test_case[qlik/metadata_new_version]",
    ),
    "all ids are kept; unknown id: JSON untyped if configured, Avro needs it; then the runtime waits or gives up": (
        "dialects.qlik.test_checklist::test_two_versions_interleaved",
        "dialects.qlik.test_decode::test_waits_for_metadata",
        "dialects.qlik.test_avro::test_waits_for_metadata",
        "dialects.qlik.test_metadata::test_untyped_ignores_metadata",
        "translation.test_translate::TestDeadLetters::test_missing",
    ),
    "table identity: lineage, namespace, topic or message; none is TABLE_UNKNOWN": (
        "dialects.qlik.test_metadata::test_row_with_metadata",
        "dialects.qlik.test_registry::test_table_by_namespace",
        "dialects.qlik.test_registry::test_namespace_that_names_no_table",
        "dialects.qlik.test_decode::test_topics",
        "dialects.qlik.test_decode::test_table_in_message",
        "dialects.qlik.test_keys::test_table_by_key",
        "dialects.qlik.test_decode::test_table_unknown",
    ),
    "ordinals unique and from 1; gaps are legal": (
        "dialects.qlik.test_metadata::test_broken_column",
        "dialects.qlik.test_metadata::test_numbers_are_unique",
        "dialects.qlik.test_metadata::test_ordinals_of_metadata",
    ),
}

DECODE: Mapping[str, Tests] = {
    "Avro: no bytes after the datum; namespaces of any letters; schemas within limits of size and depth": (
        "dialects.test_avro_datum::test_bytes_after_the_record",
        "dialects.test_avro_schema::test_namespaces_of_any_letters",
        "dialects.test_avro_schema::test_hostile_schema",
        "dialects.test_avro_schema::test_no_collections",
        "dialects.qlik.test_avro::test_bytes_after_the_envelope",
        "dialects.test_cases::test_case[qlik/avro_bytes_after_the_record]",
        "dialects.test_cases::test_case[qlik/registry_schema_with_array]",
    ),
    "Confluent: a frame of five bytes; a writer schema with headers.operation, or its other name": (
        "dialects.qlik.test_registry::test_short_frame",
        "dialects.qlik.test_registry::test_schema_of_something_else",
        "dialects.qlik.test_sections::test_renamed_avro",
    ),
    "JSON: doubled members, NaN, bad UTF-8, non-objects are refused; exact numbers; unknown members are ignored (and "
    "not counted)": (
        "dialects.qlik.test_frame::test_member_named_twice",
        "dialects.qlik.test_frame::test_not_json",
        "dialects.qlik.test_frame::test_headers_are_an_object",
        "dialects.qlik.test_decode::test_sections_are_objects",
        "dialects.qlik.test_envelope_fields::test_unknown_headers_are_left_alone",
        "dialects.qlik.test_checklist::test_unknown_members_are_ignored",
        "dialects.qlik.test_checklist::test_numbers_are_exact",
    ),
    "custom format: names by option, separator _": (
        "dialects.qlik.test_sections::test_declared",
        "dialects.qlik.test_sections::test_flattened_headers",
        "dialects.qlik.test_sections::test_not_valid",
        "dialects.test_cases::test_case[qlik/flattened_headers]",
        "dialects.test_cases::test_case[qlik/renamed_sections]",
    ),
}

HEADERS: Mapping[str, Tests] = {
    "operation: required, text, of any case, one of four; READ by option": (
        "dialects.qlik.test_decode::test_operations",
        "dialects.qlik.test_decode::test_unknown_operation",
        "dialects.qlik.test_decode::test_operation_is_a_string",
        "dialects.qlik.test_options::test_read_as_refresh",
    ),
    "empty, null and missing are absent; changeSequence of 35 digits that begin with a time, else noted: with order "
    "arrival the offset orders": (
        "dialects.qlik.test_envelope_fields::test_full_load_headers",
        "dialects.qlik.test_envelope_fields::test_change_sequence",
        "dialects.qlik.test_envelope_fields::test_change_sequence_begins_with_a_time",
    ),
    "timestamp: optional, UTC unless it says otherwise, refused when it is no time; a number is noted by default, "
    "refused or taken for micros by option": (
        "dialects.qlik.test_envelope_fields::test_timestamp",
        "dialects.qlik.test_envelope_fields::test_timestamp_that_is_no_time",
        "dialects.qlik.test_envelope_fields::test_numeric_timestamp",
        "dialects.qlik.test_options::test_numeric_timestamp_of_micros",
        "dialects.qlik.test_options::test_numeric_timestamp_refused",
    ),
    "counter from 1 or absent, last event boolean or absent": (
        "dialects.qlik.test_envelope_fields::test_transaction",
        "dialects.qlik.test_envelope_fields::test_header_of_wrong_type",
        "dialects.qlik.test_avro::test_headers_of_2018",
    ),
    "identity: topic, partition and offset; changeSequence verbatim beside it, none for REFRESH": (
        "translation.test_translate::TestIdentity::test_row",
        "dialects.qlik.test_envelope_fields::test_change_sequence",
        "dialects.qlik.test_checklist::test_full_load_then_a_change_of_the_same_key",
    ),
}

ROWS: Mapping[str, Tests] = {
    "data must be a row; a DELETE has it in beforeData, data or the Kafka key": (
        "dialects.qlik.test_decode::test_row_is_required",
        "dialects.qlik.test_decode::test_delete",
        "dialects.qlik.test_decode::test_delete_without_row",
        "dialects.qlik.test_keys::test_key_object",
        "dialects.qlik.test_keys::test_key_that_is_no_object",
        "dialects.qlik.test_keys::test_text_of_the_key_column",
        "dialects.qlik.test_registry::test_row_in_the_key_alone",
        "dialects.test_cases::test_case[qlik/registry_delete_by_key]",
    ),
    "UPDATE without beforeData: before is unknown": ("dialects.qlik.test_decode::test_update_without_before",),
    "key change: the old key is given": (
        "dialects.qlik.test_checklist::test_key_change",
        "translation.test_translate::TestKey::test_change",
    ),
    "the envelope carries operation, table, task, sequence, times, transaction, images, columns, schema and layout": (
        "dialects.qlik.test_checklist::test_layouts_give_one_event",
        "dialects.test_cases::test_case[qlik/registry_update]",
        "dialects.test_cases::test_case[qlik/avro_update]",
    ),
    "REFRESH is a snapshot row without a sequence": (
        "dialects.qlik.test_checklist::test_full_load_then_a_change_of_the_same_key",
    ),
}

MASKS: Mapping[str, Tests] = {
    "hex text: 0x, any case, odd length, most significant first; null and empty are unknown; bytes in Avro": (
        "dialects.qlik.test_masks::test_mask_text",
        "dialects.qlik.test_masks::test_mask_that_is_not_hex",
        "dialects.qlik.test_masks::test_most_significant_byte_first",
        "dialects.qlik.test_checklist::test_masks_of_any_length",
        "dialects.qlik.test_avro::test_masks_of_any_length",
        "dialects.qlik.test_avro::test_mask_of_no_bytes",
    ),
    "bits above the highest ordinal are refused, and name the option for the other order": (
        "dialects.qlik.test_masks::test_mask_exceeds_the_columns",
        "dialects.qlik.test_avro::test_mask_of_the_other_order",
    ),
    "null outside of columnMask is absent; a value outside of it stays, and is noted": (
        "dialects.qlik.test_masks::test_column_not_captured",
        "dialects.qlik.test_masks::test_value_beside_a_clear_bit",
        "dialects.qlik.test_registry::test_masks_by_place",
    ),
    "changeMask 00 is a change of nothing and goes on; LOB columns: unknown": (
        "dialects.qlik.test_masks::test_column_not_captured",
        "dialects.qlik.test_masks::test_lob_has_no_bit",
    ),
    "changeMask against the images: a mismatch is noted, data stays": (
        "dialects.qlik.test_masks::test_change_without_its_bit",
        "dialects.qlik.test_masks::test_unchanged_column_with_its_bit",
    ),
}

VALUES: Mapping[str, Tests] = {
    "typed by metadata or Avro schema; what does not fit is an issue; raw where no type is known": (
        "dialects.qlik.test_values::test_types",
        "dialects.qlik.test_values::test_values_without_a_form",
        "dialects.qlik.test_checklist::test_types_of_avro",
        "dialects.qlik.test_checklist::test_types_of_metadata_in_avro",
        "dialects.qlik.test_checklist::test_avro_values_without_a_form",
        "dialects.qlik.test_registry::test_declared_types",
        "dialects.qlik.test_decode::test_insert",
    ),
    "never by the look of a string": ("dialects.qlik.test_checklist::test_no_type_by_the_look",),
}

INPUTS: Mapping[str, Tests] = {
    "each variant with each operation": (
        "dialects.qlik.test_checklist::test_layouts_give_one_event",
        "dialects.qlik.test_damage::test_the_values_are_valid",
    ),
    "metadata late, repeated, changed": (
        "dialects.qlik.test_decode::test_waits_for_metadata",
        "dialects.qlik.test_metadata::test_same_message_same_bytes",
        "dialects.qlik.test_checklist::test_two_versions_interleaved",
    ),
    "Avro cut at every byte, and seeded damage of each layout": (
        "dialects.qlik.test_damage::test_every_truncation_of_the_cases",
        "dialects.qlik.test_damage::test_every_truncation",
        "dialects.qlik.test_damage::test_seeded_mutations",
        "dialects.qlik.test_damage::test_mutated_schemas",
        "dialects.qlik.test_mutations::test_truncated",
    ),
    "wrong magic, type MT, odd hex, sequence of 34 or 36 digits, data as text, message null, no headers": (
        "dialects.qlik.test_frame::test_envelope",
        "dialects.qlik.test_masks::test_mask_text",
        "dialects.qlik.test_envelope_fields::test_change_sequence",
        "dialects.qlik.test_decode::test_sections_are_objects",
        "dialects.qlik.test_frame::test_headers_are_an_object",
    ),
}

_GROUPS = {
    "Detect": DETECT,
    "Metadata": METADATA,
    "Decode": DECODE,
    "Headers": HEADERS,
    "Rows": ROWS,
    "Masks": MASKS,
    "Values": VALUES,
    "Test inputs": INPUTS,
}
BOXES = boxes(_GROUPS)
"""Every box, in the order of §11, and the tests that show it."""


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_the_tests_of_a_box_exist(box: str) -> None:
    """The index names tests, and none that was renamed or removed."""
    assert BOXES[box]
    assert [] == [test for test in BOXES[box] if not exists(test)]


# -- parts of boxes that no other module shows

TOLD: dict[str, dict[str, Any]] = {
    "id": {"type": "INT4", "primaryKeyPosition": 1},
    "day": {"type": "DATE"},
    "n": {"type": "NUMERIC", "precision": 9, "scale": 2},
    "text": {},
}
KINDS: dict[str, Any] = {"id": "int", "day": "string", "n": "string", "text": "string"}
SCHEMA = data_schema(KINDS, "com.attunity.queue.msg.tsk.S.T")
ROW = {"id": 1, "day": "1993-11-25", "n": "0.50", "text": "a"}
OLD = {**ROW, "text": "b"}
TYPES = {"id": "int32", "day": "date", "n": "decimal(9,2)", "text": "string"}


def _knowing() -> Qlik:
    """A dialect with metadata, schemas, types of the operator, and a table for every topic."""
    known: dict[str, object] = {}
    tables = [messages.DeclaredTable("S.T", key=("id",), columns=TYPES)]
    reader = Qlik(Setup("src", tables=tuple(tables), lookup=known.get), {"topics": "S.T"})
    learned = reader.decode(message(avro.metadata(TOLD, SCHEMA)))
    assert isinstance(learned, Learned)
    known[learned.key] = reader.learn(learned.key, learned.document)
    known["registry/5"] = reader.learn("registry/5", json.dumps(SCHEMA).encode())
    return reader


def _in_each_layout(operation: str, data: Any, before: Any, masks: dict[str, str]) -> dict[str, bytes]:
    told = dict.fromkeys(("changeSequence", "timestamp", "transactionId"), "") if operation == "REFRESH" else {}
    headers: dict[str, Any] = {
        "changeSequence": SEQUENCE,
        "timestamp": "2023-09-11T03:23:25.000",
        "streamPosition": "x",
        "transactionId": "60008",
        "transactionEventCounter": None,
        "transactionLastEvent": None,
        **masks,
        **told,
    }
    plain = bare(operation, data, before, **headers)
    flat = {name: value for name, value in plain.items() if name != "headers"}
    in_bytes = {**headers, **{name: bytes.fromhex(text) for name, text in masks.items()}}
    datum = written(SCHEMA, body(operation, data, before, **{"changeMask": None, "columnMask": None, **in_bytes}))
    as_json = {
        "V1": enveloped(plain, SCHEMA_ID),
        "V2": plain,
        "V3": enveloped({**flat, **{f"headers_{name}": value for name, value in plain["headers"].items()}}),
    }
    return {
        **{name: json.dumps(value).encode() for name, value in as_json.items()},
        "V4": avro.enveloped(datum),
        "V4 with its schema": avro.enveloped(datum, schema_id=None, schema=SCHEMA),
        "V5": framed(5, datum),
    }


@pytest.mark.parametrize(
    ("operation", "before", "masks"),
    [
        ("REFRESH", None, {}),
        ("INSERT", None, {"changeMask": "0F", "columnMask": "0F"}),
        ("UPDATE", OLD, {"changeMask": "08", "columnMask": "0F"}),
        ("UPDATE", None, {"changeMask": "00", "columnMask": "0F"}),
        ("DELETE", None, {"changeMask": "01", "columnMask": "0F"}),
        ("DELETE", OLD, {"changeMask": "01", "columnMask": "0F"}),
    ],
)
def test_layouts_give_one_event(operation: str, before: Any, masks: dict[str, str]) -> None:
    """The same change in each of the layouts is the same event, but for the name of the layout."""
    reader = _knowing()
    reads = {name: row(reader, value) for name, value in _in_each_layout(operation, ROW, before, masks).items()}
    variants = ["enveloped_json", "bare_json", "custom_json", "enveloped_avro", "enveloped_avro", "confluent_avro"]
    assert variants == [read.writer.variant for read in reads.values()]
    told = [
        (r.op, r.table, r.before, r.after, r.changed, r.unavailable, r.issues, r.ts_commit_us, r.pos_native, r.tx)
        for r in reads.values()
    ]
    assert [told[0]] * len(told) == told
    assert [("id",)] * len(told) == [read.key_columns for read in reads.values()]


@pytest.mark.parametrize("size", [1, 2, 3, 17])
@pytest.mark.parametrize("typed", [True, False])
def test_masks_of_any_length(size: int, typed: bool) -> None:
    """In JSON a mask is text of any length, with a leading zero byte or without."""
    columns = {f"c{n}": "x" for n in range(1, size * 8 + 1)}
    captured, changed = (1 << size * 8) - 1 & ~2, 1 | 1 << (size * 8 - 1)
    cells = {**columns, "c2": None}
    for zeros in ("", "00"):
        masks = {"changeMask": f"{zeros}{changed:0{size * 2}X}", "columnMask": f"{zeros}{captured:0{size * 2}X}"}
        value = enveloped(bare("UPDATE", cells, **masks), SCHEMA_ID if typed else None)
        known: dict[str, object] = {}
        reader = Qlik(Setup("src", Limits(), lookup=known.get), {"topics": "S.T"})
        learned = reader.decode(message(messages.metadata({name: {} for name in columns})))
        assert isinstance(learned, Learned)
        known[learned.key] = reader.learn(learned.key, learned.document)
        read = change(reader, value)
        assert (["c1", f"c{size * 8}"], ["c2"]) == (read.changed, read.unavailable)
        assert (None if typed else ["MASK_ORDINALS_ASSUMED"]) == read.notes


def test_two_versions_interleaved() -> None:
    """Each row is read by the metadata that it names, in whatever order they come, old ids for replays included."""
    known: dict[str, object] = {}
    reader = dialect(known)
    versions = {"A" * 32: {"id": {"type": "INT4"}}, "B" * 32: {"id": {"type": "STRING"}, "more": {"type": "INT2"}}}
    for schema_id, columns in versions.items():
        told = messages.metadata(columns)
        told["messageSchemaId"] = told["message"]["schemaId"] = schema_id
        learned = reader.decode(message(told))
        assert isinstance(learned, Learned)
        known[learned.key] = reader.learn(learned.key, learned.document)
    old = enveloped(bare("INSERT", {"id": 1}), "A" * 32)
    new = enveloped(bare("INSERT", {"id": "1", "more": 2}), "B" * 32)
    afters = [change(reader, value).after for value in (new, old, new, old)]
    assert [{"id": "1", "more": 2}, {"id": 1}] * 2 == afters


def test_an_id_with_other_content() -> None:
    """The two documents differ, so that the metadata topic can tell; each tells its version and time."""
    first = dialect().decode(
        message(messages.metadata({"id": {}}, tableVersion=1, timestamp="2018-04-13T20:13:58.289"))
    )
    other = dialect().decode(
        message(messages.metadata({"no": {}}, tableVersion=2, timestamp="2018-04-13T20:13:59.000"))
    )
    assert isinstance(first, Learned)
    assert isinstance(other, Learned)
    assert first.key == other.key
    assert first.document != other.document
    assert b'"tableVersion":2,"timestamp":"2018-04-13T20:13:59.000"' in other.document


@pytest.mark.parametrize("member", ["magic2", "headers", "more"])
@pytest.mark.parametrize("value", [None, 1, "x", [], {"a": {"b": 1}}])
def test_unknown_members_are_ignored(member: str, value: Any) -> None:
    """Beside the envelope's members and beside the sections; the envelope's own headers are for applications."""
    plain = enveloped(bare("INSERT", {"id": 1}))
    assert change(dialect(), plain) == change(dialect(), {**plain, member: value})
    if member == "more":
        told = {**bare("INSERT", {"id": 1}), member: value}
        assert change(dialect(), plain) == change(dialect(), enveloped(told))


def test_numbers_are_exact() -> None:
    """No number goes through a float."""
    text = '{"id":9007199254740993,"n":0.1234567890123456789012345678901234567890,"big":123456789012345678901234567890}'
    raw = f'{{"data":{text},"beforeData":null,"headers":{{"operation":"INSERT"}}}}'.encode()
    expected = ["9007199254740993", "0.1234567890123456789012345678901234567890", "123456789012345678901234567890"]
    assert expected == list((change(dialect(), raw).after or {}).values())


def test_full_load_then_a_change_of_the_same_key() -> None:
    """A row of a full load has no sequence, so that it sorts before every change; both name the same row."""
    reader = taught(TOLD)
    translator = Translator("src", reader, Limits())
    load = enveloped(bare("REFRESH", ROW, changeSequence="", timestamp="", transactionId=""), SCHEMA_ID)
    update = enveloped(bare("UPDATE", ROW, None, changeSequence=SEQUENCE), SCHEMA_ID)
    events = []
    for value in (load, update):
        result = translator.translate(message(value))
        assert isinstance(result, Events)
        events += result.events
    assert [("r", None), ("u", SEQUENCE)] == [(event.op, event.pos_native) for event in events]
    assert ['{"id":1}'] * 2 == [event.key for event in events]


def test_key_change() -> None:
    """An update with other key values in beforeData: the event has both keys."""
    value = enveloped(bare("UPDATE", {**ROW, "id": 1234}, {**ROW, "id": 4321}), SCHEMA_ID)
    result = Translator("src", taught(TOLD), Limits()).translate(message(value))
    assert isinstance(result, Events)
    (event,) = result.events
    assert ('{"id":1234}', '{"id":4321}') == (event.key, event.key_old)


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A logical type."""
    return {"type": kind, "logicalType": name, **more}


DECIMAL = logical("bytes", "decimal", precision=9, scale=2)


@pytest.mark.parametrize(
    ("kind", "sent", "type_", "expected"),
    [
        ("boolean", b"\x01", "boolean", True),
        ("int", b"\x01", "int32", -1),
        ("long", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "int64", -(2**63)),
        ("float", bytes.fromhex("cdcc8c3f"), "float32", 1.1),
        ("float", bytes.fromhex("0000c07f"), "float32", "NaN"),
        ("double", bytes.fromhex("9a9999999999b93f"), "float64", 0.1),
        ("double", bytes.fromhex("000000000000f0ff"), "float64", "-Infinity"),
        ("bytes", b"\x04\x00\xff", "bytes", "AP8="),
        ("string", b"\x00", "string", ""),
        ({"type": "fixed", "name": "F", "size": 2}, b"\x00\xff", "bytes", "AP8="),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x02", "string", "B"),
        (DECIMAL, b"\x04\xfb\x2e", "decimal(9,2)", "-12.34"),
        ({"type": "fixed", "name": "F", "size": 2, **{k: v for k, v in DECIMAL.items() if k != "type"}},
         b"\x04\xd2", "decimal(9,2)", "12.34"),
        (logical("int", "date"), b"\x01", "date", "1969-12-31"),
        (logical("int", "time-millis"), b"\x02", "time", "00:00:00.001"),
        (logical("long", "time-micros"), b"\x02", "time", "00:00:00.000001"),
        (logical("long", "timestamp-millis"), b"\x02", "timestamp", "1970-01-01T00:00:00.001"),
        (logical("long", "timestamp-micros"), b"\x02", "timestamp", "1970-01-01T00:00:00.000001"),
        (logical("long", "timestamp-nanos"), b"\x02", "timestamp", "1970-01-01T00:00:00.000000001"),
        (logical("long", "local-timestamp-millis"), b"\x00", "timestamp", "1970-01-01T00:00:00"),
        (logical("long", "local-timestamp-micros"), b"\x00", "timestamp", "1970-01-01T00:00:00"),
        (logical("long", "local-timestamp-nanos"), b"\x00", "timestamp", "1970-01-01T00:00:00"),
        (logical("string", "uuid"), b"\x02a", "uuid", "a"),
    ],
)  # fmt: skip
def test_types_of_avro(kind: Any, sent: bytes, type_: str, expected: Any) -> None:
    """Each type of a writer schema is one of ours."""
    read = _one_cell(kind, sent)
    assert ({"c": expected}, None) == (read.after, read.issues)
    assert read.schema is not None
    assert [type_] == [column.type for column in read.schema.columns]


def _one_cell(kind: Any, sent: bytes, index: int = 1) -> RowChange:
    """A row of one column whose bytes are `sent`."""
    schema = data_schema({"c": kind}, "com.attunity.queue.msg.tsk.S.T")
    union = schema["fields"][0]["type"]["fields"][0]["type"]
    if isinstance(kind, list):
        union[1:] = kind
    rest = written(avro.record("Rest", [("h", schema["fields"][2]["type"])]), {"h": body("INSERT")["headers"]})
    return row(registered({5: schema}), framed(5, bytes([2 * index]) + sent + b"\0" + rest))


@pytest.mark.parametrize(
    ("kind", "sent", "code"),
    [
        (logical("int", "date"), b"\xfe\xff\xff\xff\x0f", "OUT_OF_RANGE"),
        (logical("int", "time-millis"), b"\x01", "INVALID_TIME"),
        (logical("bytes", "decimal", precision=2), b"\x04\x04\xd2", "PRECISION_EXCEEDED"),
        (DECIMAL, b"\x00", "NOT_A_NUMBER"),
        (["int", "string"], b"\x02", "NOT_A_SCALAR"),
        (avro.record("R", [("a", "int")]), b"\x02", "NOT_A_SCALAR"),
    ],
)
def test_avro_values_without_a_form(kind: Any, sent: bytes, code: str) -> None:
    """The column is left out and reported; the row goes on."""
    read = _one_cell(kind, sent)
    assert ({}, [code]) == (read.after, [issue.code for issue in read.issues or ()])


@pytest.mark.parametrize(
    ("told", "kind", "cell", "type_", "expected"),
    [
        ({"type": "DATE"}, "string", "1993-11-25", "date", "1993-11-25"),
        ({"type": "DATE"}, logical("int", "date"), 8729, "date", "1993-11-25"),
        ({"type": "TIME"}, "string", "01:02:03", "time", "01:02:03"),
        ({"type": "TIME"}, logical("int", "time-millis"), 1, "time", "00:00:00.001"),
        ({"type": "DATETIME"}, "string", "2023-03-21 14:34:21.000000", "timestamp", "2023-03-21T14:34:21.000000"),
        ({"type": "DATETIME"}, logical("long", "timestamp-micros"), 1, "timestamp", "1970-01-01T00:00:00.000001"),
        ({"type": "NUMERIC", "precision": 9, "scale": 2}, "string", "12.5", "decimal(9,2)", "12.50"),
        ({"type": "NUMERIC", "precision": 9, "scale": 2}, DECIMAL, b"\x04\xd2", "decimal(9,2)", "12.34"),
        ({"type": "NUMERIC", "precision": 9, "scale": 3}, DECIMAL, b"\x04\xd2", "decimal(9,3)", "12.340"),
        ({"type": "NUMERIC"}, DECIMAL, b"\x04\xd2", "decimal", "12.34"),
        ({"type": "INT1"}, "int", -128, "int8", -128),
        ({"type": "INT2"}, "int", 32767, "int16", 32767),
        ({"type": "INT4"}, "int", 1, "int32", 1),
        ({"type": "INT8"}, "long", 2**62, "int64", 2**62),
        ({"type": "UINT1"}, "int", 255, "uint8", 255),
        ({"type": "UINT2"}, "long", 65535, "uint16", 65535),
        ({"type": "UINT4"}, "long", 2**32 - 1, "uint32", 2**32 - 1),
        ({"type": "UINT8"}, "string", "18446744073709551615", "uint64", "18446744073709551615"),
        ({"type": "UINT8"}, logical("bytes", "decimal", precision=20), b"\x00" + b"\xff" * 8, "uint64",
         "18446744073709551615"),
        ({"type": "REAL4"}, "float", 0.5, "float32", 0.5),
        ({"type": "REAL8"}, "double", 0.1, "float64", 0.1),
        ({"type": "BYTES"}, "bytes", b"\x00\xff", "bytes", "AP8="),
        ({"type": "BLOB"}, "string", "00FF", "bytes", "AP8="),
        ({"type": "CLOB"}, "string", "x", "string", "x"),
        ({"type": "WSTRING"}, "string", "ü", "string", "ü"),
        ({"type": "BOOLEAN"}, "boolean", True, "boolean", True),
    ],
)  # fmt: skip
def test_types_of_metadata_in_avro(told: dict[str, Any], kind: Any, cell: Any, type_: str, expected: Any) -> None:
    """With metadata the type is Replicate's, and the writer schema says how it is spelled: logical types off or on."""
    plain = kind["type"] if isinstance(kind, dict) else kind
    reader = avro.taught({"c": told}, data_schema({"c": kind}))
    read = row(reader, avro.enveloped(written(data_schema({"c": plain}), body("INSERT", {"c": cell}))))
    assert ({"c": expected}, None) == (read.after, read.issues)
    assert read.schema is not None
    assert [type_] == [column.type for column in read.schema.columns]


@pytest.mark.parametrize(
    ("told", "kind", "cell"),
    [
        ({"type": "INT1"}, "int", 128),
        ({"type": "STRING"}, "bytes", b"text"),
        ({"type": "DATE"}, "int", 8729),
        ({"type": "BYTES"}, "string", "0"),
        ({"type": "NUMERIC", "precision": 3, "scale": 2}, "string", "12.34"),
    ],
)
def test_metadata_that_avro_contradicts(told: dict[str, Any], kind: Any, cell: Any) -> None:
    """A value that is none of its type is an issue: nothing is made to fit."""
    schema = data_schema({"c": kind})
    read = row(avro.taught({"c": told}, schema), avro.enveloped(written(schema, body("INSERT", {"c": cell}))))
    assert ({}, 1) == (read.after, len(read.issues or ()))


@pytest.mark.parametrize("text", ["1", "1.50", "true", "1993-11-25", "00FF", "null", ""])
def test_no_type_by_the_look(text: str) -> None:
    """A string of no declared type stays what it is, in JSON and in Avro."""
    assert {"c": text} == change(dialect(), bare("INSERT", {"c": text})).after
    schema = data_schema({"c": "string"}, "com.attunity.queue.msg.tsk.S.T")
    assert {"c": text} == row(registered({5: schema}), framed(5, written(schema, body("INSERT", {"c": text})))).after
