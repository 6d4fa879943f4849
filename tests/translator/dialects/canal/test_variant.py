"""Canal: who wrote a message, and what its shape means: tables A, B and E of §6.5."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translator.dialects.canal.messages import FULL, UPDATE, of_type, other, refused, row, rows, update
from translator.errors import MessageError

NEW = {"id": "7", "name": "new", "n": None}
AFTER = {"id": 7, "name": "new", "n": None}
BEFORE = {"id": 7, "name": "old", "n": 1}
PROFILES = ("oss", "dts", "dts_legacy", "ticdc", "flink_cdc", "auto")
CONFLICT = ["VARIANT_CONFLICT"]


def read(body: dict[str, Any], profile: str) -> tuple[Any, ...]:
    """Return the variant, basis and notes of a row, or only the code of the refusal."""
    try:
        change = row(body, profile=profile)
    except MessageError as error:
        return (str(error.code),)
    return change.writer.variant, change.writer.variant_basis, change.notes


def read_images(body: dict[str, Any], profile: str) -> object:
    """Return the operation, new row and old row, or the code of the refusal."""
    try:
        change = row(body, profile=profile)
    except MessageError as error:
        return str(error.code)
    return change.op, change.after, change.before


def without(*names: str, **members: Any) -> dict[str, Any]:
    return {name: value for name, value in update(**members).items() if name not in names}


TIDB = {"commitTs": 429918007904436226}
BARE = without("id", "es", "ts", "sqlType", "mysqlType")
NATIVE = {**BARE, "data": [{"id": 7, "name": True, "n": 1.5}], "old": [{"n": 0}]}

PLAIN = {"id": "int", "name": "varchar", "n": "int"}

TABLE_A = [
    ("`_tidb` present -> TiCDC, certain", update(_tidb=TIDB), "auto", ("ticdc", "certain", None)),
    ("`_tidb` present -> TiCDC, certain", update(_tidb=TIDB), "ticdc", ("ticdc", "declared", None)),
    ("`_tidb` present -> TiCDC, certain", update(_tidb=None), "oss", ("UNSUPPORTED_SHAPE",)),
    ("`_tidb` present -> TiCDC, certain", update(_tidb=TIDB), "dts", ("UNSUPPORTED_SHAPE",)),
    ("type TIDB_WATERMARK -> TiCDC", of_type("TIDB_WATERMARK"), "flink_cdc", ("UNSUPPORTED_SHAPE",)),
    ("`pgType` present -> Volcengine, certain", update(pgType=None), "auto", ("volcengine", "certain", None)),
    ("`pgType` present -> Volcengine, certain", update(pgType=None), "oss", ("UNSUPPORTED_SHAPE",)),
    ("`pgType` present -> Volcengine, certain", update(pgType={"id": "int"}), "auto", ("UNSUPPORTED_SHAPE",)),
    ("`opType`/`updateBefore` present -> InLong", update(opType="U"), "auto", ("UNSUPPORTED_SHAPE",)),
    ("`opType`/`updateBefore` present -> InLong", update(updateBefore=None), "oss", ("UNSUPPORTED_SHAPE",)),
    ("type INIT or DDL -> a cloud DTS, not OSS", of_type("INIT", [NEW]), "auto", ("dts", "certain", None)),
    ("type INIT or DDL -> a cloud DTS, not OSS", of_type("INIT", [NEW]), "dts", ("dts", "declared", None)),
    ("type INIT or DDL -> a cloud DTS, not OSS", of_type("INIT", [NEW]), "oss", ("oss", "declared", CONFLICT)),
    ("type INIT or DDL -> a cloud DTS, not OSS", of_type("INIT", [NEW]), "ticdc", ("ticdc", "declared", CONFLICT)),
    ("`id` = 0 -> not OSS", update(id=0), "oss", ("oss", "declared", CONFLICT)),
    ("`id` = 0 -> not OSS", update(id=0), "ticdc", ("ticdc", "declared", None)),
    ("`id` = 0 -> not OSS", update(id=0), "auto", ("ticdc", "inferred", None)),
    ("`es` not a multiple of 1000 -> not OSS", update(es=1700000000001), "oss", ("oss", "declared", CONFLICT)),
    ("`es` not a multiple of 1000 -> not OSS", update(es=1700000000001), "dts", ("dts", "declared", None)),
    ("`es` not a multiple of 1000 -> not OSS", update(es=1700000000001), "auto", ("dts", "inferred", None)),
    ("non-string cell -> Flink family", NATIVE, "flink_cdc", ("flink_cdc", "declared", ["UNTYPED"])),
    ("non-string cell -> Flink family", NATIVE, "oss", ("INVALID_FIELD",)),
    ("non-string cell -> Flink family", NATIVE, "ticdc", ("INVALID_FIELD",)),
    (
        "non-string cell -> Flink family",
        update(data=[{"id": 7, "n": 1}], old=[{"n": 0}]),
        "auto",
        ("flink_cdc", "inferred", None),
    ),
    ("`id`,`es`,`ts`,`sqlType` all missing", BARE, "oss", ("oss", "declared", ["UNTYPED", *CONFLICT])),
    ("`id`,`es`,`ts`,`sqlType` all missing", without("id", "es", "ts"), "oss", ("oss", "declared", None)),
    ("`id`,`es`,`ts`,`sqlType` all missing", BARE, "flink_cdc", ("flink_cdc", "declared", ["UNTYPED"])),
    ("`id`,`es`,`ts`,`sqlType` all missing", BARE, "auto", ("flink_cdc", "inferred", ["UNTYPED"])),
    # Inferred marks decide nothing.
    ("`mysqlType` without parameters", update(mysqlType=PLAIN), "oss", ("oss", "declared", None)),
    ("DTS messages with `ts` < 2022-03-20", update(ts=1600000000000), "dts", ("dts", "declared", None)),
]


@pytest.mark.requirement("canal.accept.6")
@pytest.mark.parametrize(("line", "body", "profile", "expected"), TABLE_A, ids=[f"{a[0]}-{a[2]}" for a in TABLE_A])
def test_table_a_marks(line: str, body: dict[str, Any], profile: str, expected: tuple[Any, ...]) -> None:
    """Marks in a single message identify its writer, under each declaration that the line concerns."""
    assert expected == read(body, profile)


def test_a_ddl_type_names_its_writer() -> None:
    """type INIT or DDL -> a cloud DTS; CREATE, ALTER … with isDdl true -> not Alibaba DTS, inferred."""
    sql = "CREATE TABLE orders (id int)"
    ddl = other(of_type("DDL", sql=sql, isDdl=True), profile="auto")
    create = other(of_type("CREATE", sql=sql, isDdl=True), profile="auto")
    assert [("dts", "certain"), ("oss", "inferred")] == [
        (change.writer.variant, change.writer.variant_basis) for change in (ddl, create)
    ]


NOTHING = (None, "absent", [], [None], [{}])


def shaped(type_: str, data: Any, old: Any) -> dict[str, Any]:
    body = of_type(type_, data, old)
    for name in ("data", "old"):
        if body[name] == "absent":
            del body[name]
    return body


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("old", NOTHING)
@pytest.mark.parametrize("type_", ["INSERT", "INIT"])
def test_table_b_new_row_in_data(type_: str, old: Any, profile: str) -> None:
    """INSERT / INIT | D, no O (null, absent, [], [null], [{}]) | after = data | certain (all known writers)"""
    change = row(shaped(type_, [NEW], old), profile=profile)
    assert (AFTER, None) == (change.after, change.before)


@pytest.mark.requirement("canal.reject.4")
@pytest.mark.parametrize("type_", ["INSERT", "INIT"])
def test_table_b_new_row_in_old(type_: str) -> None:
    """INSERT / INIT | O only | undocumented legacy? | **ambiguous** -> quarantine (but a declaration decides it)"""
    assert "AMBIGUOUS_VARIANT" == refused(of_type(type_, None, [NEW]), profile="auto").code
    assert AFTER == row(of_type(type_, None, [NEW]), profile="dts_legacy").after


@pytest.mark.requirement("canal.reject.4")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("type_", ["INSERT", "INIT"])
def test_table_b_new_row_in_both(type_: str, profile: str) -> None:
    """INSERT / INIT | both | undocumented | quarantine"""
    assert "UNSUPPORTED_SHAPE" == refused(of_type(type_, [NEW], [FULL]), profile=profile).code


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("old", NOTHING)
def test_table_b_deleted_row_in_data(old: Any, profile: str) -> None:
    """DELETE | D, no O | before = data; OSS-like/current | certain"""
    change = row(shaped("DELETE", [FULL], old), profile=profile)
    assert ("d", BEFORE, None) == (change.op, change.before, change.after)
    variant, basis = DELETED_IN_DATA.get(profile, (profile, "declared"))
    assert (variant, basis) == (change.writer.variant, change.writer.variant_basis)


DELETED_IN_DATA = {
    "dts": ("dts", "certain"),
    "dts_legacy": ("dts", "certain"),
    "drs": ("dts", "inferred"),
    "auto": ("oss", "inferred"),
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("data", [None, "absent", []])
def test_table_b_deleted_row_in_old(data: Any, profile: str) -> None:
    """DELETE | O, no D | before = old; legacy DTS | certain (any single image on a DELETE is the deleted row)

    Since Huawei DRS does so too, only a declared DTS makes it certain.
    """
    change = row(shaped("DELETE", data, [FULL]), profile=profile)
    basis = "certain" if profile.startswith("dts") else "inferred"
    expected = ("drs", "declared") if profile == "drs" else ("dts_legacy", basis)
    assert (BEFORE, *expected) == (change.before, change.writer.variant, change.writer.variant_basis)
    assert (profile not in ("dts_legacy", "drs", "auto")) == ("VARIANT_CONFLICT" in (change.notes or ()))


@pytest.mark.parametrize(("profile", "basis"), [("flink_cdc", "declared"), ("auto", "inferred")])
@pytest.mark.parametrize("row_in_old", [{"id": "7"}, {"id": 7}])
def test_a_deleted_row_in_old_is_not_of_dts_where_its_marks_exclude_it(
    row_in_old: dict[str, Any], profile: str, basis: str
) -> None:
    """DTS never omits `id`, `es` and `ts`, so the place of the row does not reveal its form."""
    change = row({**BARE, "type": "DELETE", "data": None, "old": [row_in_old]}, profile=profile)
    assert ("d", {"id": "7"}, ["UNTYPED"]) == (change.op, change.before, change.notes)
    assert ("flink_cdc", basis) == (change.writer.variant, change.writer.variant_basis)


@pytest.mark.requirement("canal.reject.4")
@pytest.mark.parametrize("profile", PROFILES)
def test_table_b_deleted_row_in_both(profile: str) -> None:
    """DELETE | both, equal row by row | before = data; TiCDC < 5.4 wrote this | and: both, different | reject"""
    assert BEFORE == row(of_type("DELETE", [FULL], [FULL]), profile=profile).before
    assert "AMBIGUOUS_VARIANT" == refused(of_type("DELETE", [FULL], [NEW]), profile=profile).code


@pytest.mark.requirement("canal.reject.4")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("type_", ["INSERT", "UPDATE", "DELETE", "INIT"])
def test_table_b_neither_row_nor_sql(type_: str, profile: str) -> None:
    """any DML | neither, no `sql` | - | reject"""
    assert "MISSING_FIELD" == refused(of_type(type_, None, [{}]), profile=profile).code


@pytest.mark.parametrize("profile", PROFILES)
def test_table_b_sparse_old(profile: str) -> None:
    """UPDATE | keys(old[i]) ⊊ keys(data[i]) for some i and ⊆ for all | after = data, before = data⊕old"""
    change = row(UPDATE, profile=profile)
    assert (AFTER, {"name": "old"}, True) == (change.after, change.before, change.before_sparse)


def test_table_b_one_sparse_row_tells_of_all() -> None:
    """… for some i: the message's other rows can have all columns (§4.3), and `auto` reads them too."""
    first, second = rows(update(data=[NEW, NEW], old=[{"name": "old"}, FULL]), profile="auto")
    assert ({"name": "old"}, BEFORE) == (first.before, second.before)
    assert ("oss", "inferred") == (second.writer.variant, second.writer.variant_basis)


