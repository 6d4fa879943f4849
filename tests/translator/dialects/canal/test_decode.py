"""Canal: the kinds of messages and their head (§1 to 3, 9)."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.envelope import Tx
from tests.translator.dialects.canal.messages import (
    UPDATE,
    canal,
    decode,
    message,
    of_type,
    refused,
    row,
    rows,
    spelled,
    update,
)
from translator.errors import MessageError
from translator.message import DeclaredTable, Limits, Skip, TableName, Writer

# -- records without a message


@pytest.mark.requirement("canal.reject.1")
@pytest.mark.parametrize(
    ("reason", "value"),
    [("tombstone", None), ("empty", b""), ("empty", b" \r\n"), ("null", b"null"), ("null", b" null\n")],
)
def test_records_without_a_message_are_skipped(reason: str, value: bytes | None) -> None:
    """Tombstones, empty bodies and the literal null are counted, each under its own name."""
    assert Skip(reason) == canal().decode(message(value))


@pytest.mark.requirement("canal.reject.1")
@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("UNSUPPORTED_SHAPE", b"[]"),
        ("UNSUPPORTED_SHAPE", b'"INSERT"'),
        ("MALFORMED_JSON", b"{]"),
        ("MALFORMED_JSON", b'{"type":"INSERT"} x'),
        ("MALFORMED_JSON", b'{"type":"QUERY"}\n{"type":"QUERY"}'),
        ("MALFORMED_JSON", b'{"type":"\xff"}'),
        ("INVALID_FIELD", b'{"type":"\\ud800"}'),
        ("MALFORMED_JSON", b"\x0a\x05proto"),
        ("INVALID_FIELD", b'{"type":"QUERY","type":"INSERT"}'),
        ("LIMIT_EXCEEDED", b'{"x":' + b"[" * 80 + b"]" * 80 + b"}"),
        ("LIMIT_EXCEEDED", b'{"id":1e99999999999999999999}'),
    ],
)
def test_what_is_not_one_json_object_is_refused(code: str, value: bytes) -> None:
    """Malformed, foreign and ambiguous text becomes a dead letter. A duplicate member is ambiguous."""
    with pytest.raises(MessageError) as caught:
        canal().decode(message(value))
    assert code == caught.value.code


def test_bytes_that_are_not_utf8_have_a_reason_without_a_position() -> None:
    """The parser would count from the start of the enclosing text, which is not a position in the message."""
    with pytest.raises(MessageError) as caught:
        canal().decode(message(b'{"type":"INSERT","table":"t\xff"}'))
    assert "not JSON: it contains a string that is not valid UTF-8" == caught.value.reason


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
def test_a_duplicate_member_makes_a_message_ambiguous(value: bytes) -> None:
    with pytest.raises(MessageError, match="twice"):
        canal().decode(message(value))


@pytest.mark.parametrize(
    ("limits", "row", "rows"),
    [(Limits(rows=300), {"a": None}, 301), (Limits(columns=300), {str(n): None for n in range(301)}, 1)],
    ids=["rows", "columns"],
)
def test_limits_apply_to_the_smallest_messages(limits: Limits, row: dict[str, None], rows: int) -> None:
    """Rows and columns that take almost no bytes are counted, too."""
    body = {"type": "INSERT", "table": "t", "mysqlType": {}, "data": [row] * rows}
    with pytest.raises(MessageError, match="300 are allowed"):
        canal(limits=limits).decode(message(spelled(body)))


# -- the head


@pytest.mark.requirement("canal.accept.1")
def test_the_head_of_a_row() -> None:
    """Table, times, position, writer and key are those of the message, in any order of its members."""
    change = row({name: UPDATE[name] for name in reversed([*UPDATE])})
    assert TableName("shop", None, "orders") == change.table
    assert (1700000000000000, 1700000000123000) == (change.ts_commit_us, change.ts_capture_us)
    assert "3" == change.pos_native
    assert Writer("oss", "declared", "mysql") == change.writer
    assert (("id",), "primary") == (change.key_columns, change.key_kind)


@pytest.mark.requirement("canal.accept.1")
def test_missing_members_are_null() -> None:
    """Only type, table and rows are required. Other missing members are unknown, not errors."""
    change = row({"type": "INSERT", "table": "t", "data": [{"a": "1"}], "more": {"x": 1}})
    assert TableName(None, None, "t") == change.table
    assert (None, None, None) == (change.ts_commit_us, change.ts_capture_us, change.pos_native)
    assert ((), "none", None) == (change.key_columns, change.key_kind, change.schema)
    assert {"a": "1"} == change.after
    assert ["UNTYPED", "VARIANT_CONFLICT"] == change.notes  # because canal sends id, es, ts and sqlType


@pytest.mark.requirement("canal.accept.1", "canal.accept.2")
@pytest.mark.parametrize("member", ["database", "mysqlType", "pkNames", "sql", "isDdl", "gtid", "es", "ts", "id"])
def test_null_members_are_missing_members(member: str) -> None:
    """A null counts as an absent member (§15)."""
    absent = {name: value for name, value in UPDATE.items() if name != member}
    assert decode(absent) == decode(update(**{member: None}))


@pytest.mark.requirement("canal.accept.4", "canal.reject.2")
@pytest.mark.parametrize(
    ("code", "members"),
    [
        ("MISSING_FIELD", {"type": None}),
        ("INVALID_FIELD", {"type": 1}),
        ("UNKNOWN_OPERATION", {"type": "XX"}),
        ("UNKNOWN_OPERATION", {"type": "update"}),
        ("UNKNOWN_OPERATION", {"type": "ROW"}),
        ("TABLE_UNKNOWN", {"table": ""}),
        ("TABLE_UNKNOWN", {"table": None}),
        ("INVALID_FIELD", {"table": 1}),
        ("INVALID_FIELD", {"database": []}),
        ("INVALID_FIELD", {"isDdl": True}),
        ("INVALID_FIELD", {"isDdl": "false"}),
        ("INVALID_FIELD", {"es": "1700000000000"}),
        ("INVALID_FIELD", {"es": 1.5}),
        ("INVALID_FIELD", {"es": True}),
        ("INVALID_FIELD", {"ts": -1}),
        ("INVALID_FIELD", {"ts": 2**63}),
        ("INVALID_FIELD", {"id": "3"}),
        ("INVALID_FIELD", {"gtid": 3}),
        ("INVALID_FIELD", {"sql": {}}),
        ("INVALID_FIELD", {"mysqlType": []}),
        ("INVALID_FIELD", {"mysqlType": {"id": 3}}),
        ("INVALID_FIELD", {"pkNames": "id"}),
        ("INVALID_FIELD", {"pkNames": [1]}),
        ("INVALID_FIELD", {"pkNames": ["id", "id"]}),
    ],
)
def test_a_member_of_the_wrong_form_is_refused(code: str, members: dict[str, Any]) -> None:
    """A head member of the wrong form leads to a dead letter with its place."""
    error = refused(update(**members))
    assert code == error.code
    assert next(iter(members)) in error.path


@pytest.mark.requirement("canal.reject.2")
def test_an_unknown_type_names_what_is_known() -> None:
    """The reason has the value and all types that this release translates."""
    reason = refused(update(type="UPDAET")).reason
    assert "unknown type 'UPDAET' (did you mean UPDATE?)" in reason
    assert "CREATE" in reason
    assert "XAROLLBACK" not in reason


@pytest.mark.parametrize("type_", ["XAROLLBACK", "GTID", "MHEARTBEAT", "TIDB_WATERMARK"])
def test_types_that_are_known_and_not_translated(type_: str) -> None:
    """They are rejected by name and not as unknown."""
    assert "UNSUPPORTED_SHAPE" == refused(of_type(type_, sql="1")).code


@pytest.mark.parametrize("mark", ["_tidb", "pgType", "opType", "updateBefore"])
def test_messages_of_other_writers_are_refused(mark: str) -> None:
    """A member that only another writer sends proves that the declared profile is wrong (§6.5)."""
    error = refused(update(**{mark: None}))
    assert ("UNSUPPORTED_SHAPE", f"$.{mark}") == (error.code, error.path)


@pytest.mark.requirement("canal.do_not.1")
def test_the_gtid_names_a_transaction_for_dts_only() -> None:
    """Open-source canal writes the set of executed GTIDs, which is not a transaction (§1)."""
    gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"
    assert Tx(gtid) == row(update(gtid=gtid), profile="dts").tx
    assert row(update(gtid=gtid)).tx is None
    assert row(update(gtid=""), profile="dts").tx is None


# -- keys and limits


def test_a_declared_key_stands_in_for_pk_names() -> None:
    """`tables:` provides the key if the message has none, and is ignored otherwise."""
    dialect = canal(DeclaredTable("shop.*", key=("name",)))
    configured = row(update(pkNames=None), dialect)
    assert (("name",), "configured") == (configured.key_columns, configured.key_kind)
    assert (("id",), "primary") == (row(UPDATE, dialect).key_columns, row(UPDATE, dialect).key_kind)


@pytest.mark.requirement("canal.reject.1")
@pytest.mark.parametrize(
    ("limits", "path"),
    [
        (Limits(rows=1), "$.data"),
        (Limits(columns=2), "$.data[0]"),
    ],
)
def test_limits(limits: Limits, path: str) -> None:
    """A message with more rows or columns than allowed becomes a dead letter quickly."""
    body = of_type("INSERT", [{"id": "1", "name": "a", "n": "1"}] * 2)
    error = refused(body, canal(limits=limits))
    assert ("LIMIT_EXCEEDED", path) == (error.code, error.path)


@pytest.mark.requirement("canal.accept.3", "canal.do_not.8")
def test_rows_keep_their_order_and_number() -> None:
    """Each row becomes one change, in array order."""
    changes = rows(of_type("INSERT", [{"id": str(i)} for i in range(3)]))
    assert [(0, 3, {"id": 0}), (1, 3, {"id": 1}), (2, 3, {"id": 2})] == [(c.row, c.rows, c.after) for c in changes]
