"""Canal: which field has which image, and how rows pair (§4 and 6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translator.dialects.canal.messages import FULL, UPDATE, of_type, refused, row, rows, update
from translator.message import RowChange

NEW = {"id": "7", "name": "new", "n": None}
AFTER = {"id": 7, "name": "new", "n": None}
BEFORE = {"id": 7, "name": "old", "n": 1}
PROFILES = ("oss", "dts", "dts_legacy")


def written_by(change: RowChange) -> tuple[str | None, str | None]:
    return change.writer.variant, change.writer.variant_basis


# -- updates of open-source canal


@pytest.mark.requirement("canal.produce.1")
def test_old_lists_the_changed_columns() -> None:
    """`data` is the new row. `old` has the previous values of changed columns, and the rest is unchanged."""
    change = row(UPDATE)
    assert ("u", AFTER, {"name": "old"}) == (change.op, change.after, change.before)
    assert (True, ["name"]) == (change.before_sparse, change.changed)


@pytest.mark.requirement("canal.accept.1", "canal.do_not.4")
def test_null_in_old_was_null() -> None:
    """null, absent and empty stay three different things (§7.2)."""
    assert {"name": None} == row(update(old=[{"name": None}])).before
    assert {"name": ""} == row(update(old=[{"name": ""}])).before
    assert row(update(old=[{}])).before is None


def test_all_columns_in_old_is_a_full_image() -> None:
    """If every column is present, nothing needs completing."""
    change = row(update(old=[FULL]))
    assert (BEFORE, False, ["name", "n"]) == (change.before, change.before_sparse, change.changed)


@pytest.mark.requirement("canal.do_not.6", "canal.produce.1")
def test_rows_pair_by_index_only() -> None:
    """A column in another row's `old` has no effect on this row (§0)."""
    first, second = rows(update(data=[NEW, {**NEW, "id": "8"}], old=[{"name": "old"}, {"n": "5"}]))
    assert ({"name": "old"}, {"n": 5}) == (first.before, second.before)
    assert ((0, 2), (1, 2)) == ((first.row, first.rows), (second.row, second.rows))


def test_unchanged_columns_in_old_are_not_changed() -> None:
    """canal accumulates column names over a message's rows, so `old` can have unchanged columns (§4.3)."""
    _, second = rows(update(data=[NEW, {**NEW, "id": "8"}], old=[{"name": "old"}, {"name": "new", "n": "5"}]))
    assert ({"name": "new", "n": 5}, ["n"]) == (second.before, second.changed)


def test_an_empty_entry_of_old_leaves_that_row_without_before() -> None:
    """`{}` and null mean that no change is known (§4.1)."""
    changes = rows(update(data=[NEW] * 3, old=[{}, {"name": "old"}, None]))
    assert [None, {"name": "old"}, None] == [change.before for change in changes]
    assert [None, ["name"], None] == [change.changed for change in changes]


@pytest.mark.requirement("canal.produce.1", "canal.reject.4")
@pytest.mark.parametrize("old", [[{"name": "old"}], [{"name": "old"}] * 3, [FULL]])
def test_lengths_that_differ_pair_nothing(old: list[dict[str, str]]) -> None:
    """canal up to 1.1.6 omitted empty entries. The new row is right; the old one is unknown, with a note (§4.2)."""
    changes = rows(update(data=[NEW, NEW], old=old))
    assert [(AFTER, None, None)] * 2 == [(change.after, change.before, change.changed) for change in changes]
    assert [["OLD_LENGTH_MISMATCH"]] * 2 == [change.notes for change in changes]


@pytest.mark.requirement("canal.produce.1")
@pytest.mark.parametrize("old", [None, [], [None], [{}]])
def test_an_update_without_old(old: Any) -> None:
    """canal up to 1.1.6 wrote a null `old`. Then only the new row is known."""
    change = row(update(old=old))
    assert (AFTER, None, False) == (change.after, change.before, change.before_sparse)


@pytest.mark.requirement("canal.produce.1")
def test_partial_row_images() -> None:
    """Under MINIMAL and NOBLOB, a column absent from `old` is unknown, except the key. No message lists all columns."""
    change = row(UPDATE, row_image="partial")
    assert ({"id": 7, "name": "old"}, False) == (change.before, change.before_sparse)
    assert (None, None) == (change.changed, change.schema)


@pytest.mark.requirement("canal.produce.2")
def test_a_partial_key_change_keeps_the_whole_old_key() -> None:
    """`old` has the changed column of a two-column key. The other one is unchanged."""
    change = row(update(old=[{"id": "6"}], pkNames=["id", "name"]), row_image="partial")
    assert {"id": 6, "name": "new"} == change.before


