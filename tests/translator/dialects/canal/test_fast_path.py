"""The fast path for canal's row messages gives the same changes or refusals as the plain one."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.dialects.canal.messages import FULL, UPDATE, canal, message
from translator.dialects.canal import Canal
from translator.errors import MessageError
from translator.message import Changes, Limits

DIALECTS = [
    canal(),
    canal(profile="ticdc"),
    canal(profile="flink_cdc", object_rows=True),
    canal(profile="auto", newline_batches=True),
    canal(profile="ticdc", labels="text", binary="hex"),
    canal(profile="dts", row_image="partial"),
    canal(profile="dts_legacy"),
    canal(limits=Limits(columns=4, rows=2)),
    canal(limits=Limits(json_depth=2)),
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


def result(read: Any) -> object:
    """Return the outcome, or the text of the refusal."""
    try:
        return read()
    except MessageError as error:
        return error.code, str(error)


@given(st.sampled_from(DIALECTS), texts())
@examples(4)
@example(
    canal(), json.dumps({**UPDATE, "data": [FULL], "old": [FULL | {"n": "\ud800"}]}, separators=(",", ":")).encode()
)
@example(canal(), b'{"type":"INSERT","table":"t","mysqlType":{},"data":[{"a":"1"}]}')
@example(canal(), json.dumps({**UPDATE, "sqlType": {"a": [1]}}, separators=(",", ":")).encode())
def test_both_ways_agree(dialect: Canal, value: bytes) -> None:
    """For any input, `decode` gives the plain path's result."""
    assert result(lambda: dialect.decode_plainly(message(value))) == result(lambda: dialect.decode(message(value)))


def spelled(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


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
def test_the_common_message_is_read_quickly(body: dict[str, Any]) -> None:
    """Messages of all known writers take the fast path. Otherwise the property above would prove nothing."""
    value = spelled(body)
    dialect = canal()
    dialect.decode_plainly = None  # type: ignore[assignment, method-assign]  # it must not be called
    assert isinstance(dialect.decode(message(value)), Changes)


@pytest.mark.parametrize("member", [{}, {"_tidb": {"commitTs": 429918007904436226}}])
def test_a_row_of_ticdc_is_read_quickly(member: dict[str, Any]) -> None:
    """TiCDC writes id 0, and its own member if configured."""
    value = spelled({**UPDATE, "id": 0, "es": 1700000000001, "old": [FULL], **member})
    dialect = canal(profile="ticdc")
    dialect.decode_plainly = None  # type: ignore[assignment, method-assign]  # it must not be called
    assert isinstance(dialect.decode(message(value)), Changes)


@pytest.mark.parametrize(
    "value",
    [
        spelled(UPDATE).replace(b'"id":3', b'"id":2,"id":3'),
        spelled(UPDATE).replace(b'"name":"new"', b'"name":"x","name":"new"'),
        spelled(UPDATE).replace(b'"name":"varchar(50)"', b'"name":"int","name":"varchar(50)"'),
        spelled(UPDATE).replace(b'"name":12', b'"name":1,"name":12'),
    ],
    ids=["member", "cell", "type", "sql type"],
)
def test_nothing_is_overlooked(value: bytes) -> None:
    """A duplicate member makes a message ambiguous, wherever it appears."""
    with pytest.raises(MessageError, match="occurs twice"):
        canal().decode(message(value))


@pytest.mark.parametrize(
    ("limits", "row", "rows"),
    [(Limits(rows=300), {"a": None}, 301), (Limits(columns=300), {str(n): None for n in range(301)}, 1)],
    ids=["rows", "columns"],
)
def test_limits_hold_for_the_smallest_messages(limits: Limits, row: dict[str, None], rows: int) -> None:
    """Rows and columns that take almost no bytes are counted too."""
    body = {"type": "INSERT", "table": "t", "mysqlType": {}, "data": [row] * rows}
    with pytest.raises(MessageError, match="300 are allowed"):
        canal(limits=limits).decode(message(spelled(body)))