@pytest.mark.parametrize(
    ("code", "profile"),
    [
        (None, "oss"),
        (None, "dts"),
        (None, "ticdc"),
        (None, "flink_cdc"),
        ("AMBIGUOUS_VARIANT", "dts_legacy"),
        ("AMBIGUOUS_VARIANT", "auto"),
    ],
)
@pytest.mark.parametrize("old", NOTHING)
def test_table_b_update_without_old(old: Any, code: str | None, profile: str) -> None:
    """UPDATE | no O (null, absent, all `{}`), D | after = data, before unknown | OSS ≤1.1.6 or MINIMAL

    If a legacy instance may have written it, `data` alone may be the old row.
    """
    assert (code or ("u", AFTER, None)) == read_images(shaped("UPDATE", [NEW], old), profile)


@pytest.mark.parametrize("profile", ["dts_legacy", "auto"])
def test_table_b_lengths_that_differ_are_refused_with_their_own_reason(profile: str) -> None:
    """`old` has rows, so the reason is not that it has none."""
    error = refused(update(data=[NEW, NEW]), profile=profile)
    assert "AMBIGUOUS_VARIANT" == error.code
    assert "data and old of an UPDATE have different lengths (2 and 1)" in error.reason


@pytest.mark.requirement("canal.reject.4")
@pytest.mark.parametrize("profile", PROFILES)
def test_table_b_update_with_old_only(profile: str) -> None:
    """UPDATE | O only | - | quarantine"""
    assert "AMBIGUOUS_VARIANT" == refused(of_type("UPDATE", None, [FULL]), profile=profile).code