# -- one image


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("op", "type_"), [("c", "INSERT"), ("r", "INIT")])
@pytest.mark.parametrize("old", [None, [], [None], [{}]])
def test_a_new_row_in_data(profile: str, op: str, type_: str, old: Any) -> None:
    """Every writer puts the row of INSERT and INIT in `data`. An empty `old` is ignored."""
    change = row(of_type(type_, [NEW], old), profile=profile)
    assert (op, AFTER, None, (profile, "declared")) == (change.op, change.after, change.before, written_by(change))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("type_", ["INSERT", "INIT"])
def test_a_new_row_in_old(profile: str, type_: str) -> None:
    """A single image is unambiguous in either field. A note says that this is undocumented."""
    change = row(of_type(type_, None, [NEW]), profile=profile)
    assert (AFTER, None, ("dts_legacy", "inferred")) == (change.after, change.before, written_by(change))
    assert "IMAGE_IN_OLD" in (change.notes or ())
    assert (profile != "dts_legacy") == ("VARIANT_CONFLICT" in (change.notes or ()))


@pytest.mark.parametrize(
    ("variant", "basis", "notes", "profile"),
    [
        ("oss", "declared", None, "oss"),
        ("dts", "certain", None, "dts"),
        ("dts", "certain", ["VARIANT_CONFLICT"], "dts_legacy"),
    ],
)
def test_a_deleted_row_in_data(variant: str, basis: str, notes: list[str] | None, profile: str) -> None:
    """A DELETE names its variant. The row is read right under any declaration."""
    change = row(of_type("DELETE", [FULL]), profile=profile)
    assert ("d", BEFORE, None) == (change.op, change.before, change.after)
    assert ((variant, basis), notes) == (written_by(change), change.notes)


@pytest.mark.requirement("canal.reject.8")
@pytest.mark.parametrize(
    ("notes", "basis", "profile"),
    [
        (["VARIANT_CONFLICT"], "inferred", "oss"),
        (["VARIANT_CONFLICT"], "certain", "dts"),
        (None, "certain", "dts_legacy"),
    ],
)
def test_a_deleted_row_in_old(notes: list[str] | None, basis: str, profile: str) -> None:
    """Legacy DTS instances and Huawei DRS put the deleted row in `old`."""
    change = row(of_type("DELETE", None, [FULL]), profile=profile)
    assert ("d", BEFORE, None) == (change.op, change.before, change.after)
    assert (("dts_legacy", basis), notes) == (written_by(change), change.notes)


@pytest.mark.requirement("canal.reject.4")
def test_a_deleted_row_sent_twice() -> None:
    """Two equal images of a DELETE are one row. Two different ones are rejected."""
    assert BEFORE == row(of_type("DELETE", [FULL], [FULL])).before
    assert "AMBIGUOUS_VARIANT" == refused(of_type("DELETE", [FULL], [NEW])).code
    assert "AMBIGUOUS_VARIANT" == refused(of_type("DELETE", [FULL], [FULL, FULL])).code


def test_a_delete_gives_no_schema() -> None:
    """The image and therefore the column list of a DELETE can be the key alone."""
    assert row(of_type("DELETE", [FULL])).schema is None
    assert row(of_type("INIT", [FULL])).schema is not None


# -- undocumented shapes


@pytest.mark.requirement("canal.reject.3", "canal.reject.4")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("UNSUPPORTED_SHAPE", of_type("INSERT", [NEW], [FULL])),
        ("UNSUPPORTED_SHAPE", of_type("INIT", [NEW], [FULL])),
        ("AMBIGUOUS_VARIANT", of_type("UPDATE", None, [FULL])),
        ("UNSUPPORTED_SHAPE", update(old=[{**FULL, "x": "1"}])),
        ("UNSUPPORTED_SHAPE", update(old=[{"x": "1"}])),
        ("UNSUPPORTED_SHAPE", update(data=[NEW, NEW], old=[{"name": "old"}, {"x": "1"}])),
        ("MISSING_FIELD", of_type("INSERT")),
        ("MISSING_FIELD", of_type("UPDATE", [], [{}])),
        ("MISSING_FIELD", of_type("DELETE", [{}], [None])),
        ("INVALID_FIELD", of_type("INSERT", {"id": "1"})),
        ("INVALID_FIELD", of_type("UPDATE", [NEW], {"id": "1"})),
        ("INVALID_FIELD", of_type("INSERT", [NEW, None])),
        ("INVALID_FIELD", of_type("INSERT", [NEW, {}])),
        ("INVALID_FIELD", of_type("INSERT", [NEW, []])),
        ("INVALID_FIELD", of_type("DELETE", None, [FULL, {}])),
        ("INVALID_FIELD", of_type("DELETE", None, [FULL, "x"])),
        ("INVALID_FIELD", of_type("INSERT", [{"id": 7}])),
        ("INVALID_FIELD", of_type("INSERT", [{"id": True}])),
        ("INVALID_FIELD", of_type("INSERT", [{"id": 7.5}])),
        ("INVALID_FIELD", of_type("INSERT", [{"id": ["secret"]}])),
        ("INVALID_FIELD", update(old=[{"name": {"a": "secret"}}])),
    ],
)
def test_undocumented_shapes_are_refused(code: str, body: dict[str, Any], profile: str) -> None:
    """A shape that no known writer produces is a dead letter in every profile, with no cell in the reason."""
    error = refused(body, profile=profile)
    assert code == error.code
    assert "secret" not in str(error)


