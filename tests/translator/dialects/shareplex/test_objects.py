"""From bytes to objects: framing, several objects in one value, and foreign input."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.dialects.shareplex.messages import (
    BAND,
    CASES,
    body,
    changes,
    dialect,
    outcome,
    refusal,
    row,
    sample,
)
from translator.errors import MessageError
from translator.message import Changes, Limits, Message, RowChange

QUEST = dialect()
ONE = b'{"meta":{"op":"ins","table":"A.T"},"data":{"A":1}}'
TWO = b'{"meta":{"op":"del","table":"A.T"},"data":{"A":2}}'


@pytest.mark.requirement("shareplex.accept.1")
@pytest.mark.parametrize(
    "text", [ONE, b" \r\n" + ONE + b"\n ", b"\xef\xbb\xbf" + ONE, json.dumps(json.loads(ONE), indent=2).encode()]
)
def test_white_space_and_a_byte_order_mark_change_nothing(text: bytes) -> None:
    """One object is one change, whatever its layout."""
    assert row(QUEST, text) == row(QUEST, ONE)


@pytest.mark.requirement("shareplex.accept.1")
@pytest.mark.parametrize("between", [b"", b"\n", b"\r\n\r\n", b" "])
def test_each_of_several_objects_is_a_row_of_the_message(between: bytes) -> None:
    """Objects end to end, or one per line, are changes in order."""
    rows = changes(QUEST, ONE + between + TWO + between)
    assert [(r.op, r.row, r.rows) for r in rows if isinstance(r, RowChange)] == [("c", 0, 2), ("d", 1, 2)]


def test_one_bad_row_refuses_the_message_by_its_number() -> None:
    """The message is the unit, and the path names the row."""
    bad = b'{"meta":{"op":"odd","table":"A.T"}}'
    assert refusal(QUEST, ONE + b"\n" + bad)[::2] == ("UNKNOWN_OPERATION", "$[1].meta.op")


def test_too_many_objects_are_refused() -> None:
    """The limit on rows counts objects."""
    reader = dialect(limits=Limits(rows=2))
    assert len(changes(reader, ONE * 2)) == 2
    assert refusal(reader, ONE * 3)[0] == "LIMIT_EXCEEDED"


@pytest.mark.requirement("shareplex.reject.1", "shareplex.reject.2")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b" ", "MALFORMED_JSON"),
        (b"\xef\xbb\xbf", "MALFORMED_JSON"),
        (b"hello", "MALFORMED_JSON"),
        (ONE + b",", "MALFORMED_JSON"),
        (ONE + b"," + TWO, "MALFORMED_JSON"),
        (ONE + b" x", "MALFORMED_JSON"),
        (ONE[:-1], "MALFORMED_JSON"),
        (ONE.replace(b"1", b"NaN"), "MALFORMED_JSON"),
        (ONE.replace(b"1", b"-Infinity"), "MALFORMED_JSON"),
        (ONE.replace(b"1", b'"\xff"'), "MALFORMED_JSON"),
        (ONE.replace(b'"op"', b'"\\ud800"'), "INVALID_FIELD"),
        (ONE.replace(b"1", b'"\xed\xa0\x80"'), "MALFORMED_JSON"),
        (ONE.decode().encode("utf-16"), "MALFORMED_JSON"),
        (sample("dts_update_verbatim"), "MALFORMED_JSON"),
        (sample("dts_delete_verbatim"), "MALFORMED_JSON"),
        (b"<?xml version='1.0'?><opentarget/>", "FRAMING"),
        (b"\xef\xbb\xbf\n <opentarget/>", "FRAMING"),
        (b"[" + ONE + b"]", "UNSUPPORTED_SHAPE"),
        (b"[]", "UNSUPPORTED_SHAPE"),
        (b"17", "UNSUPPORTED_SHAPE"),
        (b"null", "UNSUPPORTED_SHAPE"),
        (ONE + b"17", "UNSUPPORTED_SHAPE"),
        (ONE.replace(b"1", b"1e99999999999999999999"), "LIMIT_EXCEEDED"),
        (ONE.replace(b"1", b"[" * 70 + b"]" * 70), "LIMIT_EXCEEDED"),
        (b'{"a":' * 100_000, "LIMIT_EXCEEDED"),
    ],
)
def test_what_is_not_json_objects_is_refused(text: bytes, code: str) -> None:
    """Each kind of foreign input has its code."""
    assert refusal(QUEST, text)[0] == code


@pytest.mark.requirement("shareplex.reject.8")
def test_xml_is_named() -> None:
    """The other record format of Post is recognized, so that the operator knows what to change."""
    assert "XML" in refusal(QUEST, b"<opentarget/>")[1]


@pytest.mark.requirement("shareplex.reject.5")
@pytest.mark.parametrize(
    "text",
    [
        b'{"meta":{"op":"ins","table":"A.T"},"data":{"A":1,"A":2}}',
        b'{"meta":{"op":"ins","op":"del","table":"A.T"},"data":{"A":1}}',
        b'{"meta":{"op":"ins","table":"A.T"},"data":{"A":1},"data":{"A":1}}',
        b'{"meta":{"op":"ins","table":"A.T","x":{"A":1,"\\u0041":1}},"data":{"A":1}}',
        b'{"meta":{"op":"ins","table":"A.T"},"data":{"A"\n:1 , "A"\t: 2}}',
        ONE + b'\n{"meta":{"op":"ins","table":"A.T"},"data":{"A":1,"A":1}}',
        b'\xef\xbb\xbf{"meta":{"op":"ins","table":"A.T"},"data":{"A":1,"A":2}} ',
    ],
)
def test_a_member_named_twice_is_refused(text: bytes) -> None:
    """A duplicate member is ambiguous, wherever it is and however it is spelled."""
    code, reason, _ = refusal(QUEST, text)
    assert code == "INVALID_FIELD"
    assert "twice" in reason


@pytest.mark.requirement("shareplex.reject.5")
@pytest.mark.parametrize("cell", ['":', "a : b", '","A":2', '{"x" :1}', '"}{"A":1}', "\\"])
def test_text_that_looks_like_members_is_text(cell: str) -> None:
    """The check for duplicate names is not fooled by the content of a cell."""
    two = json.dumps(body("ins", data={"A": cell, "B": cell})).encode() + ONE
    first, _ = changes(QUEST, two)
    assert isinstance(first, RowChange)
    assert first.after == {"A": cell, "B": cell}


# -- laws over any input

VALUES = sorted({sample(case.name) for case in CASES.iterdir()} | {ONE + b"\n" + TWO})
READERS = (
    QUEST,
    dialect(BAND, timezone="Asia/Shanghai"),
    dialect(preset="dts", default_table="X.Y"),
    dialect(preset="lenient", default_table="X.Y"),
)


def accepted(value: bytes) -> None:
    """Check that every reader gives changes or a MessageError."""
    for reader in READERS:
        try:
            made = outcome(reader, value)
        except MessageError:
            continue
        assert isinstance(made, Changes)
        assert made.changes


@pytest.mark.requirement("shareplex.reject.1")
@pytest.mark.parametrize("value", VALUES)
def test_a_message_cut_anywhere_is_refused_or_read(value: bytes) -> None:
    """No truncation raises anything but MessageError."""
    for end in range(1, len(value) + 1):
        accepted(value[:end])


@given(st.sampled_from(VALUES), st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_are_refused_or_read(value: bytes, flips: list[tuple[int, int]]) -> None:
    """No damage raises anything but MessageError."""
    damaged = bytearray(value)
    for place, bits in flips:
        damaged[place % len(damaged)] ^= bits
    accepted(bytes(damaged))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = ("op", "table", "time", "posttime", "scn", "trans", "seq", "size", "idx", "host", "userid", "rowid", "x")


@given(
    st.sampled_from(["ins", "upd", "del", "TRUNCATE", "DROP COLUMN"]),
    st.dictionaries(st.sampled_from(MEMBERS[2:]), JSON, max_size=5),
    st.dictionaries(
        st.sampled_from(["data", "key", "x"]), st.dictionaries(st.text(max_size=3), JSON, max_size=4) | JSON
    ),
)
def test_any_json_in_any_place_is_refused_or_read(op: str, meta: dict[str, object], members: dict[str, object]) -> None:
    """Members of any JSON type in any place never raise anything but MessageError."""
    accepted(json.dumps(body(op, meta=meta, **members)).encode("utf-8", "surrogatepass"))


@pytest.mark.requirement("shareplex.accept.5")
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.none() | st.text(max_size=9) | st.integers(),
        min_size=1,
    )
)
def test_no_column_is_lost_or_invented(data: dict[str, str | int | None]) -> None:
    """An insert's image has the columns of `data` in order with their values."""
    expected = {name: str(value) if isinstance(value, int) else value for name, value in data.items()}
    change = row(QUEST, json.dumps(body("ins", data=data), ensure_ascii=False).encode("utf-8"))
    assert change.after is not None
    assert list(change.after.items()) == list(expected.items())


def test_the_same_record_gives_the_same_changes() -> None:
    """A dialect's caches do not affect its results."""
    for value in VALUES:
        message = Message("t", 0, 0, 0, None, value)
        for reader in READERS:
            outcomes = []
            for _ in range(2):
                try:
                    outcomes.append(str(reader.decode(message)))
                except MessageError as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1]
