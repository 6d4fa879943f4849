"""The native path agrees with the plain path on SharePlex messages in any spelling, with any members."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.dialects.shareplex.messages import CASES, body, dialect, sample
from tests.translator.native import needs_extension
from tests.translator.native.test_equality import agree, opened_path
from translator.dialects.shareplex import SharePlex
from translator.message import DeclaredTable, Limits, Message

pytestmark = needs_extension

COLUMNS = {
    "ID": "int64",
    "N": "decimal(10,2)",
    "S": "string",
    "T": "timestamp",
    "D": "date",
    "F": "float64",
    "B": "boolean",
    "U": "unknown",
    "Z": "timestamptz",
}
TYPED = DeclaredTable("A.T", key=("ID",), columns=COLUMNS)
DIALECTS = [
    dialect(),
    dialect(TYPED),
    dialect(TYPED, preset="dts"),
    dialect(preset="dts", default_table="A.T"),
    dialect(preset="lenient"),
    dialect(DeclaredTable("*", key=("ID", "S")), timezone="America/New_York"),
    dialect(TYPED, operations={"I": "ins", "UPDATE": "del", "refresh": "ins"}),
    dialect(TYPED, limits=Limits(columns=2)),
]

NUMBERS = ["0", "-1", "7", "1.50", "-0.0", "1e5", "1e-6", "0.00000001", "12345678901234567890.5", "9" * 40]
TEXTS = ["", "7", "1.5", "x", "é", "2024-05-24T15:58:48.000000000", "2024-05-24", "t", 'a\n":b', "\x7f"]
FITTING: dict[str, list[str]] = {
    "ID": ["1", '"2"'],
    "N": ["1.5", "2", '"3.10"', "1E2"],
    "S": ['"x"', '"é"', "7", '"\\u00e9"'],
    "T": ['"2024-05-24T15:58:48.000000000"'],
    "D": ['"2024-05-24"'],
    "F": ["1.5", "1e22"],
    "B": ["true", '"0"'],
    "U": ["1.50", "true", '"x"'],
    "Z": ['"2024-05-24T15:58:48Z"'],
    "op": ['"ins"'],
    "é": ['" :"'],
}
ANY = st.sampled_from([*NUMBERS, "-0", "true", "[]", "{}", '{"a":1}', "NaN", '"\\ud800"', *map(json.dumps, TEXTS)])
META: dict[str, list[Any]] = {
    "time": ["2017-06-16T14:24:34", "2017-06-16T14:24:34Z", "2023-11-05T01:30:00", "2017-06-16T14:24:34.123456789"],
    "posttime": ["2017-06-16 14:33:52"],
    "scn": ["14589063118712", 14589063118712],
    "host": ["ora1"],
    "trans": ["7.0.411499", 7],
    "seq": [1],
    "size": [11, 1],
    "idx": ["1/11"],
    "userid": [84, "84"],
    "rowid": ["AAATGpAAIAAItcIAAA"],
}
ODD_META: list[Any] = [None, "", "x", "1", 0, -1, 2, 2**63, 1.5, True, [], {}, "2/11", "01/11"]
ODD_TEXTS = ['"x":1', '"x":null', '"key":null', '"data":[]', '"data":{"ID":1}', '"meta":{}', '"key":{"ID":1}']


def cells(draw: st.DrawFn, odd: bool) -> str:
    """Generate an object of cells as text. An odd one has any value, or a duplicate name."""
    names = draw(st.lists(st.sampled_from(sorted(FITTING)), min_size=1, max_size=5, unique=not odd))
    texts = [draw(ANY if odd and draw(st.booleans()) else st.sampled_from([*FITTING[name], "null"])) for name in names]
    colon = draw(st.sampled_from([":", ":", ":", ": ", " :"]))
    return "{" + ",".join(f'"{name}"{colon}{text}' for name, text in zip(names, texts, strict=True)) + "}"


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Generate messages as the writers spell them, half of them modified in ways that the native path could miss."""
    bends = draw(
        st.sets(st.sampled_from(["op", "table", "meta", "extra", "cells", "less", "member", "end"]), max_size=2)
    )
    bent = bends if draw(st.booleans()) else set()
    op = draw(
        st.sampled_from(
            ["ins", "upd", "upd", "del"] if "op" not in bent else ["INSERT", "I", "UPDATE", "INS", "Upd", "x"]
        )
    )
    meta: dict[str, Any] = {
        "op": op,
        "table": draw(st.sampled_from(["A.T", "A.U", '"A"."T"'] if "table" not in bent else ["A..T", "", "A", 5])),
    }
    sent = draw(st.sets(st.sampled_from(sorted(META))))
    if not sent.isdisjoint({"seq", "size", "idx"}) and draw(st.integers(0, 3)):
        sent |= {"trans", "seq", "size"}
    meta |= {name: draw(st.sampled_from(META[name])) for name in sorted(sent)}
    if "meta" in bent:
        meta[draw(st.sampled_from(sorted(META)))] = draw(st.sampled_from(ODD_META))
    if "extra" in bent:
        meta["changeid"] = 9
    if "less" in bent:
        meta.pop(draw(st.sampled_from(sorted(meta))))
    members = [f'"meta":{json.dumps(meta, separators=(",", ":"))}', f'"data":{cells(draw, "cells" in bent)}']
    if op in ("upd", "UPDATE"):
        members.append(f'"key":{cells(draw, "cells" in bent)}')
    if "member" in bent:
        members.append(draw(st.sampled_from(ODD_TEXTS)))
    start, end = "", draw(st.sampled_from([" }", "}", "}\n", " }\r\n"]))
    if "end" in bent:
        start, end = draw(st.sampled_from(["", " ", "\ufeff"])), draw(st.sampled_from(["  }", "} ", "", "}}", "}{}"]))
    return (start + "{" + ",".join(members) + end).encode("utf-8", "surrogatepass")


