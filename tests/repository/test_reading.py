"""docs/reading.md: its Python runs, and reads the corpus; its Flink table names what there is.

Its Java is run in tests/translator/codecs/test_second_reader.py, its Spark in tests/spark_sink/test_second_reader.py.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import ChangeEvent, avro_schema, position
from spark_sink.model.event import Event
from spark_sink.model.fold import fold
from tests.repository.pages import ROOT, blocks, page, run, section
from tests.translator.codecs.corpus import CORPUS
from tests.translator.examples import UPDATE
from translator.codecs.avro import AvroCodec
from translator.codecs.json import JsonCodec

READING = page("reading.md")


@pytest.fixture(scope="module")
def python() -> dict[str, Any]:
    """What the snippets for Python define."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return run(*blocks(section(READING, "Python"), "python"))


def _value(codec: AvroCodec | JsonCodec, event: ChangeEvent) -> bytes:
    (record,) = codec.encode(event)
    return record.value or b""


class TestDecode:
    @pytest.mark.parametrize("name", CORPUS)
    def test_corpus(self, python: dict[str, Any], name: str) -> None:
        """Both forms of every event are read, to the same."""
        expected = msgspec.to_builtins(CORPUS[name])
        for image in ("key", "key_old", "before", "after"):
            expected[image] = expected[image] and json.loads(expected[image])
        for codec in (AvroCodec(), JsonCodec()):
            assert expected == python["decode"](_value(codec, CORPUS[name]))

    @pytest.mark.parametrize("value", [b"", b"\xc3\x01" + bytes(8), b"\x00\x00\x00\x00\x07\x02"])
    def test_another_form(self, python: dict[str, Any], value: bytes) -> None:
        """What it does not know it refuses."""
        with pytest.raises(ValueError, match="not version 1"):
            python["decode"](value)


KEYS = st.sampled_from(["1", "2", "3"])
CELLS = st.none() | st.integers(0, 9)
# Column c is gone from the table at last: an image without it can be full.
AFTERS = st.fixed_dictionaries({}, optional={"a": CELLS, "b": CELLS, "c": CELLS})


@st.composite
def _changes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Row events of one table in canonical order, from two scopes, some of them again."""
    made: list[dict[str, Any]] = []
    for n in range(draw(st.integers(1, 12))):
        if made and draw(st.integers(0, 3)) == 0:
            made.append(draw(st.sampled_from(made)))
            continue
        op, key, after = draw(st.sampled_from("rcuud")), draw(KEYS), draw(AFTERS)
        old = draw(st.none() | KEYS) if op == "u" else None
        made.append(
            {
                "id": str(n),
                "kind": "row",
                "op": op,
                "pos": position(n, 0),
                "pos_scope": draw(st.sampled_from(["x", "y"])),
                "key": {"id": key},
                "key_old": {"id": old} if old not in (None, key) else None,
                "after": None if op == "d" else after,
                "after_state": "full" if after.keys() >= {"a", "b"} else "partial",
            }
        )
    return made


def _by_the_sink(changes: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The rows that spark_sink makes of them, as it folds them in one batch."""
    events = [
        Event(
            n,
            change["op"],
            json.dumps(change["key"]),
            change["key_old"] and json.dumps(change["key_old"]),
            change["pos_scope"],
            change["pos"],
            json.dumps(change["after"]),
            change["after_state"] == "full",
            False,
            None,
            0,
        )
        for n, change in enumerate(changes)
    ]
    texts = {text for event in events for text in (event.key, event.key_old) if text is not None}
    rows = fold(events, {text: (text,) for text in texts}, {}, {}).rows
    return {
        key: row.content(lambda event: json.loads(event.after or "")).sent for (key,), row in rows.items() if row.exists
    }


