"""Canal: the grammar of mysqlType, and the resulting schema (§7.3)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cdc_core.envelope import Column
from tests.translator.dialects.canal.messages import UPDATE, canal, of_type, row, rows, update
from translator.dialects.canal.mysql_type import parse
from translator.dialects.canal.types import Spelling, coding
from translator.message import DeclaredTable


def canonical(text: str, **spelling: Any) -> str:
    return coding(parse(text), Spelling(**spelling)).type


@pytest.mark.requirement("canal.accept.5")
@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("int8", "tinyint(1)"),
        ("int8", "BOOLEAN"),
        ("int8", "bool"),
        ("int8", "INT1"),
        ("int16", "int2"),
        ("int32", "int3"),
        ("int32", "middleint(9)"),
        ("int32", "int4"),
        ("uint64", "int8 unsigned"),
        ("float32", "float4"),
        ("float64", "float8"),
        ("string", "long"),
        ("string", "LONG VARCHAR"),
        ("bytes", "long varbinary"),
        ("string", "national varchar(9)"),
        ("string", "National Character Varying(9) collate utf8_bin"),
        ("string", "nchar varchar(9)"),
        ("string", "character varying(9)"),
        ("string", "char character set utf8mb4"),
        ("unknown", "char byte"),
        ("unknown", "national int"),
        ("uint8", "tinyint(3) unsigned"),
        ("int16", "SMALLINT"),
        ("uint16", "smallint(5) unsigned zerofill"),
        ("int32", "MEDIUMINT(9)"),
        ("uint32", "mediumint unsigned"),
        ("int32", "INTEGER"),
        ("int32", "int(11)"),
        ("uint32", "int(10) unsigned"),
        ("uint32", "int(5) zerofill"),
        ("int64", "bigint(20)"),
        ("uint64", "BIGINT(20) UNSIGNED"),
        ("uint64", "SERIAL"),
        ("float32", "FLOAT"),
        ("float32", "float(7,4)"),
        ("float32", "float(24)"),
        ("float64", "float(53)"),
        ("float64", "REAL"),
        ("float64", "double(10,3)"),
        ("float64", "DOUBLE PRECISION(10,7) unsigned zerofill"),
        ("decimal(8,0)", "DECIMAL(8, 0)"),
        ("decimal(40,3)", "FIXED(40,3)"),
        ("decimal(10,0)", "dec(10)"),
        ("decimal(65,30)", "numeric( 65 , 30 )"),
        ("decimal", "decimal"),
        ("unknown", "decimal(66,2)"),
        ("unknown", "decimal(10,2,1)"),
        ("unknown", "decimal(2,3)"),
        ("boolean", "bit(1)"),
        ("uint8", "bit(8)"),
        ("uint16", "bit(9)"),
        ("uint32", "bit(32)"),
        ("uint64", "BIT(64)"),
        ("uint64", "bit"),
        ("unknown", "bit(65)"),
        ("int16", "year(4)"),
        ("date", "date"),
        ("time", "time(6)"),
        ("timestamp", "datetime(3)"),
        ("timestamp", "timestamp"),
        ("string", "VARCHAR(255)"),
        ("string", "char(3) CHARACTER SET latin1 COLLATE latin1_bin"),
        ("string", "nchar(2)"),
        ("string", "nvarchar(2)"),
        ("string", "character(2)"),
        ("string", "longtext"),
        ("unknown", "varchar(20) charset binary"),
        ("unknown", "char(5) byte"),
        ("bytes", "binary(16)"),
        ("bytes", "VARBINARY(20)"),
        ("bytes", "mediumblob"),
        ("json", "json"),
        ("geometry", "point"),
        ("geometry", "geomcollection"),
        ("enum", "enum('a','b')"),
        ("set", "SET ( 'a' , 'b' )"),
        ("unknown", "enum"),
        ("unknown", r"enum('a\\b')"),
        ("unknown", "vector(3)"),
        ("unknown", ""),
        ("unknown", "   "),
        ("unknown", "(3)"),
        ("unknown", "int("),
        ("unknown", "int(11"),
        ("unknown", "int()"),
        ("unknown", "int(1,)"),
        ("unknown", "int(x)"),
        ("unknown", "int(999999999)"),
        ("unknown", "enum('a',1)"),
        ("unknown", "enum('a"),
        ("unknown", "int; drop"),
    ],
)
def test_the_canonical_type_of_a_mysql_type(type_: str, text: str) -> None:
    """Case and whitespace outside quotes do not matter. A text outside the grammar has no type, not even a guess."""
    assert type_ == canonical(text)


@pytest.mark.requirement("canal.accept.6")
def test_options_choose_two_types() -> None:
    """A zone makes TIMESTAMP an instant. tinyint(1) is a boolean only on request."""
    assert "timestamptz" == canonical("timestamp(6)", timezone="+08:00")
    assert "timestamp" == canonical("datetime(6)", timezone="+08:00")
    for text in ("tinyint(1)", "bool", "BOOLEAN"):
        assert "boolean" == canonical(text, tinyint1_as_boolean=True)
    for text in ("tinyint", "tinyint(4)", "tinyint(1) unsigned", "int(1)"):
        assert "boolean" != canonical(text, tinyint1_as_boolean=True)


@pytest.mark.requirement("canal.accept.5")
def test_labels_keep_quotes_commas_and_brackets() -> None:
    """A label can contain any character of a type, and doubled quotes are one (§7.3)."""
    parsed = parse("Enum('it''s','a,b','x) y','', 'UPPER') CHARSET utf8mb4")
    assert parsed is not None
    assert ("it's", "a,b", "x) y", "", "UPPER") == parsed.labels
    assert "enum('it''s','a,b','x) y','','UPPER') charset utf8mb4" == parsed.text
    assert "utf8mb4" == parsed.charset


def test_spellings_of_one_type_are_one_text() -> None:
    """The fingerprint of a schema does not depend on case and whitespace."""
    texts = ("DECIMAL(8, 0)  UNSIGNED", "decimal(8,0) unsigned", " Decimal ( 8,0 ) unsigned ")
    assert {"decimal(8,0) unsigned"} == {parsed.text for parsed in map(parse, texts) if parsed}


def test_a_hostile_type_text_costs_no_time() -> None:
    """The grammar is linear, so no text causes backtracking."""
    start = time.thread_time()  # CPU time, because the load of the machine is not the text's fault
    for text in ("'" * 100_001, "enum(" + "'a'," * 100_000, "(" * 100_000, "a " * 100_000, " " * 100_000 + "!"):
        assert "unknown" == canonical(text)
    assert time.thread_time() - start < 5


# -- the schema


def test_the_types_of_a_row_make_the_schema() -> None:
    """Columns are in the order of mysqlType, with type, key position, native text, length and charset."""
    types = {"b": "VARCHAR(9) CHARACTER SET utf8", "a": "int(11) unsigned", "c": ""}
    schema = row(of_type("INSERT", [{"b": "x", "a": "1", "c": None}], mysqlType=types, pkNames=["a", "b"])).schema
    assert schema is not None
    assert ("s", "shop", None, "orders", "primary") == (
        schema.source,
        schema.db,
        schema.schema,
        schema.table,
        schema.key_kind,
    )
    assert (
        Column("b", "string", key=2, native="varchar(9) character set utf8", length=9, charset="utf8"),
        Column("a", "uint32", key=1, native="int(11) unsigned"),
        Column("c", "unknown"),
    ) == schema.columns


@pytest.mark.parametrize(
    "members",
    [
        {"mysqlType": None},
        {"mysqlType": {}},
        {"mysqlType": {"id": "int", "name": "text"}},
        {"pkNames": ["id", "elsewhere"]},
    ],
)
def test_an_incomplete_column_list_makes_no_schema(members: dict[str, Any]) -> None:
    """If a column or key column of the row has no type, the list is incomplete."""
    assert row(UPDATE).schema is not None
    assert row(update(**members)).schema is None


@pytest.mark.requirement("canal.accept.5")
def test_columns_without_a_type_are_named() -> None:
    """A column missing in mysqlType or of unknown type is text, with a note."""
    types = {"id": "int", "name": "vector(3)"}
    change = row(of_type("INSERT", [{"id": "1", "name": "x", "n": "2"}], mysqlType=types))
    assert {"id": 1, "name": "x", "n": "2"} == change.after
    assert ["UNTYPED=name", "UNTYPED=n"] == change.notes


def test_a_schema_is_compiled_once() -> None:
    """Messages of one table share a schema."""
    dialect = canal()
    first, second = row(UPDATE, dialect), row(update(data=[{"id": "8", "name": "x", "n": "4"}]), dialect)
    assert first.schema is second.schema


# -- declared tables

DECLARED = DeclaredTable(
    "shop.orders",
    key=("id",),
    columns={"id": "uint64", "at": "timestamptz", "raw": "bytes", "state": "enum", "doc": "json"},
)
CELLS = {"id": "7", "at": "2024-05-06 07:08:09", "raw": "\u00ff", "state": "2", "doc": "{}"}


def test_declared_columns_stand_in_for_mysql_type() -> None:
    """Without mysqlType, the operator's columns provide types and schema, for values in canal's spelling."""
    dialect = canal(DECLARED, timezone="+08:00")
    change = row(of_type("INSERT", [CELLS], mysqlType=None, pkNames=None), dialect)
    assert {"id": "7", "at": "2024-05-05T23:08:09Z", "raw": "/w==", "doc": "{}"} == change.after
    assert ["LABEL_MISSING"] == [issue.code for issue in change.issues or ()]
    assert change.schema is not None
    assert list(DECLARED.columns or ()) == [column.name for column in change.schema.columns]
    assert ["TZ_ASSUMED=+08:00"] == change.notes


def test_mysql_type_is_the_better_reader_of_a_declared_column() -> None:
    """With partial images, the columns are declared. A sent type that matches still provides its labels."""
    dialect = canal(DECLARED, row_image="partial")
    types = {"id": "int", "state": "enum('open','done')"}
    change = row(of_type("INSERT", [{"id": "7", "state": "2"}], mysqlType=types), dialect)
    assert {"id": "7", "state": "done"} == change.after
    assert change.schema is not None


def test_declared_columns_give_way_to_a_complete_mysql_type() -> None:
    """The message knows the state of its table at that time."""
    dialect = canal(DECLARED)
    assert {"id": 7, "name": "new", "n": None} == row(UPDATE, dialect).after
    assert ["id", "name", "n"] == [column.name for column in rows(UPDATE, dialect)[0].schema.columns]  # type: ignore[union-attr]


def test_names_of_several_words_have_arguments() -> None:
    """The longest matching name counts, so that the length after it is found."""
    parsed = parse("NATIONAL CHARACTER VARYING (9) collate utf8_bin")
    assert parsed is not None
    assert ("national character varying", (9,)) == (parsed.name, parsed.numbers)
