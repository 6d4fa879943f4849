"""Qlik events from each layout, with masks of any length, metadata versions and keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.translator.dialects.made import made
from tests.translator.dialects.qlik import avro, messages
from tests.translator.dialects.qlik.avro import body, data_schema, framed, row, written
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
from translator.message import Learned, Limits, Setup
from translator.translation.translate import Events, Translator

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
    """Return a dialect with metadata, schemas, declared types, and a table for every topic."""
    known: dict[str, object] = {}
    tables = [messages.DeclaredTable("S.T", key=("id",), columns=TYPES)]
    reader = made(Qlik, Setup("src", tables=tuple(tables), lookup=known.get), {"topics": "S.T"})
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


@pytest.mark.requirement("qlik.rows.4", "qlik.test_inputs.1")
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
    """A change gives the same event in each layout, apart from the layout's name."""
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


@pytest.mark.requirement("qlik.masks.1")
@pytest.mark.parametrize("size", [1, 2, 3, 17])
@pytest.mark.parametrize("typed", [True, False])
def test_masks_of_any_length(size: int, typed: bool) -> None:
    """In JSON, a mask is text of any length, with or without a leading zero byte."""
    columns = {f"c{n}": "x" for n in range(1, size * 8 + 1)}
    captured, changed = (1 << size * 8) - 1 & ~2, 1 | 1 << (size * 8 - 1)
    cells = {**columns, "c2": None}
    for zeros in ("", "00"):
        masks = {"changeMask": f"{zeros}{changed:0{size * 2}X}", "columnMask": f"{zeros}{captured:0{size * 2}X}"}
        value = enveloped(bare("UPDATE", cells, **masks), SCHEMA_ID if typed else None)
        known: dict[str, object] = {}
        reader = made(Qlik, Setup("src", Limits(), lookup=known.get), {"topics": "S.T"})
        learned = reader.decode(message(messages.metadata({name: {} for name in columns})))
        assert isinstance(learned, Learned)
        known[learned.key] = reader.learn(learned.key, learned.document)
        read = change(reader, value)
        assert (["c1", f"c{size * 8}"], ["c2"]) == (read.changed, read.unavailable)
        assert (None if typed else ["MASK_ORDINALS_ASSUMED"]) == read.notes


@pytest.mark.requirement("qlik.metadata.2", "qlik.test_inputs.2")
def test_two_versions_interleaved() -> None:
    """Each row is read with its own metadata in any order, including old ids in replays."""
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


@pytest.mark.requirement("qlik.metadata.1")
def test_an_id_with_other_content() -> None:
    """The two documents differ, so the metadata topic can detect it. Each has its version and time."""
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


@pytest.mark.requirement("qlik.decode.3")
@pytest.mark.parametrize("member", ["magic2", "headers", "more"])
@pytest.mark.parametrize("value", [None, 1, "x", [], {"a": {"b": 1}}])
def test_unknown_members_are_ignored(member: str, value: Any) -> None:
    """This covers members of the envelope and of the message. The envelope's own headers are for applications."""
    plain = enveloped(bare("INSERT", {"id": 1}))
    assert change(dialect(), plain) == change(dialect(), {**plain, member: value})
    if member == "more":
        told = {**bare("INSERT", {"id": 1}), member: value}
        assert change(dialect(), plain) == change(dialect(), enveloped(told))


@pytest.mark.requirement("qlik.decode.3")
def test_numbers_are_exact() -> None:
    """No number is converted to a float."""
    text = '{"id":9007199254740993,"n":0.1234567890123456789012345678901234567890,"big":123456789012345678901234567890}'
    raw = f'{{"data":{text},"beforeData":null,"headers":{{"operation":"INSERT"}}}}'.encode()
    expected = ["9007199254740993", "0.1234567890123456789012345678901234567890", "123456789012345678901234567890"]
    assert expected == list((change(dialect(), raw).after or {}).values())


@pytest.mark.requirement("qlik.headers.5", "qlik.rows.5")
def test_full_load_then_a_change_of_the_same_key() -> None:
    """A row of a full load has no sequence and sorts before every change. Both identify the same row."""
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


@pytest.mark.requirement("qlik.rows.3")
def test_key_change() -> None:
    """An update with other key values in beforeData has both keys."""
    value = enveloped(bare("UPDATE", {**ROW, "id": 1234}, {**ROW, "id": 4321}), SCHEMA_ID)
    result = Translator("src", taught(TOLD), Limits()).translate(message(value))
    assert isinstance(result, Events)
    (event,) = result.events
    assert ('{"id":1234}', '{"id":4321}') == (event.key, event.key_old)
