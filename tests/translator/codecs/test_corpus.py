"""The corpus covers every field and branch of the schema, every listed word and every limit of a type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec
import pytest

from cdc_core.envelope import KEY_KINDS, KINDS, OPERATIONS, STATES, VARIANT_BASES, ChangeEvent, avro_schema
from tests.translator.codecs.corpus import CORPUS, FIRST_MICRO, INT_MAX, INT_MIN, LAST_MICRO, LONG_MAX, LONG_MIN

Sighting: TypeAlias = tuple[str, str]
"""A place in the schema (`tx.seq`, `issues[]`) and what it contains: a branch, a size or a limit of the type."""

SIZES = {0: "empty", 1: "one"}
INT_EDGES = {INT_MIN: "least", -1: "-1", 0: "0", INT_MAX: "greatest"}
LONG_EDGES = {LONG_MIN: "least", -1: "-1", 0: "0", LONG_MAX: "greatest"}
TIME_EDGES = {**LONG_EDGES, FIRST_MICRO: "year 1", LAST_MICRO: "year 9999"}


def _size(value: Any) -> str:
    return SIZES.get(len(value), "many")


def _text(value: str) -> Iterator[str]:
    if not value:
        yield "empty"
    if value.isascii():
        yield "ASCII"
    if any(ord(character) > 0xFFFF for character in value):
        yield "beyond U+FFFF"


def _seen(type_: Any, value: Any, path: str) -> Iterator[Sighting]:
    """Return what a value covers of a type."""
    if isinstance(type_, list):
        yield path, "null" if value is None else "not null"
        if value is not None:
            yield from _seen(type_[1], value, path)
        return
    name = type_["type"] if isinstance(type_, dict) else type_
    if name == "record":
        for field in type_["fields"]:
            yield from _seen(field["type"], value[field["name"]], f"{path}.{field['name']}".lstrip("."))
    elif name in ("array", "map"):
        yield path, _size(value)
        for item in value.values() if name == "map" else value:
            yield from _seen(type_.get("items") or type_["values"], item, f"{path}[]")
    elif name == "string":
        yield from ((path, found) for found in _text(value))
    else:
        yield path, str(_edges(type_).get(value, "other"))


def _edges(type_: Any) -> dict[Any, str]:
    if isinstance(type_, dict):
        return TIME_EDGES
    return {"int": INT_EDGES, "long": LONG_EDGES, "boolean": {True: "true", False: "false"}}[type_]


def _wanted(type_: Any, path: str) -> Iterator[Sighting]:
    """Return what the values must cover of a type."""
    if isinstance(type_, list):
        yield from ((path, branch) for branch in ("null", "not null"))
        yield from _wanted(type_[1], path)
        return
    name = type_["type"] if isinstance(type_, dict) else type_
    if name == "record":
        for field in type_["fields"]:
            yield from _wanted(field["type"], f"{path}.{field['name']}".lstrip("."))
    elif name in ("array", "map"):
        yield from ((path, size) for size in (*SIZES.values(), "many"))
        yield from _wanted(type_.get("items") or type_["values"], f"{path}[]")
    elif name == "string":
        yield path, "ASCII"
    else:
        yield from ((path, edge) for edge in _edges(type_).values() if path != "v")


def _all_seen(events: Iterable[ChangeEvent]) -> set[Sighting]:
    return {sighting for event in events for sighting in _seen(avro_schema(), msgspec.to_builtins(event), "")}


def _missing(events: Iterable[ChangeEvent]) -> set[Sighting]:
    return set(_wanted(avro_schema(), "")) - _all_seen(events)


def test_every_branch() -> None:
    """Each union has null and a value, each list and map 0, 1 and many items, and each number its limits."""
    assert set() == _missing(CORPUS.values())


def test_the_walk_sees_what_is_missing() -> None:
    """If an event is removed from the corpus, the check reports what is missing."""
    without = {name: event for name, event in CORPUS.items() if name != "greatest numbers"}
    greatest = {(f"origin.{name}", "greatest") for name in ("partition", "offset", "row", "rows")}
    assert {*greatest, ("tx.seq", "greatest"), ("tx.size", "greatest"), ("tx.last", "true")} == _missing(
        without.values()
    )
    assert {("ext", "many"), ("ddl.sql", "null"), ("issues[].raw", "null"), ("ts_commit_us", "null")} < _missing(
        [CORPUS["u"]]
    )


def test_texts() -> None:
    """The texts of the source have all UTF-8 lengths, and some are empty."""
    texts = {path for path, what in _wanted(avro_schema(), "") if what == "ASCII"}
    ours = {"kind", "op", "dialect", "variant", "variant_basis", "dbms", "task", "pos", "pos_scope", "schema_id"}
    ours |= {"key_kind", "before_state", "after_state"}
    seen = _all_seen(CORPUS.values())
    assert set() == {path for path in texts - ours if (path, "beyond U+FFFF") not in seen}
    assert {"id", "op", "task", "tx.id", "ddl.sql", "ddl.tables[]", "unavailable[]", "ext[]"} <= {
        path for path, what in seen if what == "empty"
    }


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("kind", KINDS),
        ("op", OPERATIONS),
        ("before_state", STATES),
        ("after_state", STATES),
        ("key_kind", KEY_KINDS),
        ("variant_basis", VARIANT_BASES),
    ],
)
def test_words(field: str, words: tuple[str, ...]) -> None:
    """Every word of each closed list appears."""
    assert set(words) <= {getattr(event, field) for event in CORPUS.values()}


def test_names_say_one_thing() -> None:
    """No two names stand for the same event."""
    times = Counter(repr(event) for event in CORPUS.values())
    assert len(CORPUS) == len(times)
