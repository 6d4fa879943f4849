"""Avro schemas that arrive with the data: which are accepted, and that none can do harm."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from translator.dialects._avro_schema import AvroType, parse_schema
from translator.errors import MessageError
from translator.message import Limits

LIMITS = Limits(columns=50, schema_depth=16, schema_text_bytes=200_000)


def parsed(schema: Any, limits: Limits = LIMITS) -> AvroType:
    """Return the type of a schema."""
    return parse_schema(schema if isinstance(schema, bytes) else json.dumps(schema).encode(), limits)


def refused(schema: Any, limits: Limits = LIMITS) -> MessageError:
    """Return the error that a schema raises."""
    with pytest.raises(MessageError) as caught:
        parsed(schema, limits)
    return caught.value


def record(*fields: tuple[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    """Return a record with these fields."""
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields], **more}


def types(schema: Any) -> dict[str, AvroType]:
    """Return the types of a record's fields."""
    return dict(parsed(schema).fields)


# -- accepted schemas


@pytest.mark.parametrize("kind", ["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
def test_primitives(kind: str) -> None:
    """A primitive can be wrapped in any number of objects."""
    assert AvroType(kind) == parsed(kind) == parsed({"type": kind}) == parsed({"type": {"type": kind}})


def test_names() -> None:
    """A name is looked up in the namespace of its use, which a record sets for its content."""
    inner = record(("x", "int"), name="Data")
    found = types(record(("data", inner), ("before", ["null", "Data"]), ("again", "a.b.Data"), namespace="a.b"))
    assert "a.b.Data" == found["data"].name
    assert "a.b" == found["data"].namespace
    assert found["data"] is found["before"].branches[1] is found["again"]


def test_empty_namespace() -> None:
    """An empty namespace ends the outer one."""
    inner = record(("x", "int"), name="Data", namespace="")
    assert "Data" == types(record(("data", inner), namespace="a.b"))["data"].name


@pytest.mark.requirement("qlik.decode.1")
@pytest.mark.parametrize("namespace", ["com.attunity.queue.msg.chips-qa.TSTDTA.CINMAD", "1.2.3", "ä.ö", "a b.c"])
def test_namespaces_of_any_letters(namespace: str) -> None:
    """Tasks, schemas and tables are not always valid Avro names, and appear unchanged in the namespace."""
    inner = record(("x", "int"), name="Data")
    schema = record(("data", inner), ("before", ["null", f"{namespace}.Data"]), namespace=namespace)
    assert namespace == parsed(schema).namespace


def test_column_that_is_called_like_a_record() -> None:
    """The schema of metadata has a record for every column, with the column's name."""
    column = record(("ordinal", "int"), name="Lineage")
    other = record(("ordinal", "long"), name="TableColumns")
    columns = record(("Lineage", column), ("TableColumns", other), name="TableColumns")
    lineage = record(("table", "string"), name="Lineage")
    found = types(record(("lineage", lineage), ("columns", columns)))
    assert ["ordinal"] == [name for name, _ in dict(found["columns"].fields)["Lineage"].fields]


def test_reference_to_a_name_of_two_definitions() -> None:
    """It is ambiguous which of them is meant."""
    twice = [("a", record(("x", "int"), name="X")), ("b", record(("x", "long"), name="X"))]
    assert "MALFORMED_AVRO" == refused(record(*twice, ("c", "X"))).code


def test_logical_types() -> None:
    """A logical type applies to its valid base types, and an unknown one is ignored."""
    found = types(
        record(
            ("a", {"type": "int", "logicalType": "date"}),
            ("b", {"type": "long", "logicalType": "date"}),
            ("c", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 6}),
            ("d", {"type": "int", "logicalType": "moon-phase"}),
            ("e", {"type": "bytes", "logicalType": "decimal", "precision": 4}),
            ("f", {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5}),
            ("g", {"type": "int", "logicalType": 5}),
        )
    )
    assert ["date", None, "decimal", None, "decimal", "decimal", None] == [type_.logical for type_ in found.values()]
    assert (20, 6) == (found["c"].precision, found["c"].scale)
    assert (4, 0) == (found["e"].precision, found["e"].scale)


def test_defaults_docs_and_aliases_are_left_alone() -> None:
    """Reading does not need them, whatever they contain."""
    plain = record(("a", ["null", "int"]))
    told = record(("a", ["null", "int"]), doc=5, aliases={"x": []})
    told["fields"][0] |= {"default": {"not": "a default"}, "doc": [], "order": "sideways"}
    assert parsed(plain) == parsed(told)


# -- invalid schemas


@pytest.mark.parametrize(
    "schema",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"type":"record","type":"record","name":"R","fields":[]}',
        b'{"type":"int"} {}',
        b"\xff",
        "Unknown",
        5,
        None,
        [],
        {},
        {"type": None},
        {"type": 5},
        [["null"]],
        ["null", ["int"]],
        {"type": "record", "name": "R"},
        {"type": "record", "fields": []},
        {"type": "record", "name": "", "fields": []},
        {"type": "record", "name": "R", "fields": {}},
        {"type": "record", "name": "R", "fields": [5]},
        {"type": "record", "name": "R", "fields": [{"name": "a"}]},
        {"type": "record", "name": "R", "fields": [{"type": "int"}]},
        {"type": "record", "name": "R", "namespace": 5, "fields": []},
        record(("a", "int"), ("a", "int")),
        {"type": "enum", "name": "E"},
        {"type": "enum", "name": "E", "symbols": []},
        {"type": "enum", "name": "E", "symbols": ["a b"]},
        {"type": "enum", "name": "E", "symbols": [5]},
        {"type": "enum", "name": "E", "symbols": ["A", "A"]},
        {"type": "fixed", "name": "F"},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "fixed", "name": "F", "size": True},
        {"type": "fixed", "name": "F", "size": 1.5},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": "2"},
        {"type": "bytes", "logicalType": "decimal", "precision": 10_000},
    ],
)
def test_no_schema(schema: Any) -> None:
    """An invalid schema is rejected as such without quoting its content at length."""
    error = refused(schema)
    assert "MALFORMED_AVRO" == error.code
    assert len(error.reason) < 300