# -- the swap of legacy DTS


def test_a_legacy_update_is_swapped() -> None:
    """According to the vendor, before 20 March 2022 `old` is the new row and `data` the old one, both full (§6.1)."""
    change = row(update(data=[FULL], old=[NEW]), profile="dts_legacy")
    assert (BEFORE, AFTER, ["name", "n"]) == (change.before, change.after, change.changed)
    assert (("dts_legacy", "declared"), ["SWAP_OLD_DATA"]) == (written_by(change), change.notes)


@pytest.mark.requirement("canal.accept.6")
def test_the_direction_of_a_legacy_update_is_a_switch() -> None:
    """The vendor's older manual says the opposite (§6.2)."""
    change = row(update(old=[FULL]), profile="dts_legacy", legacy_update_direction="old_is_before")
    assert (BEFORE, AFTER, None) == (change.before, change.after, change.notes)
    assert ("dts_legacy", "declared") == written_by(change)


def test_a_legacy_update_with_changed_columns_only() -> None:
    """The legacy form has all columns in both images, so a sparse `old` implies the current form."""
    change = row(UPDATE, profile="dts_legacy")
    assert ({"name": "old"}, AFTER, True) == (change.before, change.after, change.before_sparse)
    assert (("dts", "inferred"), ["VARIANT_CONFLICT"]) == (written_by(change), change.notes)


@pytest.mark.parametrize("members", [{"old": None}, {"data": [FULL, FULL], "old": [NEW]}])
def test_a_legacy_update_that_cannot_be_paired_is_refused(members: dict[str, Any]) -> None:
    """`data` alone would be the old row. Writing it as the new row would lose the change."""
    assert "AMBIGUOUS_VARIANT" == refused(update(**members), profile="dts_legacy").code
    assert row(update(old=None), profile="dts_legacy", legacy_update_direction="old_is_before").after == AFTER


# -- lifetime of a DTS instance

RESTART = 1_700_000_000_000
"""2023-11-14T22:13:20Z"""
OLD_INSTANCE = {"created": "2021-06-01T00:00:00+08:00", "restarted": ["2023-11-14T22:13:20Z", "2024-06-01T00:00:00Z"]}
MINUTE = 60_000


def two_full_images(ts: int | None, instance: dict[str, Any], **options: Any) -> RowChange:
    return row(update(data=[FULL], old=[NEW], ts=ts), profile="dts", instance=instance, **options)


def swapped(change: RowChange) -> bool:
    assert (change.writer.variant == "dts_legacy") == (change.after == AFTER)
    return change.after == AFTER


@pytest.mark.requirement("canal.accept.6")
@pytest.mark.parametrize(
    ("legacy", "ts"),
    [(True, 10**10), (True, RESTART - 10 * MINUTE - 1), (False, RESTART + 10 * MINUTE + 1), (False, RESTART * 2)],
)
def test_the_first_restart_ends_the_legacy_form(legacy: bool, ts: int) -> None:
    """A message is legacy iff its ts precedes the first restart at or after 2022-03-20. Later ones do not matter."""
    assert legacy == swapped(two_full_images(ts, OLD_INSTANCE))


@pytest.mark.parametrize("ts", [None, RESTART - 10 * MINUTE, RESTART, RESTART + 10 * MINUTE])
def test_near_the_restart_two_images_are_ambiguous(ts: int | None) -> None:
    """Within restart_tolerance of the restart, or without a ts, the images cannot be told apart."""
    body = update(data=[FULL], old=[NEW], ts=ts)
    assert "AMBIGUOUS_VARIANT" == refused(body, profile="dts", instance=OLD_INSTANCE).code


