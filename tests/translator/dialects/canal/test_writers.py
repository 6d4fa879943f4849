"""Canal: peculiarities of TiCDC, the Flink family, clouds and forks (§1, 10, 11)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent, Issue
from tests.translator.dialects.canal.messages import (
    FULL,
    UPDATE,
    canal,
    decode,
    message,
    of_type,
    other,
    refused,
    row,
    rows,
)
from translator.dialects.canal import Canal
from translator.errors import MessageError
from translator.message import Changes, DeclaredTable, Limits, OtherChange, RowChange, Skip
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events, Translator
from translator.values import CANONICAL_TYPES

NEW = {"id": "7", "name": "new", "n": None}
COMMIT = 429918007904436226
TICDC: dict[str, Any] = {
    **UPDATE,
    "id": 0,
    "es": 1640007049196,
    "ts": 1640007050284,
    "mysqlType": {"id": "bigint", "name": "varchar", "n": "int"},
    "data": [NEW],
    "old": [FULL],
    "_tidb": {"commitTs": COMMIT},
}
"""An UPDATE as TiCDC writes it by default: `old` has all columns, `mysqlType` no parameters."""


def ticdc(**members: Any) -> dict[str, Any]:
    return {**TICDC, **members}


def event(body: dict[str, Any], dialect: Canal | None = None, **options: Any) -> ChangeEvent:
    result = Translator("s", dialect or canal(**options), Limits()).translate(message(json.dumps(body).encode()))
    assert isinstance(result, Events)
    return result.events[0]


# -- TiCDC


@pytest.mark.requirement("canal.accept.2")
@pytest.mark.parametrize("extension", [True, False])
def test_ticdc_update(extension: bool) -> None:
    """id 0; es in real milliseconds; `old` of a default UPDATE = full before image (§10)."""
    body = ticdc() if extension else {name: value for name, value in TICDC.items() if name != "_tidb"}
    found = event(body, profile="ticdc")
    assert ("ticdc", "declared", None) == (found.variant, found.variant_basis, found.notes)
    assert ('{"id":7,"name":"old","n":1}', "full") == (found.before, found.before_state)
    assert ('{"id":7,"name":"new","n":null}', "full") == (found.after, found.after_state)
    assert (["name", "n"], 1640007049196000) == (found.changed, found.ts_commit_us)
    assert (str(COMMIT) if extension else "0") == found.pos_native


@pytest.mark.requirement("canal.produce.1")
def test_ticdc_update_with_changed_columns_only() -> None:
    """`only_output_updated_columns` or content-compatible mode = changed columns only (§10)."""
    found = event(ticdc(old=[{"name": "old"}]), profile="ticdc")
    assert ('{"id":7,"name":"old","n":null}', "merged") == (found.before, found.before_state)


def test_tiflow_4597_insert_with_null_in_old() -> None:
    """TiCDC 5.1 wrote `old:[null]` for an INSERT."""
    found = event(ticdc(type="INSERT", old=[None]), profile="ticdc")
    assert ("c", None, '{"id":7,"name":"new","n":null}') == (found.op, found.before, found.after)


def test_ticdc_delete_with_two_equal_images() -> None:
    """TiCDC before 5.4 wrote `old` equal to `data` for a DELETE."""
    found = event(ticdc(type="DELETE", data=[FULL], old=[FULL]), profile="ticdc")
    assert ("d", '{"id":7,"name":"old","n":1}', "ticdc") == (found.op, found.before, found.variant)


def test_ticdc_delete_with_the_key_alone() -> None:
    """delete-only-handle-key: a DELETE has only key columns."""
    found = event(ticdc(type="DELETE", data=[{"id": "7"}], old=None), profile="ticdc")
    assert ('{"id":7}', "key", '{"id":7}') == (found.before, found.before_state, found.key)


def key_only(type_: str = "INSERT", key: str = "4711", old: str | None = None, **members: Any) -> dict[str, Any]:
    """Return what TiCDC sends for an oversized row. `sqlType` and `mysqlType` cover only the key too."""
    return ticdc(
        type=type_,
        data=[{"id": key}],
        old=None if old is None else [{"id": old}],
        mysqlType={"id": "bigint"},
        sqlType={"id": -5},
        _tidb={"commitTs": COMMIT, "onlyHandleKey": True},
        **members,
    )


COLUMNS = {"n": "int32", "id": "string", "name": "string"}
"""Declared in table order, with another type for the key than TiCDC sends."""


@pytest.mark.requirement("canal.reject.7")
@pytest.mark.parametrize(("type_", "old"), [("INSERT", None), ("UPDATE", "4711"), ("UPDATE", "9")])
@pytest.mark.parametrize("profile", ["ticdc", "auto"])
def test_ticdc_rows_with_their_key_only(profile: str, type_: str, old: str | None) -> None:
    """`_tidb.onlyHandleKey` = oversized row, only key columns (§10). No event claims a row that was not sent. The
    reason gives advice and contains no data.
    """
    for dialect in (canal(profile=profile), canal(DeclaredTable("shop.orders", ("id",), COLUMNS), profile=profile)):
        error = refused(key_only(type_, old=old), dialect)
        assert ("ROW_NOT_SENT", "$._tidb.onlyHandleKey") == (error.code, error.path)
        assert "max-message-bytes" in error.reason
        assert "handle_key_only: unavailable" in error.reason
        assert "4711" not in str(error)


@pytest.mark.parametrize(
    ("type_", "old", "before", "key_old"),
    [
        ("INSERT", None, (None, "none"), None),
        ("UPDATE", "4711", ('{"id":4711}', "key"), None),
        ("UPDATE", "9", ('{"id":9}', "key"), '{"id":9}'),
    ],
)
@pytest.mark.parametrize("profile", ["ticdc", "auto"])
def test_ticdc_rows_with_their_key_only_as_an_option(
    profile: str, type_: str, old: str | None, before: Any, key_old: str | None
) -> None:
    """If `tables:` lists the columns, every column that was not sent is unavailable. The key has its type from other
    messages, because it must be the same key.
    """
    table = DeclaredTable("shop.orders", ("id",), COLUMNS)
    options = {"profile": profile, "handle_key_only": "unavailable"}
    found = event(key_only(type_, old=old), canal(table, **options))
    assert (before, ('{"id":4711}', "key")) == (
        (found.before, found.before_state),
        (found.after, found.after_state),
    )
    assert ('{"id":4711}', key_old, ["n", "name"]) == (found.key, found.key_old, found.unavailable)
    assert None is found.changed
    assert "HANDLE_KEY_ONLY" in (found.notes or ())
    schema = row(key_only(type_, old=old), canal(table, **options)).schema
    assert schema is not None
    assert [("n", "int32", None), ("id", "int64", 1), ("name", "string", None)] == [
        (column.name, column.type, column.key) for column in schema.columns
    ]
    other_row = event(ticdc(type="INSERT", data=[{**NEW, "id": "4711"}], old=None), canal(table, **options))
    assert (found.key, found.key_kind) == (other_row.key, other_row.key_kind)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ([], "declare the columns of the table"),
        ([DeclaredTable("shop.orders", ("id",))], "declare the columns of the table"),
        ([DeclaredTable("shop.*", (), {"name": "string"})], "column 'id' is missing there"),
    ],
)
@pytest.mark.parametrize("row_image", ["full", "partial"])
def test_ticdc_rows_with_their_key_only_need_the_whole_list(row_image: str, tables: Any, words: str) -> None:
    """An unlisted column could not be marked as unavailable and would be missed."""
    error = refused(key_only(), canal(*tables, profile="ticdc", row_image=row_image, handle_key_only="unavailable"))
    assert "ROW_NOT_SENT" == error.code
    assert words in error.reason


def test_ticdc_rows_with_their_key_only_of_partial_images() -> None:
    """The declared types are those of all messages of the table, and so is the list."""
    table = DeclaredTable("shop.orders", ("id",), COLUMNS)
    found = event(key_only(), canal(table, profile="ticdc", row_image="partial", handle_key_only="unavailable"))
    assert ('{"id":"4711"}', ["n", "name"]) == (found.after, found.unavailable)


@pytest.mark.parametrize("option", ["dead_letter", "unavailable"])
def test_ticdc_delete_of_a_row_that_is_too_large(option: str) -> None:
    """A DELETE needs only the key."""
    found = event(key_only("DELETE"), profile="ticdc", handle_key_only=option)
    assert ("d", '{"id":4711}', "key", '{"id":4711}') == (found.op, found.before, found.before_state, found.key)
    assert (["HANDLE_KEY_ONLY"], None) == (found.notes, found.unavailable)


@pytest.mark.requirement("canal.reject.7")
@pytest.mark.parametrize("profile", ["ticdc", "auto"])
@pytest.mark.parametrize("alone", [True, False])
def test_ticdc_claim_check(alone: bool, profile: str) -> None:
    """`_tidb.claimCheckLocation` = the row is elsewhere. The reason says what to set, without the location or data.
    Some versions send that member alone, or with the key.
    """
    tidb = {"_tidb": {"commitTs": COMMIT, "onlyHandleKey": False, "claimCheckLocation": "s3://secret/place.json"}}
    error = refused(tidb if alone else ticdc(**tidb), profile=profile, handle_key_only="unavailable")
    assert ("ROW_NOT_SENT", "$._tidb.claimCheckLocation") == (error.code, error.path)
    assert "large-message-handle-option" in error.reason
    assert "secret" not in str(error)


@pytest.mark.requirement("canal.accept.2", "canal.produce.5", "canal.reject.7")
@pytest.mark.parametrize(("basis", "profile"), [("declared", "ticdc"), ("certain", "auto")])
def test_ticdc_watermark(basis: str, profile: str) -> None:
    """TIDB_WATERMARK is progress and not data (§15). It has no table."""
    body = {
        **ticdc(type="TIDB_WATERMARK", data=None, old=None, database="", table="", pkNames=None),
        "_tidb": {"watermarkTs": COMMIT},
    }
    change = other(body, profile=profile)
    assert ("watermark", None, None, str(COMMIT)) == (change.kind, change.table, change.db, change.pos_native)
    assert 1640007049196000 == change.ts_commit_us
    assert ("ticdc", basis) == (change.writer.variant, change.writer.variant_basis)
    assert "watermark" == event(body, profile=profile).kind


@pytest.mark.requirement("canal.reject.7")
@pytest.mark.parametrize(
    ("code", "tidb"),
    [
        ("MISSING_FIELD", None),
        ("MISSING_FIELD", {}),
        ("INVALID_FIELD", {"watermarkTs": "1"}),
        ("INVALID_FIELD", []),
    ],
)
def test_ticdc_watermark_without_its_time(code: str, tidb: Any) -> None:
    """A watermark without its time is not a watermark."""
    assert code == refused(ticdc(type="TIDB_WATERMARK", data=None, old=None, _tidb=tidb), profile="ticdc").code


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (base64.b64encode(b"ab\0\0").decode(), "binary(4)", "ab\0\0"),
        (base64.b64encode(b"\xff\x00").decode(), "blob", "\u00ff\u0000"),
        (12345678.5, "double", "12345678.5"),
        ("a", "enum('a','b')", "1"),
        ("a,b", "set('a','b')", "3"),
        ('{"a": "<b>"}', "json", '{"a": "<b>"}'),
    ],
)
def test_tiflow_985_values_of_ticdc(value: object, type_: str, text: str) -> None:
    """TiCDC keeps BINARY padding, plain-decimal floats and latin-1 binary (§7.1)."""
    found = row(
        ticdc(type="INSERT", old=None, data=[{"c": text}], mysqlType={"c": type_}, pkNames=None), profile="ticdc"
    )
    assert {"c": value} == found.after


def test_tiflow_10581_timestamps_in_the_zone_of_the_server() -> None:
    """TIMESTAMP is in the server's zone, set by the option as for canal's JVM."""
    body = ticdc(
        type="INSERT", old=None, data=[{"c": "2024-05-06 07:08:09"}], mysqlType={"c": "timestamp"}, pkNames=None
    )
    assert {"c": "2024-05-06T05:08:09Z"} == row(body, profile="ticdc", timezone="Europe/Berlin").after
    assert ["TZ_UNKNOWN"] == row(body, profile="ticdc").notes


# -- several messages in one record


def batch(*bodies: Any, end: str = "\r\n") -> bytes:
    return "".join(json.dumps(body) + end for body in bodies).encode()


def decoded(value: bytes, dialect: Canal) -> list[Any]:
    outcome = dialect.decode(message(value))
    assert isinstance(outcome, Changes)
    return outcome.changes


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_newline_batches(end: str) -> None:
    """Several objects are joined by newline/CRLF (§10). Rows are counted through the record in order."""
    watermark = ticdc(type="TIDB_WATERMARK", data=None, old=None, _tidb={"watermarkTs": 1})
    two = ticdc(type="INSERT", data=[NEW, {**NEW, "id": "8"}], old=None)
    changes = decoded(batch(TICDC, watermark, two, end=end), canal(profile="ticdc", newline_batches=True))
    assert [RowChange, OtherChange, RowChange, RowChange] == [type(change) for change in changes]
    assert [("u", 0, 3), ("c", 1, 3), ("c", 2, 3)] == [
        (change.op, change.row, change.rows) for change in changes if isinstance(change, RowChange)
    ]


@pytest.mark.requirement("canal.reject.1")
def test_newline_batches_are_an_option() -> None:
    """Several objects in one record become a dead letter unless newline batches are enabled (§15)."""
    with pytest.raises(MessageError) as caught:
        decoded(batch(TICDC, TICDC), canal(profile="ticdc"))
    assert "MALFORMED_JSON" == caught.value.code
    for batches in (True, False):
        assert 1 == len(decoded(batch(TICDC), canal(profile="ticdc", newline_batches=batches)))


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("UNSUPPORTED_SHAPE", batch(TICDC, None)),
        ("UNKNOWN_OPERATION", batch(TICDC, {"type": "XX"})),
        ("MALFORMED_JSON", batch(TICDC) + b"{]"),
        ("INVALID_FIELD", batch(TICDC) + b'{"type":"QUERY","type":"INSERT"}'),
        ("LIMIT_EXCEEDED", batch(*[TICDC] * 4)),
    ],
)
def test_one_bad_message_refuses_its_batch(code: str, value: bytes) -> None:
    """A record is translated as a whole or not at all."""
    with pytest.raises(MessageError) as caught:
        decoded(value, canal(profile="ticdc", newline_batches=True, limits=Limits(rows=3)))
    assert code == caught.value.code


def test_an_empty_batch_is_skipped() -> None:
    """A record without a message counts as such with and without batches."""
    for reason, value in (("empty", b"\r\n"), ("null", b"null\n")):
        assert Skip(reason) == canal(newline_batches=True).decode(message(value))


# -- the Flink family

FLINK: dict[str, Any] = {
    "old": [{"id": 7, "name": "old", "price": 3.14, "ok": None}],
    "data": [{"id": 7, "name": "new", "price": 3.15, "ok": True}],
    "type": "UPDATE",
    "database": "shop",
    "table": "orders",
    "pkNames": ["id"],
}
"""An UPDATE as Flink-CDC writes it: `old` has all columns, cells are native, and no types are sent."""


@pytest.mark.requirement("canal.reject.3")
def test_flink_cdc_update() -> None:
    """Cells are JSON numbers and booleans. Without a known type, numbers keep their exact digits as text."""
    change = row(FLINK, profile="flink_cdc")
    assert {"id": "7", "name": "old", "price": "3.14", "ok": None} == change.before
    assert {"id": "7", "name": "new", "price": "3.15", "ok": True} == change.after
    assert (["name", "price", "ok"], ["UNTYPED"]) == (change.changed, change.notes)
    assert ("flink_cdc", "declared") == (change.writer.variant, change.writer.variant_basis)


def test_flink_cdc_with_declared_types() -> None:
    """`tables:` provides the types that the message lacks."""
    columns = {"id": "int64", "name": "string", "price": "decimal(10,3)", "ok": "boolean"}
    change = row(FLINK, canal(DeclaredTable("shop.orders", ("id",), columns), profile="flink_cdc"))
    assert {"id": 7, "name": "new", "price": "3.150", "ok": True} == change.after
    assert change.schema is not None


def test_bytes_of_the_flink_family() -> None:
    """Flink's JSON has bytes as base64. That is an assumption, with a note."""
    dialect = canal(DeclaredTable("shop.orders", (), {"c": "bytes", "e": "enum"}), profile="flink_cdc")
    change = row({**FLINK, "type": "INSERT", "old": None, "data": [{"c": "AP8=", "e": "x"}]}, dialect)
    assert ({"c": "AP8=", "e": "x"}, ["BINARY_ASSUMED=base64"]) == (change.after, change.notes)


