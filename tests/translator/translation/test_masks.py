"""Masks of one source: the columns that a rule matches, their values, and related texts."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import Column, Ddl, Issue, TableSchema
from translator.config.mask_rules import MaskRule, folded
from translator.dialects import build
from translator.errors import ConfigError, MessageError
from translator.message import (
    DeclaredTable,
    Limits,
    Message,
    OtherChange,
    RowChange,
    Scalar,
    Setup,
    TableName,
    Writer,
)
from translator.translation.masking import SourceMasks
from translator.translation.translate import Events, Translator

KEY = b"a key of thirty-two random bytes"
PEOPLE = TableName("shop", None, "people")
TYPES = {"id": "int64", "ssn": "string", "born": "date", "pay": "decimal(9,2)"}


def masks(*rules: MaskRule, **given: Any) -> SourceMasks:
    return SourceMasks("src", rules, KEY, **given)


def schema(*, key_kind: str = "primary") -> TableSchema:
    columns = [Column(name, type_, False, 1 if name == "id" else None, type_, 9) for name, type_ in TYPES.items()]
    return TableSchema.of("src", "shop", None, "people", columns, key_kind)


def row(**changed: Any) -> RowChange:
    given: dict[str, Any] = {
        "table": PEOPLE,
        "after": {"id": 7, "ssn": "123-45-6789", "born": "1970-01-02", "pay": "12.50"},
        "key_columns": ("id",),
        "key_kind": "primary",
        "types": TYPES,
    }
    return RowChange("u", writer=Writer(), **{**given, **changed})


def masked(rule: MaskRule, **changed: Any) -> RowChange:
    change = masks(rule).apply(row(**changed))
    assert isinstance(change, RowChange)
    return change


def hashed(text: str) -> str:
    return hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()


class TestValues:
    @pytest.mark.parametrize(
        ("rule", "value", "expected"),
        [
            (MaskRule("hash"), "123", hashed("123")),
            (MaskRule("hash"), 123, hashed("123")),
            (MaskRule("hash"), True, hashed("true")),
            (MaskRule("hash"), 1.5, hashed("1.5")),
            (MaskRule("set_null"), "123", None),
            (MaskRule("truncate", length=2), "äbcd", "äb"),
            (MaskRule("truncate", length=4), "abcd", ""),
            (MaskRule("truncate", length=4), 12345, "1234"),
            (MaskRule("keep_last", length=4), "1234-5678", "5678"),
            (MaskRule("keep_last", length=4), "5678", ""),
            (MaskRule("replace", text="gone"), "abcd", "gone"),
        ],
    )
    def test_of_each_kind(self, rule: MaskRule, value: Scalar, expected: Scalar) -> None:
        """A partial value is never the whole one: a value no longer than the part is fully masked."""
        change = masked(rule, after={"ssn": value, "id": None}, key_columns=())
        assert change.after == {"ssn": expected, "id": None}

    def test_null_stays(self) -> None:
        """NULL contains no text. A key with NULL is not a key, masked or not."""
        for action in ("hash", "truncate", "keep_last", "replace"):
            rule = MaskRule(action, length=1, text="x")  # type: ignore[arg-type]  # one of the actions
            assert masked(rule, after={"ssn": None}, key_columns=()).after == {"ssn": None}

    def test_a_dropped_column_is_nowhere(self) -> None:
        change = masked(
            MaskRule("drop", column="ssn"),
            before={"id": 7, "ssn": "1"},
            changed=["ssn", "born"],
            unavailable=["ssn"],
            issues=[Issue("ssn", "NOT_TEXT", "1")],
            notes=["UNTYPED=ssn", "BEFORE_MERGED"],
            schema=schema(),
        )
        assert change.before == {"id": 7}
        assert change.after is not None
        assert "ssn" not in change.after
        assert (["born"], [], None) == (change.changed, change.unavailable, change.issues)
        assert ["BEFORE_MERGED", "MASKED"] == change.notes
        assert change.schema is not None
        assert ["id", "born", "pay"] == [column.name for column in change.schema.columns]

    def test_an_issue_stays_without_its_text(self) -> None:
        change = masked(MaskRule("hash", column="ssn"), issues=[Issue("ssn", "A", "1"), Issue("born", "B", "2")])
        assert [Issue("ssn", "A", None), Issue("born", "B", "2")] == change.issues

    def test_the_note_names_the_columns(self) -> None:
        assert ["MASKED=ssn"] == masked(MaskRule("hash", column="ssn")).notes
        assert None is masked(MaskRule("hash", column="other")).notes

    def test_the_schema_tells_text(self) -> None:
        """The schema has another id. The source's type and length belong to another text."""
        change = masked(MaskRule("hash", column="born"), schema=schema())
        assert change.schema is not None
        assert Column("born", "string", nullable=False) == change.schema.columns[2]
        assert change.schema.id != schema().id
        nulled = masked(MaskRule("set_null", column="born"), schema=schema())
        assert nulled.schema is not None
        assert Column("born", "date", nullable=True, length=9) == nulled.schema.columns[2]

    def test_a_schema_without_masks_is_the_same(self) -> None:
        whole = schema()
        assert masked(MaskRule("hash", column="other"), schema=whole).schema is whole


