"""Updates that change the key are translated natively, with both keys and, in a projection, as two events."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from tests.translator.dialects.dts_avro.composer import encode, fields, integer, record
from tests.translator.native import needs_extension
from tests.translator.native.qlik_mutants import enveloped
from tests.translator.native.test_equality import agree, opened_path, registered
from tests.translator.native.test_qlik import at
from translator.codecs import Codec, build
from translator.codecs.avro import AvroCodec
from translator.codecs.debezium import DebeziumCodec, Options
from translator.dialects import build as build_dialect
from translator.message import DeclaredTable, Dialect, Message, Setup

pytestmark = needs_extension

Row: TypeAlias = dict[str, Any]

KEYED = (DeclaredTable("*", key=("a", "b"), columns={"a": "int32", "b": "int32", "c": "int32"}),)


def _canal(old: Row, new: Row, *, sparse: bool) -> bytes:
    """Return an update of canal. A sparse `old` has only the changed columns."""
    text = {name: None if value is None else str(value) for name, value in new.items()}
    was = {name: None if value is None else str(value) for name, value in old.items()}
    body = {
        "data": [text],
        "old": [{name: value for name, value in was.items() if not sparse or value != text[name]}],
        "mysqlType": dict.fromkeys(new, "int"),
        "pkNames": ["a", "b"],
        "database": "d",
        "table": "t",
        "type": "UPDATE",
        "es": 1_700_000_000_000,
        "ts": 1_700_000_000_123,
        "id": 7,
    }
    return json.dumps(body, separators=(",", ":")).encode()


def _shareplex(old: Row, new: Row) -> bytes:
    changed = {name: value for name, value in new.items() if value != old[name]}
    body = {"meta": {"op": "upd", "table": "S.T"}, "data": changed, "key": old}
    return json.dumps(body, separators=(",", ":")).encode()


def _qlik(old: Row, new: Row) -> bytes:
    headers = {"operation": "UPDATE", "changeSequence": "1" * 35, "timestamp": "2026-01-05T08:00:09.000"}
    return json.dumps(enveloped({"data": new, "beforeData": old, "headers": headers}, None)).encode()


def _dts_avro(old: Row, new: Row) -> bytes:
    images = [[None if value is None else integer(value) for value in row.values()] for row in (old, new)]
    keyed = {"pk_uk_info": '{"PRIMARY":["a","b"]}'}
    sent = record("UPDATE", fields=fields(a=3, b=3, c=3), beforeImages=images[0], afterImages=images[1], tags=keyed)
    return encode(sent, "v3")


WRITERS: Mapping[str, tuple[Dialect, Callable[[Row, Row], bytes]]] = {
    "canal": (build_dialect("canal", Setup("s"), {"profile": "oss"}), lambda old, new: _canal(old, new, sparse=True)),
    "canal full": (
        build_dialect("canal", Setup("s"), {"profile": "oss"}),
        lambda old, new: _canal(old, new, sparse=False),
    ),
    "canal ticdc": (
        build_dialect("canal", Setup("s"), {"profile": "ticdc"}),
        lambda old, new: _canal(old, new, sparse=False),
    ),
    "shareplex": (build_dialect("shareplex", Setup("s", tables=KEYED), {"preset": "quest"}), _shareplex),
    "dts_avro": (build_dialect("dts_avro", Setup("s"), {}), _dts_avro),
    "qlik": (build_dialect("qlik", Setup("s", tables=KEYED), {"topics": "S.T"}), _qlik),
}
OUTPUTS: Mapping[str, tuple[Codec, ...]] = {
    "canonical topic": (AvroCodec(),),
    "debezium": (AvroCodec(), DebeziumCodec(), DebeziumCodec(Options(schema_block=True, tombstones=True))),
    "json": (build("json", {}), build("upsert", {})),
    "debezium_avro": (AvroCodec(), registered("debezium_avro", tombstones=True)),
}
OLD: Row = {"a": 1, "b": 2, "c": 3}
CHANGES: Mapping[str, tuple[Row, Row]] = {
    "one column": (OLD, {**OLD, "b": 5}),
    "all key columns": (OLD, {**OLD, "a": 4, "b": 5}),
    "key and row": (OLD, {**OLD, "a": 4, "c": 9}),
    "every column": (OLD, {"a": 4, "b": 5, "c": 9}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_changed_key_is_taken(writer: str, outputs: str, change: str) -> None:
    dialect, written_by = WRITERS[writer]
    translator, path = opened_path(dialect, codecs=OUTPUTS[outputs])
    assert agree(translator, path, at(5, written_by(*CHANGES[change])), OUTPUTS[outputs]) == "taken"


@pytest.mark.parametrize("name", ["avro", "json"])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_key_change_in_two_events_is_left_to_the_plain_path(writer: str, name: str) -> None:
    dialect, written_by = WRITERS[writer]
    codecs = (build(name, {"key_change": "two_events"}),)
    translator, path = opened_path(dialect, codecs=codecs)
    assert agree(translator, path, at(5, written_by(*CHANGES["one column"])), codecs) == "projection"


@pytest.mark.parametrize("change", [(OLD, {**OLD, "a": None}), ({**OLD, "a": None}, OLD)], ids=["loses", "gains"])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_key_with_null_is_left_to_the_plain_path(writer: str, change: tuple[Row, Row]) -> None:
    dialect, written_by = WRITERS[writer]
    translator, path = opened_path(dialect)
    assert agree(translator, path, at(5, written_by(*change))) == "key"


@pytest.mark.parametrize(("value", "became"), [(False, "taken"), ("x", "projection")])
def test_a_key_that_changes_its_type_is_left_to_the_plain_path_by_avro(value: object, became: str) -> None:
    untyped = (DeclaredTable("*", key=("a",), columns={"a": "unknown", "c": "int32"}),)
    dialect = build_dialect("shareplex", Setup("s", tables=untyped), {"preset": "quest"})
    codecs = OUTPUTS["debezium_avro"]
    translator, path = opened_path(dialect, codecs=codecs)
    assert agree(translator, path, at(5, _shareplex({"a": True, "c": 3}, {"a": value, "c": 3})), codecs) == became


def test_another_spelling_of_the_same_value_is_not_a_change() -> None:
    """canal lists the column, but both rows have the same key."""
    translator, path = opened_path(WRITERS["canal"][0])
    message = at(5, _canal({**OLD, "a": "01"}, OLD, sparse=True))
    assert agree(translator, path, message) == "taken"
    (taken,) = path.take([message])
    assert not isinstance(taken, str)
    assert b"PK_CHANGED" not in taken.outputs[0][0].value


def test_zeros_with_different_signs_are_left_to_the_plain_path() -> None:
    """They are equal as numbers but not as texts."""
    dialect = WRITERS["canal"][0]
    translator, path = opened_path(dialect)
    value = _canal({**OLD, "a": "-0.0"}, {**OLD, "a": "0.0"}, sparse=True).replace(b'"a":"int"', b'"a":"double"')
    assert agree(translator, path, at(5, value)) == "cell"


def test_the_rows_of_a_message_change_keys_on_their_own() -> None:
    """Of three rows in a message, only the second changes its key."""
    translator, path = opened_path(WRITERS["canal"][0], codecs=OUTPUTS["debezium"])
    body = json.loads(_canal(OLD, {**OLD, "c": 8}, sparse=True))
    body["data"] = [{"a": str(n), "b": "2", "c": "8"} for n in range(3)]
    body["old"] = [{"c": "3"}, {"b": "7"}, {"c": "1"}]
    message = Message("raw", 0, 5, 1, None, json.dumps(body).encode())
    assert agree(translator, path, message, OUTPUTS["debezium"]) == "taken"
    (taken,) = path.take([message])
    assert not isinstance(taken, str)
    assert [3, 4, 5] == [len(records) for records in taken.outputs]
