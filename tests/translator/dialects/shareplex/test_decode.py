"""SharePlex operations: how `data` and `key` are used (§3 and 4)."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.envelope import Ddl, Issue
from tests.translator.dialects.shareplex.messages import (
    BAND,
    KEYED,
    body,
    dialect,
    other,
    outcome,
    refusal,
    row,
    sample,
)
from translator.errors import FatalError
from translator.message import Limits, Skip, TableName

QUEST = dialect()
DTS = dialect(preset="dts")


# -- insert


@pytest.mark.requirement("shareplex.accept.5")
def test_insert_holds_what_was_sent() -> None:
    """The new image is `data`, with undeclared numbers as exact text, null as null, and "" not null."""
    change = row(
        QUEST, b'{"meta":{"op":"ins","table":"T"},"data":{"N":12345678901234567890123456789.10,"B":null,"C":""}}'
    )
    assert (change.op, change.before, change.schema) == ("c", None, None)
    assert change.after == {"N": "12345678901234567890123456789.10", "B": None, "C": ""}


@pytest.mark.requirement("shareplex.accept.7")
def test_omitted_columns_of_an_insert_stay_absent_without_a_declaration() -> None:
    """Nothing says that the column exists, so it is absent and not null, without a note."""
    change = row(QUEST, sample("quest_insert"))
    assert change.after == {"BAND_NAME": "Rush", "YEAR_START": "1974", "SORTED": "2024-05-24T15:58:48.000000000"}
    assert change.notes == ["KEY_UNDECLARED"]


@pytest.mark.requirement("shareplex.accept.7")
def test_omitted_columns_of_an_insert_are_null_when_declared() -> None:
    """Native Post omits NULLs from an insert. A declared schema shows which columns, and the event says so."""
    change = row(dialect(BAND), sample("quest_insert"))
    assert change.after is not None
    assert change.schema is not None
    assert list(change.after.items()) == [
        ("BAND_NAME", "Rush"),
        ("YEAR_START", 1974),
        ("SORTED", "2024-05-24T15:58:48.000000000"),
        ("YEAR_END", None),
    ]
    assert change.notes == ["NULLS_OMITTED"]


def test_a_value_with_an_issue_is_not_an_omitted_null() -> None:
    """A column that was sent without a faithful form stays absent. NULL would be invented."""
    value = {"BAND_NAME": "Rush", "YEAR_START": "soon", "YEAR_END": 1, "SORTED": None}
    change = row(dialect(BAND), body("ins", meta={"table": "PHUNT1013U1.X"}, data=value))
    assert change.after == {"BAND_NAME": "Rush", "YEAR_END": 1, "SORTED": None}
    assert change.issues == [Issue("YEAR_START", "NOT_AN_INTEGER", "soon")]
    assert change.notes is None


@pytest.mark.requirement("shareplex.accept.7")
def test_a_missing_key_column_is_never_filled_with_null() -> None:
    """No key column is NULL, so one that an insert lacks was not replicated."""
    change = row(dialect(BAND), body("ins", meta={"table": "PHUNT1013U1.X"}, data={"YEAR_START": 1}))
    assert change.after == {"YEAR_START": 1, "YEAR_END": None, "SORTED": None}


def test_an_undeclared_column_disproves_the_declaration() -> None:
    """A row with an undeclared column has no schema, and nothing is filled in. The declared types still apply."""
    value = {"BAND_NAME": "Rush", "YEAR_START": "1974", "GENRE": "prog"}
    change = row(dialect(BAND), body("ins", meta={"table": "PHUNT1013U1.X"}, data=value))
    assert change.schema is None
    assert change.after == {"BAND_NAME": "Rush", "YEAR_START": 1974, "GENRE": "prog"}
    assert change.notes == ["UNDECLARED_COLUMN=GENRE"]


# -- update


@pytest.mark.requirement("shareplex.accept.8")
def test_update_is_data_over_key() -> None:
    """`before` is `key` as sent, and `after` is `data`, completed from it. `changed` has the differences."""
    change = row(DTS, sample("dts_update"))
    assert change.before == {
        "MIO_LOG_ID": "32537893",
        "PLNMIO_REC_ID": "31557806",
        "POL_CODE": None,
        "CNTR_TYPE": None,
        "CNTR_NO": "1171201606syui26",
    }
    assert (change.after, change.after_sparse, change.changed) == ({"CNTR_NO": "1171201606"}, True, ["CNTR_NO"])


@pytest.mark.requirement("shareplex.accept.8")
def test_an_explicit_null_is_a_change() -> None:
    """A column set to NULL is null in `after` and changed, and its old value does not replace it."""
    change = row(DTS, body("upd", data={"A": None}, key={"ID": 1, "A": "x"}))
    assert (change.after, change.changed) == ({"A": None}, ["A"])


@pytest.mark.requirement("shareplex.accept.8")
def test_equal_values_are_not_a_change() -> None:
    """A column with the same value in both was just logged too. One missing in `key` counts as changed."""
    change = row(DTS, body("upd", data={"A": 1, "B": 2, "N": None}, key={"ID": 1, "A": 1, "N": None}))
    assert change.after == {"A": "1", "B": "2", "N": None}
    assert change.changed == ["B"]


@pytest.mark.requirement("shareplex.accept.8")
def test_unknown_old_values_stay_unknown() -> None:
    """A column that is only in `data` has no old value."""
    change = row(dialect(BAND), sample("quest_update"))
    assert change.before == {"BAND_NAME": "Rush"}
    assert change.after == {"YEAR_END": 2015}


# -- delete


@pytest.mark.requirement("shareplex.accept.11")
def test_delete_reads_data() -> None:
    """The old row of a delete is in `data`. Explicit nulls are kept, and nothing is filled in."""
    change = row(dialect(preset="dts", default_table="CL_BIZ1.MIO_LOG"), sample("dts_delete"))
    assert change.table == TableName(None, "CL_BIZ1", "MIO_LOG")
    assert (change.op, change.after) == ("d", None)
    assert change.before == {
        "MIO_LOG_ID": "32539739",
        "PLNMIO_REC_ID": "31557806",
        "POL_CODE": None,
        "CNTR_TYPE": None,
        "CG_NO": None,
    }


@pytest.mark.requirement("shareplex.accept.11")
def test_a_key_beside_a_deleted_row_is_kept_aside() -> None:
    """`key` is for updates. In a delete or an insert, it changes no image and goes into `ext`."""
    for op in ("del", "ins"):
        change = row(dialect(KEYED), body(op, data={"ID": 1}, key={"ID": 2.50}))
        assert (change.before or change.after) == {"ID": "1"}
        assert change.ext == {"$.key": '{"ID":2.5}'}
        assert change.notes == ["NOT_TRANSLATED=key"]


# -- other operations


@pytest.mark.requirement("shareplex.accept.13", "shareplex.accept.2")
@pytest.mark.parametrize("op", ["TRUNCATE", "truncate", "Truncate"])
def test_truncate_needs_no_row(op: str) -> None:
    """TRUNCATE is a row operation without images."""
    change = row(QUEST, body(op, data=None))
    assert (change.op, change.before, change.after, change.notes) == ("t", None, None, None)


@pytest.mark.requirement("shareplex.accept.13", "shareplex.accept.2")
@pytest.mark.parametrize("op", ["DROP COLUMN", "drop_column", "DropColumn"])
def test_drop_column_is_a_schema_change(op: str) -> None:
    """DROP COLUMN changes the table's structure. Its unknown content is kept as text."""
    change = other(QUEST, body(op, data={"COLUMN": "A"}))
    assert (change.kind, change.table, change.ddl) == ("schema", TableName(None, "A", "T"), Ddl("DROP COLUMN"))
    assert (change.ext, change.notes) == ({"$.data": '{"COLUMN":"A"}'}, ["NOT_TRANSLATED=data"])