class TestRules:
    @given(_changes())
    def test_as_the_sink(self, python: dict[str, Any], changes: list[dict[str, Any]]) -> None:
        """The rules as this page spells them and as spark_sink does lead to the same rows."""
        table = python["Table"]()
        for change in changes:
            table.apply(change)
        assert _by_the_sink(changes) == table.rows

    def test_whole_row(self, python: dict[str, Any]) -> None:
        """A full image is the whole row, of an update too: a column that it lacks is gone from the table."""
        row = {"kind": "row", "pos_scope": "s", "key": {"id": 1}, "key_old": None, "after_state": "full"}
        changes = [
            {**row, "id": "1", "op": "c", "pos": position(1, 0), "after": {"a": 1, "b": 1, "c": 1}},
            {**row, "id": "2", "op": "u", "pos": position(2, 0), "after": {"a": 2, "b": 2}},
        ]
        table = python["Table"]()
        for change in changes:
            table.apply(change)
        assert [{"a": 2, "b": 2}] == list(table.rows.values())
        assert _by_the_sink(changes) == table.rows

    def test_truncate(self, python: dict[str, Any]) -> None:
        """A truncate empties the table once: when it comes again, the rows that came after it stay."""
        table = python["Table"]()
        row = {"kind": "row", "id": "x", "pos_scope": "s", "key": {"id": 1}, "key_old": None, "after": {"id": 1}}
        row["after_state"] = "full"
        truncate = {"kind": "row", "op": "t", "pos": position(2, 0), "pos_scope": "s"}
        table.apply({**row, "op": "c", "pos": position(1, 0)})
        table.apply(truncate)
        assert {} == table.rows
        table.apply({**row, "op": "c", "pos": position(3, 0)})
        table.apply(truncate)
        table.apply({**row, "op": "c", "pos": position(1, 0)})
        assert [{"id": 1}] == list(table.rows.values())

    def test_what_it_does_not_know(self, python: dict[str, Any]) -> None:
        """Another kind is passed over, another operation is not, nor is a row without a key."""
        event = python["decode"](_value(JsonCodec(), UPDATE))
        table = python["Table"]()
        table.apply({**event, "kind": "later"})
        assert {} == table.rows
        with pytest.raises(KeyError, match="later"):
            table.apply({**event, "op": "later"})
        with pytest.raises(ValueError, match="no key is known"):
            table.apply({**event, "key": None})

    def test_a_key_that_holds_null(self, python: dict[str, Any]) -> None:
        """The row of the key that went is deleted; the row goes on without one, and is counted."""
        table = python["Table"]()
        row = {"kind": "row", "pos_scope": "s", "key_old": None, "after_state": "full", "notes": None}
        table.apply({**row, "op": "c", "pos": position(1, 0), "key": {"u": 5}, "after": {"u": 5}})
        gone = {**row, "op": "u", "key": None, "key_old": {"u": 5}, "after": {"u": None}, "notes": ["KEY_INCOMPLETE"]}
        table.apply({**gone, "pos": position(2, 0)})
        assert ({}, 1) == (table.rows, table.left_out)


FLINK = {"string": "STRING", "int": "INT", "long": "BIGINT", "boolean": "BOOLEAN", "image": "MAP<STRING, STRING>"}


def _flink(type_: Any) -> str:
    """The Flink type of an Avro type in the JSON form."""
    if isinstance(type_, list):
        return _flink(type_[1])
    if isinstance(type_, str):
        return FLINK[type_]
    if type_["type"] == "record":
        return f"ROW<{', '.join(map(_flink_column, type_['fields']))}>"
    if type_["type"] == "array":
        return f"ARRAY<{_flink(type_['items'])}>"
    return f"MAP<STRING, {_flink(type_['values'])}>"


def _flink_column(field: dict[str, Any]) -> str:
    image = field["name"] in ("key", "key_old", "before", "after")
    return f"`{field['name']}` {_flink('image' if image else field['type'])}"


def test_flink_columns() -> None:
    """The table for Flink has every field in order, each with the type that holds its JSON form."""
    (statement,) = blocks(section(READING, "Flink SQL"), "sql")
    columns = re.findall(r"^  (`.*?),?$", statement, re.MULTILINE)
    assert [_flink_column(field) for field in avro_schema(logical=False)["fields"]] == columns