class TestNames:
    @pytest.mark.parametrize(
        "name",
        ["ssn", "SSN", "Ssn", "ＳＳＮ", "ßn", "s\u200bsn", "śsń", "ssn ", "s\u0301sn", "ſsn", "𝐬𝐬𝐧"],
    )
    def test_in_doubt_a_column_is_masked(self, name: str) -> None:
        """Names match despite differences in case, Unicode form, accents, invisible characters and trailing spaces."""
        change = masked(MaskRule("set_null", column="ssn"), after={name: "1"}, key_columns=())
        assert change.after == {name: None}

    @pytest.mark.parametrize("pattern", ["SSN", "s?n", "*SN", "Śsn", "ssn"])
    def test_so_it_is_with_patterns(self, pattern: str) -> None:
        assert masked(MaskRule("set_null", column=pattern), after={"ssn": "1"}, key_columns=()).after == {"ssn": None}

    def test_a_question_mark_is_one_character_as_written(self) -> None:
        change = masked(MaskRule("set_null", column="stra?e"), after={"straße": "1"}, key_columns=())
        assert change.after == {"straße": None}

    def test_brackets_are_no_pattern(self) -> None:
        after: Any = {"a[1]": "x", "a1": "y"}
        change = masked(MaskRule("set_null", column="a[1]"), after=after, key_columns=())
        assert change.after == {"a[1]": None, "a1": "y"}

    @pytest.mark.parametrize(
        ("pattern", "table"),
        [
            ("shop.people", PEOPLE),
            ("SHOP.People", PEOPLE),
            ("*.people", PEOPLE),
            ("people", PEOPLE),
            ("shop.people", TableName(None, None, "people")),
            ("shop.dbo.people", TableName(None, "dbo", "people")),
            ("shop.dbo.people", TableName(None, None, "PEOPLE")),
            ("dbo.people", TableName("shop", "dbo", "people")),
            ("shop.*", TableName(None, None, "people")),
        ],
    )
    def test_in_doubt_a_table_is_meant(self, pattern: str, table: TableName) -> None:
        """A level missing in the message or pattern counts as equal."""
        change = masks(MaskRule("set_null", table=pattern, column="ssn")).apply(row(table=table))
        assert isinstance(change, RowChange)
        assert change.after is not None
        assert None is change.after["ssn"]

    @pytest.mark.parametrize(
        ("pattern", "table"),
        [
            ("shop.people", TableName("crm", None, "people")),
            ("shop.*", TableName("crm", None, "people")),
            ("people", TableName("shop", None, "peoples")),
            ("shop.dbo.people", TableName("shop", "hr", "people")),
        ],
    )
    def test_another_table_is_not(self, pattern: str, table: TableName) -> None:
        assert masks(MaskRule("set_null", table=pattern)).of_table(table) is None

    def test_an_exemption_fits_by_its_very_name(self) -> None:
        rules = (MaskRule("keep", table="shop.people", column="ssn"), MaskRule("set_null", column="ssn"))
        assert masks(*rules).apply(row()) == row()
        for name, table in (("SSN", PEOPLE), ("ssn", TableName(None, None, "people")), ("ssn ", PEOPLE)):
            change = masks(*rules).apply(row(table=table, after={name: "1"}, key_columns=()))
            assert isinstance(change, RowChange)
            assert change.after == {name: None}

    def test_the_first_rule_decides(self) -> None:
        rules = (MaskRule("replace", column="s*", text="x"), MaskRule("hash", column="ssn"))
        change = masks(*rules).apply(row())
        assert isinstance(change, RowChange)
        assert change.after is not None
        assert "x" == change.after["ssn"]

    @given(st.text(max_size=8))
    def test_folding_is_done_once(self, name: str) -> None:
        """Folding is idempotent, so a pattern and a name have the same form."""
        assert folded(folded(name)) == folded(name)