@pytest.mark.requirement("qlik.decode.1")
@pytest.mark.parametrize("kind", [{"type": "array", "items": "null"}, {"type": "map", "values": "long"}])
def test_no_collections(kind: Any) -> None:
    """In an array or map, a count of a few bytes could stand for any number of zero-byte items."""
    assert "UNSUPPORTED_SHAPE" == refused(record(("a", ["null", kind]))).code


# -- hostile schemas


def nested(depth: int) -> Any:
    """Return records nested in records."""
    schema: Any = "int"
    for number in range(depth):
        schema = record(("a", schema), name=f"R{number}")
    return schema


def unfolding(levels: int, width: int) -> Any:
    """Return a record that is small as text and huge as a tree: each level has `width` of the level below."""
    schema: Any = record(("x", "null"), name="R0")
    for level in range(1, levels):
        below = [(f"f{n}", f"R{level - 1}") for n in range(1, width)]
        schema = record(("f0", schema), *below, name=f"R{level}")
    return schema


@pytest.mark.requirement("qlik.decode.1")
@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(nested(17), id="nested"),
        pytest.param(b'{"type":' * 5_000 + b'"int"' + b"}" * 5_000, id="wrapped"),
        pytest.param(b"[" * 90_000 + b"]" * 90_000, id="brackets"),
        pytest.param(record(("a", ["null", "R"])), id="itself"),
        pytest.param(record(("a", record(("b", "R"), name="S"))), id="itself in another"),
        pytest.param(unfolding(12, 12), id="unfolding"),
        pytest.param(record(*((f"c{n}", "null") for n in range(51))), id="fields"),
        pytest.param(["null"] * 51, id="branches"),
        pytest.param({"type": "enum", "name": "E", "symbols": [f"S{n}" for n in range(51)]}, id="symbols"),
        pytest.param({"type": "fixed", "name": "F", "size": 2**62}, id="fixed"),
        pytest.param(b" " * 200_001, id="text"),
    ],
)
def test_hostile_schema(schema: Any) -> None:
    """It is rejected before it is expanded, so neither the stack nor the memory grows with its meaning."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    tracemalloc.start()
    try:
        error = refused(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "LIMIT_EXCEEDED" == error.code
    assert peak < 20_000_000


def test_the_limit_is_named() -> None:
    """The error names the limit for schemas and not that for messages."""
    text = b'{"type":' * 5_000 + b'"int"' + b"}" * 5_000
    assert "limits.schema_depth is 16" in refused(text).reason
    assert "limits.json_depth" not in refused(text).reason


def test_limits_are_not_of_real_schemas() -> None:
    """A data record and metadata can have as many columns as allowed."""
    columns = [(f"c{n}", ["null", {"type": "string"}]) for n in range(50)]
    data = record(*columns, name="Data")
    assert parsed(record(("data", data), ("beforeData", ["null", "Data"])))
    members = [(name, "int") for name in ("ordinal", "type", "length", "precision", "scale", "key", "nullable")]
    assert parsed(record(("tableColumns", record(*((f"c{n}", record(*members, name=f"c{n}")) for n in range(50))))))