def nested(cells: str, *, key: str = "") -> bytes:
    """Return an INSERT of Flink with a row of this text."""
    return f'{{"data":[{{"id":7,{cells}}}],"type":"INSERT","database":"shop","table":"orders"{key}}}'.encode()


ARRAY, OBJECT = '[ 1.0, "x", [] ]', '{"a" : {"\\u00e9": 1e2},"b":null}'


@pytest.mark.parametrize("profile", ["flink_cdc", "auto"])
@pytest.mark.parametrize("cell", [ARRAY, OBJECT, "[]", "{}"])
def test_nested_cells_are_json_where_the_column_is(profile: str, cell: str) -> None:
    """ARRAY, MAP and ROW are legal in the Flink family. In a JSON column, they are JSON text as sent."""
    columns = {"id": "int64", "c": "json", "d": "json"}
    dialect = canal(DeclaredTable("shop.orders", ("id",), columns), profile=profile)
    (change,) = decoded(nested(f'"c":{cell},"d":"[1]"'), dialect)
    assert ({"id": 7, "c": cell, "d": "[1]"}, None) == (change.after, change.issues)


@pytest.mark.parametrize("profile", ["flink_cdc", "auto"])
@pytest.mark.parametrize("cell", [ARRAY, OBJECT, "[]", "{}"])
@pytest.mark.parametrize("type_", [None, *(name for name in CANONICAL_TYPES if name != "json"), "decimal(9,2)"])
def test_nested_cells_are_an_issue_elsewhere(profile: str, cell: str, type_: str | None) -> None:
    """In a column of another or unknown type, the meaning is unclear. The column is omitted, and the row continues."""
    columns = {"id": "int64", **({} if type_ is None else {"c": type_})}
    dialect = canal(DeclaredTable("shop.orders", ("id",), columns), profile=profile)
    (change,) = decoded(nested(f'"c":{cell}'), dialect)
    assert {"id": 7} == change.after
    assert [("c", cell)] == [(issue.col, issue.raw) for issue in change.issues]