class TestTypes:
    def test_by_type(self) -> None:
        change = masked(MaskRule("set_null", type="decimal*"))
        assert change.after == {"id": 7, "ssn": "123-45-6789", "born": "1970-01-02", "pay": None}

    def test_a_column_without_type_is_masked(self) -> None:
        """Deletes of some writers have no types, nor do undeclared messages. Then every rule by type could apply."""
        change = masked(MaskRule("set_null", type="date"), types={"id": "int64", "born": "unknown"})
        assert change.after == {"id": 7, "ssn": None, "born": None, "pay": None}

    def test_an_exemption_by_type_needs_the_type(self) -> None:
        rules = (MaskRule("keep", type="date"), MaskRule("set_null", column="born"))
        known, unknown = masks(*rules).apply(row()), masks(*rules).apply(row(types={"id": "int64"}))
        assert isinstance(known, RowChange)
        assert isinstance(unknown, RowChange)
        assert (known.after or {})["born"] == "1970-01-02"
        assert None is (unknown.after or {})["born"]

    def test_a_type_that_there_is_not(self) -> None:
        with pytest.raises(ConfigError, match="unknown type 'text'"):
            masks(MaskRule("drop", type="text"))
        masks(MaskRule("drop", type="decimal(10,2)"))


CANAL = {
    "data": [{"id": "7", "ssn": "1", "born": "1970-01-02"}],
    "database": "shop",
    "table": "people",
    "type": "DELETE",
    "isDdl": False,
    "sql": "",
    "es": 1,
    "ts": 1,
    "id": 1,
    "mysqlType": {"id": "bigint", "ssn": "varchar(9)", "born": "date"},
    "pkNames": ["id"],
}
QLIK = {
    "magic": "atMSG",
    "type": "DT",
    "headers": None,
    "messageSchemaId": None,
    "messageSchema": None,
    "message": {
        "data": {"id": 7, "ssn": "1", "born": "1970-01-02", "extra": "x"},
        "beforeData": None,
        "headers": {"operation": "INSERT", "table": "people", "schema": "shop"},
    },
}
SHAREPLEX = {
    "meta": {"op": "ins", "table": "shop.people"},
    "data": {"id": "7", "ssn": "1", "born": "1970-01-02", "extra": "x"},
}


@pytest.mark.parametrize(
    ("dialect", "document", "options"),
    [
        ("canal", CANAL, {"profile": "oss"}),
        ("qlik", QLIK, {"untyped": "translate"}),
        ("shareplex", SHAREPLEX, {"preset": "quest"}),
    ],
)
def test_types_are_known_without_a_schema(dialect: str, document: Any, options: dict[str, Any]) -> None:
    """In a delete, and in a row with an undeclared column, a rule by type masks what it masks elsewhere."""
    declared = DeclaredTable("shop.people", ("id",), {"id": "int64", "ssn": "string", "born": "date"})
    given = masks(MaskRule("set_null", type="date"))
    setup = Setup("src", tables=(declared,) if dialect != "canal" else ())
    translator = Translator("src", build(dialect, setup, options), Limits(), None, given)
    result = translator.translate(Message("t", 0, 0, 0, None, json.dumps(document).encode()))
    assert isinstance(result, Events), result
    (change,) = result.changes
    assert isinstance(change, RowChange)
    assert change.schema is None
    row = change.after or change.before or {}
    assert (7, "1", None, None) == (row["id"], row["ssn"], row["born"], row.get("extra"))


