"""The stored schema text of a metadata message has everything needed to read data, and nothing that quotes values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.dialects.qlik.avro import data_schema
from tests.translator.dialects.qlik.messages import dialect, message, metadata
from translator.dialects._avro_schema import parse_schema
from translator.dialects.qlik.data_schema import reading_part
from translator.errors import MessageError
from translator.message import Learned, Limits

SECRET = "QZXJVKWY"
STRAY = {"default": SECRET, "doc": f"such as {SECRET}", "examples": [SECRET, {SECRET: 1}], "aliases": [SECRET]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FIXED = {"type": "fixed", "name": "F", "size": 4}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
COLUMNS: dict[str, Any] = {"id": "long", "pay": DECIMAL, "code": FIXED, "kind": ENUM, "tags": "string"}
SCHEMA = data_schema(COLUMNS, "com.attunity.queue.msg.task.S.T")


def read(text: str) -> object:
    """Return the type that a schema declares, or the reason why it declares none."""
    try:
        return parse_schema(text.encode(), Limits())
    except MessageError as error:
        return error.code, error.path


def strewn(node: Any) -> Any:
    """Return a schema with irrelevant members in each of its objects."""
    if isinstance(node, dict):
        return {**{name: strewn(part) for name, part in node.items()}, **STRAY}
    return [strewn(part) for part in node] if isinstance(node, list) else node


def test_what_data_are_read_by_stays() -> None:
    assert SCHEMA == json.loads(reading_part(json.dumps(SCHEMA)))


def test_all_else_goes() -> None:
    """Defaults, documentation, aliases and custom members are removed everywhere."""
    text = json.dumps(strewn(SCHEMA))
    assert text.count(SECRET) > 100
    assert SCHEMA == json.loads(reading_part(text))


@pytest.mark.parametrize("text", ["", SECRET, f'{{"a": "{SECRET}"', f'{{"doc":"{SECRET}","doc":1}}', "[" * 100_000])
def test_what_is_no_schema(text: str) -> None:
    """A text that is unreadable or ambiguous is not stored."""
    assert "" == reading_part(text)


@pytest.mark.parametrize("name", ["size", "precision", "symbols", "fields", "logicalType"])
def test_members_of_another_kind(name: str) -> None:
    """A value that is not a number, word or list of names where one is expected is not stored."""
    for stray in ({"x": SECRET}, [[SECRET]], 1.5, True):
        wrong = {**FIXED, **DECIMAL, **ENUM, name: stray}
        assert SECRET not in reading_part(json.dumps({**wrong, "name": "N"}))


NODES = st.deferred(lambda: ANY | RECORDS | st.lists(NODES, max_size=3))
ANY = st.sampled_from(["null", "int", "string", "bytes", "E", "nothing", 7, None, DECIMAL, FIXED, ENUM])
FIELDS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", ""])},
    optional={"type": NODES, "default": st.just(SECRET), "logicalType": st.sampled_from(["date", "decimal", "x"])},
)
RECORDS = st.fixed_dictionaries(
    {"type": st.just("record"), "name": st.sampled_from(["R", "S", "n.T"])},
    optional={"fields": st.lists(FIELDS | st.just(SECRET), max_size=3), "doc": st.just(SECRET)},
)


@given(NODES)
def test_read_alike(schema: Any) -> None:
    """With and without these members, schemas are the same type, or rejected at the same place."""
    text = json.dumps(schema)
    kept = reading_part(text)
    assert read(text) == read(kept)
    assert kept == reading_part(kept)


def test_documents_of_earlier_releases_say_the_same() -> None:
    """They are in the metadata topic with the whole text. The next publication does not contradict them."""
    told = metadata({"ID": {"type": "INT4"}})
    told["message"]["dataSchema"] = json.dumps(strewn(SCHEMA))
    reader = dialect()
    learned = reader.decode(message(told))
    assert isinstance(learned, Learned)
    assert SECRET.encode() not in learned.document
    earlier = json.loads(learned.document) | {"dataSchema": json.dumps(strewn(SCHEMA))}
    before: Any = reader.learn(learned.key, json.dumps(earlier).encode())
    now: Any = reader.learn(learned.key, learned.document)
    assert before.content == now.content
    assert before.row_schema.type == now.row_schema.type