def test_nested_cells_that_did_not_change() -> None:
    """The two images of an UPDATE are compared as text."""
    body = nested(f'"c":{ARRAY},"d":{OBJECT}').replace(b"INSERT", b"UPDATE")
    body = body.replace(b'"type"', f'"old":[{{"id":7,"c":{ARRAY},"d":[]}}],"type"'.encode())
    dialect = canal(
        DeclaredTable("shop.orders", ("id",), dict.fromkeys("cd", "json") | {"id": "int64"}), profile="flink_cdc"
    )
    (change,) = decoded(body, dialect)
    assert (["d"], {"id": 7, "c": ARRAY, "d": "[]"}) == (change.changed, change.before)


def test_a_nested_cell_in_the_key() -> None:
    """A key column with an issue cannot identify a row, so it becomes a dead letter, as always."""
    message_ = message(nested('"c":[1]', key=',"pkNames":["c"]'))
    result = Translator("s", canal(profile="flink_cdc"), Limits()).translate(message_)
    assert isinstance(result, DeadLetter)
    assert "INVALID_FIELD" == result.code


@pytest.mark.requirement("canal.reject.3")
def test_nested_cells_are_refused_elsewhere() -> None:
    """Writers of text never write them (§15)."""
    for cell in (["x"], {"a": "x"}):
        error = refused(of_type("INSERT", [{"id": "7", "c": cell}]))
        assert ("INVALID_FIELD", "$.data[0]") == (error.code, error.path)