def test_near_the_restart_one_image_is_clear() -> None:
    """Single images and updates with a sparse `old` do not depend on the declaration."""
    options: dict[str, Any] = {"profile": "dts", "instance": OLD_INSTANCE}
    assert (AFTER, None) == (row(of_type("INSERT", [NEW], ts=RESTART), **options).after, None)
    legacy = row(of_type("DELETE", None, [FULL], ts=RESTART), **options)
    assert (BEFORE, ("dts_legacy", "certain"), None) == (legacy.before, written_by(legacy), legacy.notes)
    sparse = row(update(ts=RESTART), **options)
    assert (AFTER, {"name": "old"}, ("dts", "inferred")) == (sparse.after, sparse.before, written_by(sparse))


def test_near_the_restart_nothing_is_ambiguous_when_both_forms_agree() -> None:
    """With `old_is_before`, a legacy update reads like a current one."""
    change = two_full_images(RESTART, OLD_INSTANCE, legacy_update_direction="old_is_before")
    assert (BEFORE, AFTER) == (change.after, change.before)


def test_the_tolerance_is_an_option() -> None:
    """With zero seconds, only the exact moment is ambiguous."""
    assert swapped(two_full_images(RESTART - 1, OLD_INSTANCE, restart_tolerance=0))
    assert not swapped(two_full_images(RESTART + 1, OLD_INSTANCE, restart_tolerance="PT0S"))


@pytest.mark.parametrize(
    ("legacy", "instance"),
    [
        (True, {"created": "2022-03-19T15:59:59Z"}),
        (False, {"created": "2022-03-19T16:00:00Z"}),
        (True, {"created": "2021-01-01T00:00:00Z", "restarted": ["2022-03-19T15:59:59Z"]}),
        (False, {"created": "2021-01-01T00:00:00Z", "restarted": ["2022-03-19T16:00:00Z"]}),
    ],
)
def test_the_form_changed_on_20_march_2022_in_china(legacy: bool, instance: dict[str, Any]) -> None:
    """The date is midnight at +08:00. Without a restart after it, legacy lasts."""
    assert legacy == swapped(two_full_images(RESTART, instance))


# -- many rows, and rows with missing columns


@pytest.mark.requirement("canal.accept.3")
def test_thousands_of_rows_keep_their_place() -> None:
    """A message can have thousands of rows. Each has its index, its own pair, and the total number."""
    size = 3_000
    data = [{**NEW, "id": str(index)} for index in range(size)]
    changes = rows(update(data=data, old=[{"n": str(index)} for index in range(size)]))
    assert [(index, size, index, index) for index in range(size)] == [
        (change.row, change.rows, (change.after or {})["id"], (change.before or {})["n"]) for change in changes
    ]


@pytest.mark.requirement("canal.do_not.5")
def test_identical_rows_are_rows_of_their_own() -> None:
    """Tables without a key can have duplicates, so nothing is paired or merged by content (§4.8)."""
    assert [BEFORE] * 3 == [change.before for change in rows(of_type("DELETE", [FULL] * 3, pkNames=None))]
    assert [AFTER] * 2 == [change.after for change in rows(of_type("INSERT", [NEW] * 2, pkNames=None))]


def test_accumulation_over_many_rows() -> None:
    """Row i's `old` has the columns changed in rows 0 to i. The values are right, just redundant (§4.3)."""
    base = {"id": "1", "a": "0", "b": "0", "c": "0"}
    data = [{**base, name: "1"} for name in ("a", "b", "c")]
    old = [{"a": "0"}, {"a": "0", "b": "0"}, {"a": "0", "b": "0", "c": "0"}]
    changes = rows(update(data=data, old=old, mysqlType=dict.fromkeys(base, "int")))
    assert [["a"], ["b"], ["c"]] == [change.changed for change in changes]


def test_filtered_rows_make_data_shorter() -> None:
    """Rows with empty `data` are omitted from `data` but not from `old`, so no pair can be trusted (§4.4)."""
    (change,) = rows(update(data=[NEW], old=[{}, {"name": "old"}]))
    assert (AFTER, None, ["OLD_LENGTH_MISMATCH"]) == (change.after, change.before, change.notes)


@pytest.mark.requirement("canal.reject.5")
def test_a_minimal_update_lacks_its_key() -> None:
    """With MINIMAL, the after image lacks the key, so pkNames is null although the table has one (§2)."""
    body = update(data=[{"name": "new"}], old=[{}], pkNames=None, mysqlType={"name": "varchar(50)"})
    change = row(body, row_image="partial")
    assert ({"name": "new"}, None, (), None) == (change.after, change.before, change.key_columns, change.schema)