@pytest.mark.requirement("canal.reject.4")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("old", [{**FULL, "x": "1"}, {"id": "7", "x": "1"}])
def test_table_b_more_columns_in_old(old: dict[str, str], profile: str) -> None:
    """UPDATE | keys(data[i]) ⊊ keys(old[i]), or neither ⊆ | - | reject"""
    assert "UNSUPPORTED_SHAPE" == refused(update(old=[old]), profile=profile).code


@pytest.mark.requirement("canal.reject.4")
@pytest.mark.parametrize("old", [FULL, {"id": "6", "name": "old", "n": "1"}])
def test_table_b_two_full_images(old: dict[str, str]) -> None:
    """UPDATE | equal key sets for all rows, an unchanged column inside `old` or none | **ambiguous** unless declared"""
    body = update(old=[old])
    assert "AMBIGUOUS_VARIANT" == refused(body, profile="auto").code
    for profile in ("oss", "dts", "ticdc", "flink_cdc"):
        change = row(body, profile=profile)
        assert (AFTER, "old", False) == (change.after, (change.before or {})["name"], change.before_sparse)
    assert "old" == (row(body, profile="dts_legacy").after or {})["name"]


# -- E: fail closed


@pytest.mark.requirement("canal.accept.6")
@pytest.mark.parametrize("mark", [{}, {"id": 0}, {"es": 1}, {"id": None, "es": None, "ts": None, "sqlType": None}])
def test_auto_never_emits_an_ambiguous_update(mark: dict[str, Any]) -> None:
    """Only a member that identifies the writer decides which image is which. The reason gives advice."""
    error = refused(update(old=[FULL], **mark), profile="auto")
    assert "AMBIGUOUS_VARIANT" == error.code
    assert "declare the writer" in error.reason


