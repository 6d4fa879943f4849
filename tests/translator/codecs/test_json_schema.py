"""The JSON Schema accepts what the codec writes and rejects everything that is not the envelope."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given

from cdc_core.envelope import VERSION, ChangeEvent, avro_schema
from tests.repository.pages import DOCS
from tests.translator.codecs.corpus import CORPUS
from tests.translator.examples import UPDATE
from tests.translator.strategies import events
from translator.codecs.json import JsonCodec
from translator.codecs.json_schema import json_schema, json_schema_text

VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def _form(event: ChangeEvent) -> dict[str, Any]:
    (record,) = JsonCodec().encode(event)
    return dict(json.loads(record.value or b""))


def _complaints(form: Any) -> list[str]:
    return [f"{error.json_path}: {error.validator}" for error in VALIDATOR.iter_errors(form)]


def test_file() -> None:
    """The committed file is the one that `python -m translator.codecs.json_schema` prints."""
    assert json_schema_text() == (DOCS / "envelope.schema.json").read_text(encoding="utf-8")


def test_is_a_schema() -> None:
    """The file is valid by its draft. Otherwise a misspelled keyword would be silently ignored."""
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert set(jsonschema.Draft202012Validator.VALIDATORS) | ANNOTATIONS >= _keywords(json_schema())


ANNOTATIONS = {"$schema", "title", "description", "examples"}


def _keywords(schema: dict[str, Any]) -> set[str]:
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    inner += [schema[name] for name in ("items", "additionalProperties") if name in schema]
    return set(schema).union(*map(_keywords, inner))


def test_fields() -> None:
    """It has all fields of the contract in order, each with its sentence."""
    properties = json_schema()["properties"]
    assert [(field["name"], field["doc"]) for field in avro_schema()["fields"]] == [
        (name, schema["description"]) for name, schema in properties.items()
    ]


@pytest.mark.parametrize("name", CORPUS)
def test_corpus(name: str) -> None:
    """Every event of the corpus is valid."""
    assert [] == _complaints(_form(CORPUS[name]))


@given(events())
def test_events(event: ChangeEvent) -> None:
    """Any event of this version that a release can write is valid."""
    assert [] == _complaints(_form(msgspec.structs.replace(event, v=VERSION)))


@pytest.mark.parametrize(
    "added",
    [
        {"added_later": {"x": [1]}},
        {"kind": "later", "op": "later", "key_kind": "later", "after_state": "later", "variant_basis": "later"},
        {"origin": {**msgspec.to_builtins(UPDATE.origin), "added_later": None}},
    ],
    ids=["field", "words", "nested field"],
)
def test_version_1_may_grow(added: dict[str, Any]) -> None:
    """Fields of a later release are allowed."""
    assert [] == _complaints(_form(UPDATE) | added)


@pytest.mark.parametrize("name", [field["name"] for field in avro_schema()["fields"]])
def test_missing(name: str) -> None:
    """Only nullable fields can be missing."""
    form = _form(UPDATE)
    del form[name]
    nullable = isinstance(next(f["type"] for f in avro_schema()["fields"] if f["name"] == name), list)
    assert ([] if nullable else ["$: required"]) == _complaints(form)


@pytest.mark.parametrize(
    ("field", "wrong", "place"),
    [
        ("v", 2, "$.v: const"),
        ("id", 7, "$.id: type"),
        ("kind", None, "$.kind: type"),
        ("op", 1, "$.op: anyOf"),
        ("ts_origin_us", None, "$.ts_origin_us: type"),
        ("ts_origin_us", 1.5, "$.ts_origin_us: type"),
        ("ts_origin_us", 2**63, "$.ts_origin_us: maximum"),
        ("ts_commit_us", "2023-11-14T22:13:20Z", "$.ts_commit_us: anyOf"),
        ("after", '{"id":8}', "$.after: anyOf"),
        ("after", {"id": {"nested": 1}}, "$.after: anyOf"),
        ("before", [], "$.before: anyOf"),
        ("key", {"id": [1]}, "$.key: anyOf"),
        ("changed", ["id", None], "$.changed: anyOf"),
        ("issues", [{"col": "born"}], "$.issues: anyOf"),
        ("tx", {"seq": 1}, "$.tx: anyOf"),
        ("ddl", {"type": "ALTER", "parsed": None}, "$.ddl: anyOf"),
        ("origin", None, "$.origin: type"),
        ("origin", {"topic": "t", "partition": 2**31, "offset": 0, "row": 0, "rows": 1}, "$.origin.partition: maximum"),
        ("origin", {"topic": "t", "partition": 0, "offset": 0, "row": 0}, "$.origin: required"),
        ("ext", {"rowid": 7}, "$.ext: anyOf"),
    ],
)
def test_wrong(field: str, wrong: Any, place: str) -> None:
    """A value with another type or out of range is rejected at its place."""
    assert [place] == _complaints(_form(UPDATE) | {field: wrong})


@pytest.mark.parametrize("form", [[], None, "{}", 1])
def test_not_an_object(form: Any) -> None:
    """An event must be an object."""
    assert ["$: type"] == _complaints(form)