@pytest.mark.requirement("canal.reject.3")
def test_the_rows_of_seatunnel_are_an_option() -> None:
    """`data` as an object instead of an array (§1) is accepted only in opt-in SeaTunnel mode."""
    body = {**FLINK, "data": FLINK["data"][0], "old": FLINK["old"][0]}
    assert rows(FLINK, profile="flink_cdc") == rows(body, profile="flink_cdc", object_rows=True)
    assert "INVALID_FIELD" == refused(body, profile="flink_cdc").code
    assert "INVALID_FIELD" == refused({**FLINK, "data": ["x"]}, profile="flink_cdc", object_rows=True).code
    assert "MISSING_FIELD" == refused({**FLINK, "data": {}, "old": None}, profile="flink_cdc", object_rows=True).code


# -- other clouds and forks


def inserted(type_: str, cell: str | None, **options: Any) -> RowChange:
    return row(of_type("INSERT", [{"c": cell}], mysqlType={"c": type_}, pkNames=None), **options)


def test_tencent_values() -> None:
    """Binary as hex text and TIMESTAMP with "+00:00" (§7.1) are both options."""
    assert {"c": "AP8="} == inserted("varbinary(9)", "00ff", binary="hex").after
    assert [Issue("c", "NOT_HEX", "0x1")] == inserted("blob", "0x1", binary="hex").issues
    assert {"c": "YWIA"} == inserted("binary(4)", "616200", binary="hex").after
    assert ["UNTYPED=c"] == inserted("point", "00", binary="hex").notes
    read = inserted("timestamp", "2024-05-06 07:08:09+00:00", timezone="UTC")
    assert {"c": "2024-05-06T07:08:09Z"} == read.after


