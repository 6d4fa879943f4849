"""Statements: the policy for each note, and types that hold all values of others."""

from __future__ import annotations

import pytest

from spark_sink.errors import Reason
from spark_sink.schema.native_types import holds_native
from spark_sink.schema.statement_rules import StatementRules, answer_to
from tests.spark_sink.changes import schema_of


@pytest.mark.parametrize(
    ("old", "new", "holds"),
    [
        ("varchar(10)", "varchar(20)", True),
        ("varchar(20)", "varchar(10)", False),
        ("varchar(10)", "varchar(10)", True),
        ("VARCHAR(10)", "varchar(10)", True),
        ("varchar(10)", "text", True),
        ("varchar(65535)", "text", False),
        ("varchar(10)", "char(10)", False),
        ("char(5)", "varchar(5)", True),
        ("text", "varchar(20)", False),
        ("text", "longtext", True),
        ("longtext", "text", False),
        ("int(11)", "bigint", True),
        ("int", "bigint(20) unsigned", False),
        ("int unsigned", "bigint", True),
        ("tinyint(1)", "boolean", True),
        ("boolean", "boolean", True),
        ("bigint", "int", False),
        ("int", "varchar(20)", False),
        ("INT32", "bigint", True),
        ("INT32", "bigint unsigned", False),
        ("int8", "int8", True),
        ("int4", "bigint", True),
        ("decimal(9,2)", "decimal(12,4)", True),
        ("decimal(9,2)", "decimal(9,4)", False),
        ("decimal(9,2)", "decimal(11,4)", True),
        ("decimal(9,2)", "decimal(12,2)", True),
        ("decimal(9,2)", "decimal(12,1)", False),
        ("numeric", "numeric(9,2)", False),
        ("numeric(9,2)", "numeric", True),
        ("int", "decimal(12,2)", True),
        ("int", "decimal(10,2)", False),
        ("float", "double", True),
        ("double", "float", False),
        ("datetime", "datetime(6)", True),
        ("datetime(6)", "datetime", False),
        ("date", "datetime", False),
        ("enum('a','b')", "enum('a','b','c')", True),
        ("enum('a','b')", "enum('a')", False),
        ("VAR_STRING", "varchar(20)", False),
        (None, "varchar(20)", False),
        ("geometry(point,4326)", "?", False),
    ],
)
def test_types_of_sources(old: str | None, new: str, *, holds: bool) -> None:
    """An unknown type counts as not holding the values, because rows may have changed."""
    assert holds is holds_native(new, old)


ROWS, DROP = Reason.ROWS_UNACCOUNTED, Reason.TABLE_DROPPED


@pytest.mark.parametrize(
    ("note", "rules", "parks", "parks_all"),
    [
        ("STATEMENT_NOT_APPLIED", StatementRules(), ROWS, ROWS),
        ("STATEMENT_NOT_APPLIED", StatementRules(park_statements=False), None, None),
        ("TABLE_DROPPED", StatementRules(), DROP, DROP),
        ("TABLE_DROPPED", StatementRules(drops="keep"), None, None),
        ("TABLE_DROPPED", StatementRules(drops="empty"), None, DROP),
        ("COLUMN_REWRITTEN", StatementRules(), None, ROWS),
        ("COLUMN_REWRITTEN", StatementRules(park_rewrites=True), ROWS, ROWS),
        ("COLUMN_RETYPED", StatementRules(park_rewrites=True), ROWS, ROWS),
        ("CASCADE_NOT_LOGGED", StatementRules(), None, None),
        ("CASCADE_NOT_LOGGED", StatementRules(park_cascades=True), ROWS, ROWS),
        ("DEFAULT_FILLED", StatementRules(), None, None),
    ],
)
def test_policies(note: str, rules: StatementRules, parks: Reason | None, parks_all: Reason | None) -> None:
    """For all tables together, nobody can mark rows or empty them at a position."""
    assert (parks, parks_all) == (rules.parks(note), rules.parks_all(note))


def test_several_notes_of_one_statement() -> None:
    """The action for one note does not hide those for others."""
    notes = ["DEFAULT_FILLED=a:int32", "DEFAULT_FILLED=b:string", "COLUMN_REWRITTEN=c", "PK_CHANGED"]
    answer = answer_to(notes, {"a"}, StatementRules(), [])
    assert ({"a": "int32"}, True, None) == (answer.fills, answer.marks, answer.parks)
    assert {"DEFAULT_FILLED": 1, "COLUMN_REWRITTEN": 1} == answer.unaccounted


def test_a_type_is_wider_only_by_all_schemas() -> None:
    """If any known schema has a wider type, the change may narrow the column, so its rows are marked."""
    known = [schema_of({"id": "int64", "a": "string"}, natives={"a": f"varchar({n})"}) for n in (5, 20)]
    for length, marks in ((20, False), (10, True)):
        assert marks is answer_to([f"COLUMN_RETYPED=a:varchar({length})"], (), StatementRules(), known).marks
    assert answer_to(["COLUMN_RETYPED=other:varchar(99)"], (), StatementRules(), known).marks
