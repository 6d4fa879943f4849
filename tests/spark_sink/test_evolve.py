"""What a table becomes, or why not."""

from __future__ import annotations

import pytest

from spark_sink.errors import Refused
from spark_sink.evolve import AddColumns, Column, Create, Shape, evolve
from spark_sink.names import TableId
from tests.spark_sink.changes import schema_of

TABLE = TableId("shop", "sales", None, "orders")
STORED = Shape(TABLE, (Column("id", "bigint"), Column("n", "int")), ("id",))


def test_no_table_is_created() -> None:
    """A table that is not there is created with all columns of the schemas and the key in key order."""
    schema = schema_of({"b": "string", "a": "int32", "n": "decimal(40,2)"}, ("a", "b"))
    shape, step = evolve(None, TABLE, [schema])
    assert Create(shape) == step
    assert ({"b": "string", "a": "int", "n": "string"}, ("a", "b")) == (shape.types, shape.key)


def test_new_columns_are_added() -> None:
    """Columns of any schema of the batch are added; what the newest dropped stays."""
    shape, step = evolve(
        STORED, TABLE, [schema_of({"id": "int64", "x": "date"}), schema_of({"id": "int64", "y": "json"})]
    )
    assert AddColumns((Column("x", "date"), Column("y", "string"))) == step
    assert ["id", "n", "x", "y"] == list(shape.types)


def test_nothing_to_do() -> None:
    """A schema that the table holds already asks for nothing, nor do columns that events name without one."""
    assert (STORED, None) == evolve(STORED, TABLE, [schema_of({"id": "int64", "n": "int32"})], ["n"], ["id"])


def test_without_schema_columns_are_strings() -> None:
    """Where no schema knows a column it is a string; where the table knows it, it is what it is."""
    shape, _ = evolve(None, TABLE, [], ["v"], ["id"])
    assert ({"id": "string", "v": "string"}, ("id",)) == (shape.types, shape.key)
    shape, step = evolve(STORED, TABLE, [], ["id", "n", "v"], ["id"])
    assert AddColumns((Column("v", "string"),)) == step


@pytest.mark.parametrize(
    ("columns", "key", "reason"),
    [
        ({"id": "int64", "n": "int64"}, ("id",), "the column n is int, its schema asks for bigint"),
        ({"id": "int64", "N": "int32"}, ("id",), "the columns n and N differ only by case"),
        ({"id": "int64", "a": "date", "A": "date"}, ("id",), "the columns a and A differ only by case"),
        ({"id": "int64", "n": "int32"}, ("id", "n"), r"the key changed from \(id\) to \(id, n\)"),
        ({"id": "int64", "a b": "date"}, ("id",), "a character that Delta Lake does not take"),
        ({"id": "int64", "_CDC_pos": "date"}, ("id",), "a name of the sink's own columns"),
    ],
)
def test_refusals(columns: dict[str, str], key: tuple[str, ...], reason: str) -> None:
    """Whatever is more than new columns is refused, with the reason."""
    with pytest.raises(Refused, match=reason):
        evolve(STORED, TABLE, [schema_of(columns, key)])


def test_no_key_is_refused() -> None:
    """A table without a key column cannot be a mirror."""
    with pytest.raises(Refused, match="no key column"):
        evolve(None, TABLE, [schema_of({"a": "string"}, ())])
    with pytest.raises(Refused, match="the key column id is not among the columns"):
        evolve(Shape(TABLE, (), ("id",)), TABLE, [])
