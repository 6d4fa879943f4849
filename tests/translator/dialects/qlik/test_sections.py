"""Renamed and flattened sections (Message Format, §1, variant V3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translator.dialects.qlik.avro import HEADERS, framed, record, registered, row, written
from tests.translator.dialects.qlik.messages import (
    SCHEMA_ID,
    SEQUENCE,
    bare,
    change,
    dialect,
    enveloped,
    message,
    metadata,
    refusal,
)
from translator.errors import ConfigError
from translator.message import Learned, Needs, TableName

ROW = {"id": 1, "name": "a"}
OLD = {"id": 1, "name": "b"}
IMAGES = ({"id": "1", "name": "b"}, {"id": "1", "name": "a"})
HEAD = {"operation": "UPDATE", "changeSequence": SEQUENCE, "changeMask": "02", "columnMask": "03"}


def prefixed(name: str, members: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a flattened section."""
    return {f"{name}_{member}": value for member, value in members.items()}


PREFIXED = {"data": ROW, "beforeData": OLD, **prefixed("headers", HEAD)}
BESIDE = {"data": ROW, "beforeData": OLD, **HEAD}
ALL_PREFIXED = {**prefixed("data", ROW), **prefixed("beforeData", OLD), **prefixed("headers", HEAD)}


# -- detected sections


@pytest.mark.requirement("qlik.decode.4")
@pytest.mark.parametrize("body", [PREFIXED, BESIDE, ALL_PREFIXED], ids=["prefixed", "beside", "all prefixed"])
@pytest.mark.parametrize("wrap", [enveloped, lambda body: {"message": body}, lambda body: body])
def test_flattened_headers(body: dict[str, Any], wrap: Any) -> None:
    """mongo-kafka's four forms: `headers_operation` or `operation`, enveloped, in a member `message` or bare."""
    read = change(dialect(), wrap(body))
    assert ("u", *IMAGES, SEQUENCE, ["name"]) == (read.op, read.before, read.after, read.pos_native, read.changed)
    assert ("custom_json", "inferred") == (read.writer.variant, read.writer.variant_basis)


@pytest.mark.parametrize("headers", [{"headers": HEAD}, prefixed("headers", HEAD), HEAD])
@pytest.mark.parametrize("wrap", [enveloped, lambda body: {"message": body}, lambda body: body])
def test_old_row_alone_is_flattened(headers: dict[str, Any], wrap: Any) -> None:
    """It is recognized next to sections that are objects, because it has the old key of a changed one."""
    read = change(dialect(), wrap({"data": ROW, **prefixed("beforeData", OLD), **headers}))
    assert (*IMAGES, "custom_json", "inferred") == (
        read.before,
        read.after,
        read.writer.variant,
        read.writer.variant_basis,
    )


def test_rows_alone_are_flattened() -> None:
    """The headers are an object, and both rows are flattened."""
    body = {**prefixed("data", ROW), **prefixed("beforeData", OLD), "headers": HEAD}
    for wrapped in (body, enveloped(body)):
        read = change(dialect(), wrapped)
        assert (*IMAGES, SEQUENCE) == (read.before, read.after, read.pos_native)


def test_default_sections_without_the_envelope_members() -> None:
    """A member `message` contains the default sections, as in mongo-kafka."""
    read = change(dialect(), {"message": bare("UPDATE", ROW, OLD)})
    assert (*IMAGES, "custom_json") == (read.before, read.after, read.writer.variant)


@pytest.mark.parametrize("operation", ["REFRESH", "INSERT", "UPDATE", "DELETE"])
@pytest.mark.parametrize("shape", ["prefixed", "beside", "all prefixed"])
def test_operations(operation: str, shape: str) -> None:
    """Each operation gives the same result as in the default form."""
    before = OLD if operation in ("UPDATE", "DELETE") else None
    flat_before = prefixed("beforeData", before or dict.fromkeys(OLD))
    body = {
        "prefixed": {"data": ROW, "beforeData": before, "headers_operation": operation},
        "beside": {"data": ROW, "beforeData": before, "operation": operation},
        "all prefixed": {**prefixed("data", ROW), **flat_before, "headers_operation": operation},
    }[shape]
    plain, read = change(dialect(), bare(operation, ROW, before)), change(dialect(), enveloped(body))
    assert (plain.op, plain.before, plain.after) == (read.op, read.before, read.after)


def test_metadata_is_awaited() -> None:
    """The envelope references the metadata, whatever the sections are called."""
    assert Needs(SCHEMA_ID) == dialect().decode(message(enveloped(PREFIXED, SCHEMA_ID)))