@pytest.mark.requirement("shareplex.accept.2")
@pytest.mark.parametrize(("op", "code"), [("INSERT", "c"), ("Update", "u"), ("delete", "d")])
def test_documented_words_are_read(op: str, code: str) -> None:
    """The documented words mean the codes used in practice, in any case."""
    assert row(dialect(KEYED), body(op, data={"ID": 1})).op == code


@pytest.mark.requirement("shareplex.accept.2")
@pytest.mark.parametrize(("op", "code"), [("INS", "c"), ("Upd", "u"), ("DEL", "d"), ("dEl", "d")])
def test_codes_are_read_in_any_case(op: str, code: str) -> None:
    """A code in another case is the same code, as with the full words."""
    assert row(dialect(KEYED), body(op, data={"ID": 1})).op == code


def test_an_operation_by_option_goes_before_a_code_in_another_case() -> None:
    """The option is exact and decides only about its own spelling."""
    reader = dialect(KEYED, operations={"INS": "del"})
    assert [row(reader, body(op, data={"ID": 1})).op for op in ("INS", "Ins", "ins")] == ["d", "c", "c"]


@pytest.mark.requirement("shareplex.reject.3")
@pytest.mark.parametrize("op", ["i", "ıns", "in s", "insertt", "", "commit", "ddl", "del "])
def test_an_unknown_operation_is_refused_by_name(op: str) -> None:
    """An unknown operation is a dead letter with the operation and the known ones, but never a row."""
    code, reason, path = refusal(QUEST, body(op, data={"A": 1}))
    assert (code, path) == ("UNKNOWN_OPERATION", "$.meta.op")
    assert repr(op) in reason
    assert "del" in reason


