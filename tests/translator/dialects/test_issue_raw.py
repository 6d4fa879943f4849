"""`issues[].raw` is exactly the text that was sent, in any kind of cell (docs/envelope.md)."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import Issue
from tests.translator.dialects.canal import messages as canal
from tests.translator.dialects.made import made
from tests.translator.dialects.qlik import messages as qlik
from tests.translator.dialects.shareplex import messages as shareplex
from tests.translator.strategies import TEXT
from translator.dialects._json import parse_sequence
from translator.dialects._source_text import SentJson
from translator.dialects.qlik import Qlik
from translator.message import Changes, DeclaredTable, Limits, Message, RowChange, Setup
from translator.values.scalar import raw_text

CELLS = {
    "object": '{"a" : [1, 2.50], "\\u0062":"\\u00e9 \\" }"}',
    "array": "[ ]",
    "number": "1e5",
    "large number": "1.50E+400",
    "negative zero": "-0.0",
    "boolean": "true",
    "integer": "120",
}
"""Cells of a date column, which can hold none of them."""
NATIVE = [text for name, text in CELLS.items() if name not in ("object", "array")]


def issues(change: RowChange) -> dict[str, str | None]:
    return {issue.col: issue.raw for issue in change.issues or ()}


@pytest.mark.parametrize("text", CELLS.values(), ids=CELLS)
def test_qlik(text: str) -> None:
    """This covers data and beforeData, next to similar cells."""
    tables = (DeclaredTable("S.T", (), {"id": "int64", "day": "date", "same": "decimal"}),)
    value = (
        '{ "data": {"id": 1, "same": 1E5, "day" : @ }, "beforeData": {"id":1,"same":1e5,"day":[@, 7]},'
        ' "headers": {"operation": "UPDATE"}}'
    )
    read = qlik.change(qlik.dialect(tables=tables), value.replace("@", text).encode())
    assert [Issue("day", "NOT_TEXT", f"[{text}, 7]"), Issue("day", "NOT_TEXT", text)] == read.issues


def test_qlik_with_flattened_sections() -> None:
    """The members of a section can be at the root with a prefix."""
    value = b'{"data_id": 1, "data_a": {"x":  1.0}, "beforeData_a":null, "headers_operation": "INSERT"}'
    assert {"a": '{"x":  1.0}'} == issues(qlik.change(qlik.dialect(), value))


def test_qlik_key() -> None:
    """A row identified by the Kafka key has the key's text."""
    tables = (DeclaredTable("S.T", ("id",), {"id": "int64", "day": "date"}),)
    value = json.dumps(qlik.bare("DELETE")).encode()
    outcome = qlik.dialect(tables=tables).decode(Message("t", 0, 0, 0, b'{"id": 1, "day":1E+2 }', value))
    assert isinstance(outcome, Changes)
    (change,) = outcome.changes
    assert isinstance(change, RowChange)
    assert {"day": "1E+2"} == issues(change)


@pytest.mark.parametrize("text", NATIVE)
def test_shareplex(text: str) -> None:
    """This covers the first and second object of a value, in `data` and in `key`."""
    table = DeclaredTable("A.T", ("ID",), {"ID": "int64", "D": "date", "E": "date"})
    one = '{"meta":{"op":"upd","table":"A.T"}, "data":{"ID":1,"D":@}, "key":{"ID":1,"E": @}}'.replace("@", text)
    made = shareplex.changes(shareplex.dialect(table), f"{one}\n{one}".encode())
    assert [{"D": text, "E": text}] * 2 == [issues(change) for change in made if isinstance(change, RowChange)]