def test_table_beside_the_sections() -> None:
    """Fields of the Message Format also name the table next to flattened sections."""
    named = {"schema": "S", "table": "T"}
    for body in (PREFIXED | named, BESIDE | named, ALL_PREFIXED | named, PREFIXED | prefixed("headers", named)):
        assert TableName(None, "S", "T") == change(dialect(topics=None), enveloped(body)).table


def test_member_of_no_section() -> None:
    """If columns are next to other members, an unknown member may be a column, so the message is rejected."""
    assert "UNSUPPORTED_SHAPE" == refusal(dialect(), enveloped({**ALL_PREFIXED, "stray": 1}))[0]
    assert change(dialect(), enveloped({**PREFIXED, "stray": 1}))


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        ({**PREFIXED, "data": "text"}, "INVALID_FIELD", "$.message.data"),
        ({**BESIDE, "operation": 1}, "INVALID_FIELD", "$.message.headers.operation"),
        ({**BESIDE, "operation": "READ"}, "UNKNOWN_OPERATION", "$.message.headers.operation"),
        ({**PREFIXED, "headers_columnMask": "xy"}, "INVALID_FIELD", "$.message.headers.columnMask"),
        ({"data": ROW, "headers_operation": None}, "MISSING_FIELD", "$.message.headers.operation"),
        ({"headers_operation": "INSERT"}, "MISSING_FIELD", "$.message.data"),
    ],
)
def test_checks_are_those_of_the_default_form(body: dict[str, Any], code: str, path: str) -> None:
    """The checks are those of the default form."""
    assert (code, path) == refusal(dialect(), enveloped(body))


# -- declared sections


@pytest.mark.requirement("qlik.decode.4", "qlik.detect.2")
@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({}, {"data": ROW, "beforeData": OLD, "headers": HEAD}),
        ({"data": "row/", "before_data": "old/", "headers": "meta/"}, {"row": ROW, "old": OLD, "meta": HEAD}),
        ({"headers": "meta"}, {"data": ROW, "beforeData": OLD, **prefixed("meta", HEAD)}),
        ({"headers": ""}, BESIDE),
        (
            {"data": "new", "before_data": "old", "headers": "h"},
            {**prefixed("new", ROW), **prefixed("old", OLD), **prefixed("h", HEAD)},
        ),
        ({"data": "", "before_data": "old", "headers": "h"}, {**ROW, **prefixed("old", OLD), **prefixed("h", HEAD)}),
        ({"data": "", "before_data": "old/", "headers": ""}, {**ROW, "old": OLD, **HEAD}),
        (
            {"header_names": {"operation": "op", "changeSequence": "seq"}},
            {
                "data": ROW,
                "beforeData": OLD,
                "headers": {"op": "UPDATE", "seq": SEQUENCE, "changeMask": "02", "columnMask": "03"},
            },
        ),
        (
            {"headers": "h", "header_names": {"operation": "op"}},
            {"data": ROW, "beforeData": OLD, "h_op": "UPDATE", "h_changeSequence": SEQUENCE, "h_changeMask": "02"},
        ),
        (
            {"headers": "", "header_names": {"operation": "op"}},
            {"data": ROW, "beforeData": OLD, "op": "UPDATE", "changeSequence": SEQUENCE, "changeMask": "02"},
        ),
    ],
)
def test_declared(given: dict[str, Any], body: dict[str, Any]) -> None:
    """The operator names the sections as in the task's dialog."""
    for wrapped in (enveloped(body), body):
        read = change(dialect(message_format=given), wrapped)
        assert ("u", *IMAGES, SEQUENCE, ["name"]) == (read.op, read.before, read.after, read.pos_native, read.changed)
        assert ("custom_json", "declared") == (read.writer.variant, read.writer.variant_basis)


ODD_NAMES = ("magic", "lineage", "tableStructure", "messageSchemaId", "message", "data", "table", "schema")


@pytest.mark.parametrize("headers", ["", "h", "headers/"])
def test_columns_called_like_members(headers: str) -> None:
    """If columns are among the members, they can have the name of any of them."""
    cells = {"id": "1", **dict.fromkeys(ODD_NAMES, "x")}
    head = {"operation": "INSERT", "timestamp": "2023-09-11T03:23:25"}
    flat = {"": head, "h": prefixed("h", head), "headers/": {"headers": head}}[headers]
    reader = dialect(message_format={"data": "", "headers": headers})
    for wrapped in ({**cells, **flat}, enveloped({**cells, **flat})):
        read = change(reader, wrapped)
        assert (cells, 1694402605000000) == (read.after, read.ts_commit_us)
        assert TableName(None, "S", "T") == read.table


def test_added_headers_among_columns() -> None:
    """An added header must be declared. Otherwise it is a column."""
    body = {"id": "1", "operation": "INSERT", "of": "T2", "schema": "x"}
    given = {"data": "", "headers": "", "header_names": {"table": "of"}}
    read = change(dialect(message_format=given, topics=None), body)
    assert (TableName(None, None, "T2"), {"id": "1", "schema": "x"}) == (read.table, read.after)