class TestKeys:
    def test_a_key_may_be_hashed_and_that_is_said(self) -> None:
        """There is one warning per table, because its rows are identified differently from then on."""
        said: list[str] = []
        given = masks(MaskRule("hash", column="id"), warn=said.append)
        for _ in range(2):
            change = given.apply(row())
            assert isinstance(change, RowChange)
            assert change.after is not None
            assert hashed("7") == change.after["id"]
        (text,) = said
        assert "source src, table 'shop.people': key columns are hashed (id): outputs identify rows by hashes" in text

    @pytest.mark.parametrize("action", ["drop", "set_null", "truncate", "keep_last", "replace"])
    def test_nothing_else(self, action: Any) -> None:
        with pytest.raises(MessageError, match=f"column 'id' is part of the key, and a rule applies {action}"):
            masked(MaskRule(action, column="ID", length=1))

    def test_a_type_that_nobody_knows_decides_about_no_key(self) -> None:
        """Messages with the type would identify the row differently."""
        with pytest.raises(MessageError, match="column 'id' is part of the key, and a mask rule depends on its type"):
            masked(MaskRule("hash", type="string"), types={})

    def test_declared_keys_are_looked_at_first(self) -> None:
        given = masks(MaskRule("drop", column="id"))
        with pytest.raises(ConfigError, match="column 'id' is part of the key"):
            given.check_declared(DeclaredTable("shop.people", ("id",)))
        masks(MaskRule("drop", type="date")).check_declared(DeclaredTable("shop.people", ("id",)))

    def test_a_hash_needs_a_key(self) -> None:
        with pytest.raises(ConfigError, match=r"masks\.key is not set"):
            SourceMasks("src", [MaskRule("hash")])


CLEAR = {"id": 7, "born": "1970-01-02"}


class TestRowsAfterClearOnes:
    """The fast path for common rows never skips a mask, even if a row differs in only one place."""

    @pytest.mark.parametrize(
        "changed",
        [
            {"before": {**CLEAR, "ssn": "1"}},
            {"after": {**CLEAR, "ssn": "1"}},
            {"changed": ["ssn"]},
            {"unavailable": ["ssn"]},
            {"issues": [Issue("ssn", "A", "1")]},
            {"schema": schema()},
            {"ext": {"userid": "u"}},
        ],
        ids=lambda changed: next(iter(changed)),
    )
    def test_one_place(self, changed: dict[str, Any]) -> None:
        clear = {"after": {**CLEAR}, "before": {**CLEAR}, "changed": ["born"], "unavailable": ["born"]}
        given = masks(MaskRule("drop", column="ssn"))
        for _ in range(3):
            assert given.apply(row(**clear)) == row(**clear)
        if "schema" in changed:  # of another list of types, which must also be met once
            given.apply(row(**clear, **changed))
        left = given.apply(row(**{**clear, **changed}))
        assert isinstance(left, RowChange)
        assert "ssn" not in repr((left.before, left.after, left.changed, left.unavailable, left.issues, left.schema))
        assert None is left.ext
        assert left.notes == ["MASKED"] or "schema" in changed

    def test_of_a_known_table(self) -> None:
        """Members that nobody translated can name columns of no table."""
        columns = [Column("id", "int64"), Column("born", "date")]
        clear = TableSchema.of("src", "shop", None, "people", columns, "none")
        given = masks(MaskRule("drop", column="ssn"))
        for ext in ({"userid": "u"}, {"userid": "u"}, {"userid": "u", "$.key": '{"ssn":"1"}'}):
            left = given.apply(row(after={**CLEAR}, schema=clear, ext=ext))
            assert isinstance(left, RowChange)
            assert {"userid": "u"} == left.ext

    def test_another_key(self) -> None:
        given = masks(MaskRule("drop", column="ssn"))
        for _ in range(2):
            given.apply(row(after={**CLEAR}))
        with pytest.raises(MessageError, match="column 'ssn' is part of the key"):
            given.apply(row(after={**CLEAR}, key_columns=("ssn",)))