@pytest.mark.parametrize("text", CELLS.values(), ids=CELLS)
def test_canal(text: str) -> None:
    """This covers `data` and `old` in each message of a record."""
    columns = {"id": "int64", "day": "date"}
    reader = canal.canal(DeclaredTable("s.t", ("id",), columns), profile="flink_cdc", newline_batches=True)
    body = '{"data":[{"id":1,"day":null},{"id":2,"day":@}],"type":"INSERT","database":"s","table":"t"}'
    body = body.replace("@", text)
    again = body.replace("INSERT", "DELETE").replace("null", f" {text}")
    outcome = reader.decode(canal.message(f"{body}\n{again}".encode()))
    assert isinstance(outcome, Changes)
    told = [issues(change) for change in outcome.changes if isinstance(change, RowChange)]
    assert [{}, *[{"day": text}] * 3] == told


@pytest.mark.parametrize("plainly", [True, False])
def test_text_is_told_as_it_was_sent(plainly: bool) -> None:
    """It is not the converter's intermediate form: a BINARY(4) is padded with zeros before it is read."""
    body = canal.update(data=[{"id": "7", "b": "€a"}], old=[{}], mysqlType={"id": "bigint(20)", "b": "binary(4)"})
    value = json.dumps(body, separators=None if plainly else (",", ":"), ensure_ascii=False).encode()
    outcome = canal.canal().decode(canal.message(value))
    assert isinstance(outcome, Changes)
    (change,) = outcome.changes
    assert isinstance(change, RowChange)
    assert {"b": "€a"} == issues(change)


def test_bounded() -> None:
    """The text is truncated after `limits.issue_raw_chars` characters, not bytes."""
    reader = made(Qlik, Setup("src", Limits(issue_raw_chars=4)), {"topics": "S.T"})
    value = '{"data":{"a":["ééé"]},"headers":{"operation":"INSERT"}}'.encode()
    assert {"a": '["éé'} == issues(qlik.change(reader, value))


def test_a_row_with_half_a_character() -> None:
    """Another parser reads such a message, and the text of its cells is the same."""
    value = b'{"data":{"a":"\\ud800","b":[1.0 ,"\\u00e9"]},"headers":{"operation":"INSERT"}}'
    assert {"a": "\\ud800", "b": '[1.0 ,"\\u00e9"]'} == issues(qlik.change(qlik.dialect(), value))


def test_where_values_stand() -> None:
    """Every number with a point, object and array in a text is found, among similar names and strings."""
    text = '\ufeff {"a:[": "}{\\"[", "\\\\" : [ [], {} , -0.10, "1.5,", {"x":1e1}],"n":null,"z":{"":2.0 }} [3.5]'
    value = text.encode()
    parsed = parse_sequence(value, Limits())
    sent = SentJson(value, parsed)
    first, second = parsed
    found = [first["\\"], *first["\\"][:3], first["\\"][4], first["\\"][4]["x"], first["z"], first["z"][""], second[0]]
    wanted = [
        '[ [], {} , -0.10, "1.5,", {"x":1e1}]',
        "[]",
        "{}",
        "-0.10",
        '{"x":1e1}',
        "1e1",
        '{"":2.0 }',
        "2.0",
        "3.5",
    ]
    assert wanted == [sent.text(cell) for cell in found]
    assert [None] * 3 == [sent.text(cell) for cell in ("1.5,", 1, None)]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES, st.sampled_from([(",", ":"), (" ,\n", " : ")]), st.booleans())
def test_each_text_is_that_of_its_value(value: object, separators: tuple[str, str], ascii_only: bool) -> None:
    """Parsed alone, it gives the value for which it was sent."""
    text = json.dumps([value], separators=separators, ensure_ascii=ascii_only).encode()
    (root,) = parsed = parse_sequence(text, Limits())
    sent = SentJson(text, parsed)
    nodes: list[object] = [root]
    for node in nodes:
        nodes += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        if isinstance(node, (dict, list, Decimal)):
            assert parse_sequence((sent.text(node) or "").encode(), Limits()) == [node]


def test_records_of_avro() -> None:
    """They were not sent as text, so they are shown as JSON."""
    assert '{"a":[true,null,1.5],"b":"/w=="}' == raw_text({"a": [True, None, 1.5], "b": b"\xff"})