@pytest.mark.requirement("canal.accept.6")
def test_oceanbase_values() -> None:
    """ENUM/SET are labels, and `mysqlType` is "" for null columns (§7.1)."""
    assert {"c": "2"} == inserted("enum('2','1')", "2", labels="text").after
    assert {"c": "2"} == inserted("set('2','1')", "2", labels="text").after
    assert {"c": "2,1"} == inserted("set('2','1')", "2,1", labels="text").after
    assert [Issue("c", "ENUM_UNKNOWN", "3")] == inserted("enum('a','b','c')", "3", labels="text").issues
    assert [Issue("c", "ENUM_UNKNOWN", "a")] == inserted("enum('a','b')", "a").issues
    null = inserted("", None, labels="text")
    assert ({"c": None}, ["UNTYPED=c"]) == (null.after, null.notes)


@pytest.mark.requirement("canal.accept.6")
def test_a_declared_form_of_bytes_is_no_assumption() -> None:
    """A declaration by the operator needs no note, but an undocumented form of DTS does."""
    assert ["BINARY_ASSUMED=latin1"] == inserted("blob", "a", profile="dts").notes
    assert inserted("blob", "a", profile="dts", binary="latin1").notes is None


def test_huawei_and_tencent_full_load() -> None:
    """INIT is a full load (§3.1). `sqlType` and `mysqlType` can be empty."""
    change = row(
        of_type("INIT", [NEW], sqlType={}, mysqlType={"id": "int", "name": "varchar", "n": "int"}), profile="dts"
    )
    assert ("r", {"id": 7, "name": "new", "n": None}) == (change.op, change.after)