@pytest.mark.parametrize("member", [{"_tidb": TIDB}, {"pgType": None}])
def test_auto_reads_two_images_of_a_writer_that_names_itself(member: dict[str, Any]) -> None:
    """TiCDC and Volcengine always have the new row in `data`."""
    change = row(update(old=[FULL], **member), profile="auto")
    assert (BEFORE, AFTER) == (change.before, change.after)


@pytest.mark.requirement("canal.reject.8")
def test_two_images_against_the_declaration_are_refused() -> None:
    """canal has `es` in whole seconds, but DTS may not. Under `oss`, a legacy instance may have written them."""
    error = refused(update(old=[FULL], es=1700000000001), profile="oss")
    assert "AMBIGUOUS_VARIANT" == error.code
    assert "es not in whole seconds" in error.reason
    notes = row(update(old=[FULL], es=1700000000001, id=0), profile="oss").notes  # TiCDC or Volcengine
    assert [*CONFLICT, "OLD_LISTS_UNCHANGED"] == notes


@pytest.mark.requirement("canal.reject.8")
def test_two_contradictions_are_one_conflict() -> None:
    """A mark and the shape contradict `oss`, but the note appears once."""
    assert CONFLICT == row(of_type("DELETE", None, [FULL], id=0), profile="oss").notes