def test_metadata_of_a_task_with_columns_among_members() -> None:
    """It has its own sections, whatever those of the rows are."""
    told = metadata({"id": {}})
    for wrapped in (told, told["message"]):
        assert isinstance(dialect(message_format={"data": ""}).decode(message(wrapped)), Learned)


@pytest.mark.parametrize("head", [{"op": "INSERT", "operation": "x"}, {"operation": "x", "op": "INSERT"}])
def test_renamed_header_beside_one_of_its_old_name(head: dict[str, Any]) -> None:
    """In any order, the declared name counts."""
    given = {"header_names": {"operation": "op"}}
    assert "c" == change(dialect(message_format=given), {"data": ROW, "headers": head}).op


@pytest.mark.requirement("qlik.decode.4")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"data": "x/", "before_data": "x/"}, "needs a unique name"),
        ({"data": "/"}, "needs a unique name"),
        ({"data": "", "before_data": ""}, "cannot both"),
        ({"data": "d", "before_data": "d_before"}, "cannot be distinguished"),
        ({"data": "d", "before_data": "d"}, "cannot be distinguished"),
        ({"data": "d", "headers": "d_h/"}, "cannot be distinguished"),
        ({"header_names": {"operation": "timestamp"}}, "the same name"),
        ({"header_names": {"operatoin": "op"}}, "did you mean operation"),
        ({"sections": "x"}, "sections"),
        ("x", "expected a mapping"),
    ],
)
def test_not_valid(given: Any, named: str) -> None:
    """A format in which a member could be in two sections stops the start."""
    with pytest.raises(ConfigError, match=named):
        dialect(message_format=given)


def test_lone_surrogate_in_a_renamed_row() -> None:
    """It is an issue of its column, as in the default form."""
    raw = b'{"row": {"id": 1, "name": "\\ud800"}, "headers": {"operation": "INSERT"}}'
    read = change(dialect(message_format={"data": "row/"}), raw)
    assert (["LONE_SURROGATE"], {"id": "1"}) == ([issue.code for issue in read.issues or ()], read.after)


# -- in Avro


def test_flattened_avro() -> None:
    """A writer schema with flattened headers is recognized by its fields."""
    data = record("Data", [("id", ["null", "int"]), ("name", ["null", "string"])])
    kinds = {"operation": "string", "changeSequence": "string", "columnMask": ["null", "bytes"]}
    flat = [(f"headers_{name}", kind) for name, kind in kinds.items()]
    schema = record("DataRecord", [("data", data), ("beforeData", ["null", "Data"]), *flat])
    cells = {"headers_operation": "UPDATE", "headers_changeSequence": SEQUENCE, "headers_columnMask": b"\1"}
    value = {"data": {"id": 1, "name": None}, "beforeData": None, **cells}
    read = row(registered({5: schema}, topics="S.T"), framed(5, written(schema, value)))
    assert ({"id": 1}, ["name"], SEQUENCE) == (read.after, read.unavailable, read.pos_native)
    assert ("confluent_avro", "inferred") == (read.writer.variant, read.writer.variant_basis)


@pytest.mark.requirement("qlik.decode.2")
def test_renamed_avro() -> None:
    """Types are found by the declared names."""
    data = record("Data", [("id", ["null", "int"]), ("day", ["null", {"type": "int", "logicalType": "date"}])])
    head = record("Meta", [("op", "string"), ("changeMask", ["null", "bytes"])])
    schema = record("DataRecord", [("row", data), ("old", ["null", "Data"]), ("meta", head)])
    given = {"data": "row/", "before_data": "old/", "headers": "meta/", "header_names": {"operation": "op"}}
    value = {"row": {"id": 1, "day": 0}, "old": None, "meta": {"op": "UPDATE", "changeMask": b"\2"}}
    read = row(registered({5: schema}, topics="S.T", message_format=given), framed(5, written(schema, value)))
    assert ({"id": 1, "day": "1970-01-01"}, ["day"], "declared") == (
        read.after,
        read.changed,
        read.writer.variant_basis,
    )


def test_flattened_columns_in_avro() -> None:
    """Columns can be fields of the record itself."""
    kinds = {"data_id": ["null", "int"], "data_day": ["null", {"type": "int", "logicalType": "date"}]}
    schema = record("DataRecord", [*kinds.items(), ("headers_operation", "string")])
    cells = {"data_id": 1, "data_day": 0, "headers_operation": HEADERS["operation"]}
    read = row(registered({5: schema}, topics="S.T"), framed(5, written(schema, cells)))
    assert {"id": 1, "day": "1970-01-01"} == read.after