def test_other_formats_are_not_taken_for_canal() -> None:
    """DataWorks "aliyun-json" has `schema` and `payload`, Pulsar wraps an array, and protobuf is not text (§11)."""
    assert "DataWorks" in refused({"schema": {}, "payload": {"after": {"dataColumn": {"id": 1}}}}).reason
    assert "MISSING_FIELD" == refused([{"id": 1}]).code
    assert "UNSUPPORTED_SHAPE" == refused([["id", 1]]).code
    assert "INVALID_FIELD" == refused(of_type("INSERT", [[{"columnName": "id", "columnValue": "1"}]])).code


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("Debezium", {"before": None, "after": {"id": 1}, "source": {"db": "shop"}, "op": "c"}),
        ("Maxwell", {"database": "shop", "table": "t", "type": "insert", "xid": 9, "commit": True, "data": {"id": 1}}),
        ("dialect is qlik", {"magic": "atMSG", "type": "DT", "message": {}}),
        ("dialect is shareplex", {"meta": {"op": "ins", "table": "A.B"}, "data": {"ID": "1"}}),
    ],
)
def test_other_formats_are_named(name: str, body: dict[str, Any]) -> None:
    """A format is recognized by a member that Canal JSON lacks. A message with a canal type is canal's."""
    found = refused(body)
    assert "UNSUPPORTED_SHAPE" == found.code
    assert name in found.reason
    assert isinstance(decode({**UPDATE, "xid": 7}), Changes)


def test_foreign_members_are_named() -> None:
    """The reason says who wrote the message and what to declare."""
    assert "TiCDC (member _tidb), but profile oss is declared; declare profile ticdc" in refused(TICDC).reason
    assert "InLong" in refused({**UPDATE, "opType": "UPDATE"}, profile="auto").reason
    assert "PostgreSQL" in refused({**UPDATE, "pgType": {"id": "int4"}}, profile="auto").reason
    assert isinstance(decode({**UPDATE, "pgType": None}, profile="auto"), Changes)