class TestWhatStandsBeside:
    def test_ext_of_a_table_with_masks(self) -> None:
        """The writer can add anything to a row. If no column is masked, only known members are kept."""
        rule = MaskRule("hash", column="ssn")
        assert None is masked(rule, ext={"userid": "u"}).ext
        clear = TableSchema.of("src", "shop", None, "people", [Column("id", "int64")], "none")
        sent = {"userid": "u", "$.key": '{"ssn":"1"}', "UPDATE BEFORE $.x": "1"}
        change = masked(rule, ext=sent, after={"id": 1}, schema=clear)
        assert ({"userid": "u"}, ["MASKED"]) == (change.ext, change.notes)

    def test_text_of_statements(self) -> None:
        """This holds for every table of the source, because a statement can contain a value of any."""
        ddl = Ddl("ALTER", "ALTER TABLE x ADD c TEXT DEFAULT '123-45-6789'", ["x"], parsed=True)
        change = OtherChange("schema", Writer(), TableName("shop", None, "x"), ddl=ddl, ext={"tag.sql": "123-45-6789"})
        left = masks(MaskRule("hash", table="shop.people", column="ssn")).apply(change)
        assert "123-45-6789" not in json.dumps([str(left)])
        assert isinstance(left, OtherChange)
        assert (Ddl("ALTER", None, ["x"], parsed=True), ["MASKED"]) == (left.ddl, left.notes)

    @pytest.mark.parametrize(
        ("rule", "after", "notes"),
        [
            (MaskRule("hash", column="ssn"), {"n": 1}, ["COLUMN_REWRITTEN=ssn", "DEFAULT_FILLED=n:int32", "MASKED"]),
            (MaskRule("drop", column="ssn"), {"n": 1}, ["DEFAULT_FILLED=n:int32", "MASKED"]),
            (
                MaskRule("hash", column="n"),
                {"ssn": "1-2"},
                ["DEFAULT_FILLED=ssn:string", "COLUMN_REWRITTEN=n", "MASKED"],
            ),
            (
                MaskRule("keep", column="ssn"),
                {"ssn": "1-2", "n": 1},
                ["DEFAULT_FILLED=ssn:string", "DEFAULT_FILLED=n:int32"],
            ),
        ],
    )
    def test_the_default_of_an_added_column(self, rule: MaskRule, after: Any, notes: list[str]) -> None:
        """The default is a value of every row. Readers learn that one exists, and nothing about a dropped column."""
        sent = {"ssn": "1-2", "n": 1}
        told = ["DEFAULT_FILLED=ssn:string", "DEFAULT_FILLED=n:int32"]
        change = OtherChange("schema", Writer(), PEOPLE, ddl=Ddl("ALTER"), notes=told, after=sent)
        left = masks(rule, MaskRule("hash", column="other")).apply(change)
        assert isinstance(left, OtherChange)
        assert (after, notes) == (left.after, left.notes)

    def test_labels_of_a_new_type(self) -> None:
        """The labels of a masked column are its values."""
        told = ["COLUMN_RETYPED=ssn:enum('1-2')", "COLUMN_RETYPED=n:enum('a')"]
        change = OtherChange("schema", Writer(), PEOPLE, ddl=Ddl("ALTER"), notes=told)
        left = masks(MaskRule("hash", column="ssn")).apply(change)
        assert isinstance(left, OtherChange)
        assert ["COLUMN_REWRITTEN=ssn", "COLUMN_RETYPED=n:enum('a')", "MASKED"] == left.notes

    def test_an_announced_schema(self) -> None:
        change = OtherChange("schema", Writer(), PEOPLE, ddl=Ddl("metadata"), schema=schema())
        left = masks(MaskRule("drop", column="ssn")).apply(change)
        assert isinstance(left, OtherChange)
        assert left.schema is not None
        assert "ssn" not in left.schema.column_names