# -- rejected messages


@pytest.mark.requirement("shareplex.reject.2", "shareplex.reject.3", "shareplex.reject.4", "shareplex.reject.5")
@pytest.mark.parametrize(
    ("message", "code", "path"),
    [
        ({"data": {"A": 1}}, "MISSING_FIELD", "$.meta"),
        ({"meta": [], "data": {"A": 1}}, "INVALID_FIELD", "$.meta"),
        ({"data": {"A": 1}, "type": "insert"}, "UNSUPPORTED_SHAPE", "$"),
        ({"meta": {"table": "A.T"}, "data": {"A": 1}}, "MISSING_FIELD", "$.meta.op"),
        (body(3, data={"A": 1}), "INVALID_FIELD", "$.meta.op"),
        (body("ins", meta={"table": None}, data={"A": 1}), "TABLE_UNKNOWN", "$.meta.table"),
        (body("ins", meta={"table": 5}, data={"A": 1}), "INVALID_FIELD", "$.meta.table"),
        (body("ins"), "MISSING_FIELD", "$.data"),
        (body("ins", data=[]), "INVALID_FIELD", "$.data"),
        (body("ins", data={}), "INVALID_FIELD", "$.data"),
        (body("del", data={}, key={"ID": 1}), "INVALID_FIELD", "$.data"),
        (body("upd", key={"ID": 1}), "MISSING_FIELD", "$.data"),
        (body("upd", data={}, key={}), "INVALID_FIELD", "$.data"),
        (body("upd", data={"A": 1}, key=7), "INVALID_FIELD", "$.key"),
        (body("ins", data={"A": {"secret": 1}}), "INVALID_FIELD", "$.data"),
        (body("upd", data={"A": 1}, key={"ID": ["secret"]}), "INVALID_FIELD", "$.key"),
    ],
)
def test_wrong_shapes_are_refused_where_they_are(message: dict[str, Any], code: str, path: str) -> None:
    """A missing or wrong part is reported by its path, without quoting a cell."""
    found, reason, where = refusal(QUEST, message)
    assert (found, where) == (code, path)
    assert "secret" not in reason


@pytest.mark.requirement("shareplex.reject.4")
def test_an_update_that_changes_nothing_is_an_update() -> None:
    """Empty `data` next to a key is well-formed and means that nothing changed."""
    change = row(QUEST, body("upd", data={}, key={"ID": 1}))
    assert (change.before, change.after, change.changed) == ({"ID": "1"}, {}, [])


@pytest.mark.requirement("shareplex.accept.15")
def test_columns_may_be_called_like_meta_words() -> None:
    """Members are not searched in deeper levels, so a column can be called `op` or `meta`."""
    assert row(QUEST, body("ins", data={"op": "x", "table": "y", "key": "z", "meta": "m"})).after == {
        "op": "x",
        "table": "y",
        "key": "z",
        "meta": "m",
    }


def test_too_many_columns_are_refused() -> None:
    """A row wider than the limit is a dead letter."""
    narrow = dialect(limits=Limits(columns=2))
    assert row(narrow, body("ins", data={"A": 1, "B": 2})).op == "c"
    assert refusal(narrow, body("ins", data={"A": 1, "B": 2, "C": 3}))[::2] == ("LIMIT_EXCEEDED", "$.data")


@pytest.mark.requirement("shareplex.accept.17")
def test_nothing_in_a_record_is_skipped_by_name() -> None:
    """A tombstone and an empty value have no content by design."""
    assert outcome(QUEST, None) == Skip("tombstone")
    assert outcome(QUEST, b"") == Skip("empty")


def test_nothing_is_learned() -> None:
    """Learning a document is a mistake of the caller."""
    with pytest.raises(FatalError):
        QUEST.learn("key", b"{}")
