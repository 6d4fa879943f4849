"""Version 1 may grow by fields at its end, and readers of both sides go on: docs/envelope/versions.md."""

from __future__ import annotations

import io
import json
from typing import Any

import avro.io
import avro.schema
import msgspec
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

from cdc_core.envelope import avro_schema
from tests.translator.codecs.corpus import CORPUS

NOW = avro_schema(logical=False)
ADDED = {"name": "added_later", "type": ["null", "string"], "default": None}
LATER = {**NOW, "fields": [*NOW["fields"], ADDED]}


def _datum(schema: Any, event: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    avro.io.DatumWriter(_parsed(schema)).write(event, avro.io.BinaryEncoder(out))
    return out.getvalue()


def _read(datum: bytes, writer: Any, reader: Any) -> Any:
    decoder = avro.io.BinaryDecoder(io.BytesIO(datum))
    return avro.io.DatumReader(_parsed(writer), _parsed(reader)).read(decoder)


def _parsed(schema: Any) -> avro.schema.Schema:
    return avro.schema.parse(json.dumps(schema))


@pytest.mark.parametrize("name", ["u", "schema", "nothing but empty texts"])
def test_readers_go_on(name: str) -> None:
    """With the writer's schema, each release reads the other's output. The new field is null or ignored."""
    event = msgspec.to_builtins(CORPUS[name])
    later = {**event, "added_later": "x"}
    assert event == _read(_datum(LATER, later), LATER, NOW)
    assert {**event, "added_later": None} == _read(_datum(NOW, event), NOW, LATER)


@pytest.mark.parametrize("name", ["u", "schema", "nothing but empty texts"])
def test_later_datum_begins_with_this_one(name: str) -> None:
    """A reader without the writer's schema can stop after its own fields."""
    event = msgspec.to_builtins(CORPUS[name])
    assert _datum(LATER, {**event, "added_later": "x"}).startswith(_datum(NOW, event))
    assert event == _read(_datum(LATER, {**event, "added_later": "x"}), NOW, NOW)


def _compatible(reader: Any, writer: Any) -> bool:
    result = ReaderWriterCompatibilityChecker().get_compatibility(_parsed(reader), _parsed(writer))
    return bool(result.compatibility is SchemaCompatibilityType.compatible)


@pytest.mark.parametrize(
    ("added", "allowed"),
    [
        (ADDED, True),
        ({"name": "added_later", "type": "string"}, False),
    ],
    ids=["null by default", "required"],
)
def test_full_compatibility(added: dict[str, Any], allowed: bool) -> None:
    """As a registry set to FULL_TRANSITIVE requires, each can read the other. New fields need a default."""
    later = {**NOW, "fields": [*NOW["fields"], added]}
    assert allowed == (_compatible(NOW, later) and _compatible(later, NOW))
