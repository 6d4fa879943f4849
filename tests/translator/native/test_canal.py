"""The native path agrees with the plain path on messages of canal in any spelling, with any members."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.dialects.canal.messages import FULL, UPDATE, canal, message, spelled
from tests.translator.native import needs_extension
from tests.translator.native.test_equality import agree, opened_path
from translator.dialects.canal import Canal
from translator.message import Limits

pytestmark = needs_extension

DIALECTS = [
    canal(),
    canal(profile="ticdc"),
    canal(profile="flink_cdc", object_rows=True),
    canal(profile="auto"),
    canal(profile="ticdc", labels="text", binary="hex"),
    canal(profile="ckafka"),
    canal(profile="dts_legacy", continuity={"action": "off"}),
    canal(limits=Limits(columns=4, rows=2)),
    canal(timezone="Europe/Berlin"),
    canal(heartbeat_tables=["shop.*"]),
]

NAMES = ["id", "name", "n", "at", 'a"b']
CELLS = st.none() | st.sampled_from(["", "7", "x", "é", "0000-00-00 00:00:00", "2024-10-27 02:30:00", "a\nb\u0001"])
TYPES = st.sampled_from(["bigint(20)", "varchar(9)", "timestamp", "", "odd"])
ODD = st.sampled_from([None, "", "x", 0, -1, 1.5, 10**20, True, False, [], {}, [1], {"a": "1"}, [None], [{}]])


@st.composite
def common(draw: st.DrawFn) -> dict[str, Any]:
    """Generate a message as canal writes it."""
    type_ = draw(st.sampled_from(["INSERT", "UPDATE", "DELETE"]))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    row = st.fixed_dictionaries(dict.fromkeys(names, CELLS))
    data = draw(st.lists(row, min_size=1, max_size=3))
    old_row = st.fixed_dictionaries({}, optional=dict.fromkeys(names, CELLS))
    old = draw(st.lists(st.none() | old_row | row, min_size=len(data), max_size=len(data)))
    return {
        **UPDATE,
        "type": type_,
        "database": draw(st.sampled_from(["shop", "", None])),
        "gtid": draw(st.sampled_from(["", None, "a:1"])),
        "data": data,
        "old": old if type_ == "UPDATE" else None,
        "mysqlType": draw(st.fixed_dictionaries({}, optional=dict.fromkeys(names, TYPES))),
        "pkNames": draw(st.none() | st.lists(st.sampled_from(names), max_size=2)),
        "id": draw(st.sampled_from([3, 3, 0])),
        "es": draw(st.sampled_from([1700000000000, 1700000000001])),
        **draw(st.sampled_from([{}, {}, {"_tidb": {"commitTs": 429918007904436226}}])),
    }


TIDB: list[Any] = [
    None,
    {},
    {"commitTs": 1, "onlyHandleKey": True},
    {"commitTs": 1, "claimCheckLocation": "s3://x"},
    {"commitTs": "1"},
    {"commitTs": None},
    {"commitTs": 10**20},
]


@st.composite
def bent(draw: st.DrawFn) -> dict[str, Any]:
    """Generate such a message with missing, odd or unknown members."""
    body = draw(common())
    for name in draw(st.lists(st.sampled_from([*UPDATE, "unknown", "_tidb"]), max_size=2)):
        body[name] = draw(ODD)
    for name in draw(st.lists(st.sampled_from([*UPDATE]), max_size=1)):
        body.pop(name, None)
    if draw(st.booleans()):
        body["_tidb"] = draw(st.sampled_from(TIDB))
    body["type"] = draw(st.sampled_from([body.get("type"), "INIT", "QUERY", "INSERT"]))
    return body


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Generate a message as writers spell it, or with whitespace, escapes or a duplicate member."""
    body = draw(common() | bent())
    compact, ascii_only, twice = draw(
        st.just((True, False, "")) | st.tuples(st.booleans(), st.booleans(), st.sampled_from(["", *TWICE]))
    )
    text = json.dumps(body, separators=(",", ":") if compact else None, ensure_ascii=ascii_only)
    return ("{" + twice + text[1:]).encode()


TWICE = ['"id":1,', '"table":"t",', '"mysqlType":{"id":"int","id":"int"},']


@given(st.sampled_from(DIALECTS), texts())
@examples(4)
@example(
    canal(), json.dumps({**UPDATE, "data": [FULL], "old": [FULL | {"n": "\ud800"}]}, separators=(",", ":")).encode()
)
@example(canal(), b'{"type":"INSERT","table":"t","mysqlType":{},"data":[{"a":"1"}]}')
@example(canal(), json.dumps({**UPDATE, "sqlType": {"a": [1]}}, separators=(",", ":")).encode())
def test_both_paths_agree(dialect: Canal, value: bytes) -> None:
    translator, path = opened_path(dialect)
    agree(translator, path, message(value))


@pytest.mark.parametrize(
    "body",
    [
        UPDATE,
        {**UPDATE, "type": "INSERT", "old": None},
        {**UPDATE, "type": "DELETE", "old": None, "pkNames": None, "sqlType": None},
        {**UPDATE, "data": [FULL, FULL], "old": [None, {}]},
        {name: value for name, value in UPDATE.items() if name not in ("gtid", "sqlType", "sql", "isDdl", "id")},
    ],
    ids=["update", "insert", "delete", "two rows", "fewer members"],
)
def test_common_messages_are_taken(body: dict[str, Any]) -> None:
    """Otherwise the property above would prove nothing."""
    assert agree(*opened_path(canal()), message(spelled(body))) == "taken"


@pytest.mark.parametrize("member", [{}, {"_tidb": {"commitTs": 429918007904436226}}])
def test_rows_of_ticdc_are_taken(member: dict[str, Any]) -> None:
    """TiCDC writes id 0, and its own member if configured."""
    value = spelled({**UPDATE, "id": 0, "es": 1700000000001, "old": [FULL], **member})
    assert agree(*opened_path(canal(profile="ticdc")), message(value)) == "taken"