def became(reader: SharePlex, value: bytes) -> str:
    """Compare both paths, and return the result for the message."""
    return agree(*opened_path(reader), Message("t", 0, 0, 0, None, value))


@pytest.mark.requirement("shareplex.reject.5")
@examples(6)
@given(st.sampled_from(DIALECTS), messages())
@example(dialect(), b'{"meta":{"op":"ins","table":"A.T"},"data":{"A" :1,"A" :2,"S":"x\\":"} }')
@example(dialect(), b'{"meta":{"op":"ins","table":"A.T"},"data":{"A":1},"data":{"A":1}}')
def test_both_paths_agree(reader: SharePlex, value: bytes) -> None:
    became(reader, value)


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_both_paths_agree_on_the_samples(case: str) -> None:
    """This covers printed samples and derived ones, with and without whitespace."""
    for reader in DIALECTS:
        became(reader, sample(case))
        if "verbatim" not in case:
            became(reader, json.dumps(json.loads(sample(case)), separators=(",", ":"), ensure_ascii=False).encode())


def with_members(**meta: Any) -> dict[str, Any]:
    return body("ins", meta=meta, data={"ID": 1, "N": 1.5, "S": "é", "T": None})


EVERYTHING = with_members(
    time="2017-06-16T14:24:34Z",
    userid=84,
    scn="14589063118712",
    rowid="AAATGpAAIAAItcIAAA",
    trans="7.0.411499",
    seq=1,
    size=11,
    idx="1/11",
    posttime="2017-06-16T14:33:52",
    host="ora1",
)


@pytest.mark.parametrize("end", ["}", " }", " }\n", "}\r\n"])
@pytest.mark.parametrize(
    "message",
    [
        with_members(),
        EVERYTHING,
        body("upd", data={"N": 2}, key={"ID": 1}),
        body("upd", data={"ID": 2}, key={"ID": 1, "S": None, "N": "1.00"}),
        body("del", data={"ID": 1, "S": None}),
        body("DELETE", data={"ID": 1}),
    ],
    ids=["stock", "everything", "update", "wide update", "delete", "word"],
)
def test_common_messages_are_taken(message: dict[str, Any], end: str) -> None:
    """Otherwise the property above would prove nothing."""
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)[:-1] + end
    for reader in (dialect(TYPED), dialect(TYPED, preset="dts"), dialect(TYPED, preset="lenient")):
        assert became(reader, text.encode()) == "taken"


@pytest.mark.parametrize(
    "message",
    [
        body("ins", data={"ID": 1}, key={"ID": 1}),
        body("del", data={"ID": 1}, key={}),
        body("ins", data={"ID": 1}, key=None),
        body("ins", data={"ID": 1, "B": []}),
        body("upd", data={"S": "x"}, key={"ID": 1, "B": {}}),
        body("upd", data={}, key={"ID": 1}),
        body("upd", data={"N": 1}, key={}),
        body("ins", data={}),
        with_members(trans="1", seq=3, size=2),
        with_members(trans="1", seq=1, size=2, idx="2/2"),
        with_members(trans="1", seq=1, size=2, idx="01/2"),
        with_members(trans="1", idx="1/2"),
        with_members(seq=1, size=2),
        with_members(idx="1/2"),
        with_members(trans="1", seq=2**63),
        with_members(scn="LSN/1"),
        with_members(scn=""),
        with_members(host=""),
        with_members(time=None),
        with_members(changeid=9, rowid="r", userid=True),
        with_members(time="2017-06-16"),
        with_members(table="A..T"),
    ],
)
def test_nothing_is_overlooked(message: dict[str, Any]) -> None:
    """In almost normal messages, the unusual part is not missed."""
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
    for reader in DIALECTS:
        became(reader, text)
