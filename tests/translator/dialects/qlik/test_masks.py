"""columnMask and changeMask (§5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translator.dialects.qlik.messages import SCHEMA_ID, bare, change, dialect, enveloped, events, refusal, taught
from translator.dialects._rows import ConvertersOr
from translator.dialects.qlik.envelope_fields import OPERATIONS, HeaderRules, read_headers
from translator.dialects.qlik.frame import Frame
from translator.dialects.qlik.masks import Masks, read_mask
from translator.dialects.qlik.rows import read_change, read_sections
from translator.dialects.qlik.tables import UNKNOWN, Table
from translator.message import Limits, TableName

ASSUMED = "MASK_ORDINALS_ASSUMED"


@pytest.mark.requirement("qlik.masks.1", "qlik.test_inputs.4")
@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("0B", 0b1011),
        ("0b", 0b1011),
        ("0x0B", 0b1011),
        ("0XB", 0b1011),
        ("b", 0b1011),
        ("008080", 0x8080),
        ("00", 0),
        ("", None),
        (None, None),
    ],
)
def test_mask_text(text: str | None, mask: int | None) -> None:
    """Hex can have any case, odd length and leading zeros. An empty text is unknown, unlike zero."""
    assert mask == read_mask({"m": text}, "m", "$")


@pytest.mark.requirement("qlik.masks.1")
@pytest.mark.parametrize("text", ["xy", "0x", "0 1", "-1", "+1", "1_0", "٣", "01\n"])
def test_mask_that_is_not_hex(text: str) -> None:
    """Anything else is rejected, even if Python would accept it as a number."""
    assert ("INVALID_FIELD", "$.headers.columnMask") == refusal(dialect(), bare("INSERT", {"a": 1}, columnMask=text))
    assert ("INVALID_FIELD", "$.headers.changeMask") == refusal(dialect(), bare("INSERT", {"a": 1}, changeMask=text))


@pytest.mark.requirement("qlik.masks.1")
def test_most_significant_byte_first() -> None:
    """The three-byte mask of cantodimo: 16 columns, 8 and 16 changed, all captured."""
    row = {f"c{n}": f"v{n}" for n in range(1, 17)}
    old = {**row, "c8": "x", "c16": "y"}
    read = change(dialect(), bare("UPDATE", row, old, changeMask="008080", columnMask="00FFFF"))
    assert (["c8", "c16"], None, [ASSUMED]) == (read.changed, read.unavailable, read.notes)
    assert 16 == len(read.after or {})


def test_ordinals_of_the_documentation() -> None:
    """0B is ordinals 1, 2 and 4."""
    assert ["a", "b", "d"] == Masks.over(None, 0x0B, {"a": 1, "b": 2, "c": 3, "d": 4}).changed()


@pytest.mark.requirement("qlik.masks.3", "qlik.masks.4")
def test_column_not_captured() -> None:
    """An Oracle update as in public_js: columnMask 05, changeMask 00. Column 2 is absent and not null."""
    row = {"ID": "1", "FIRST_NAME": None, "LAST_NAME": None}
    read = change(dialect(), bare("UPDATE", row, row, changeMask="00", columnMask="05"))
    assert {"ID": "1", "LAST_NAME": None} == read.after == read.before
    assert (["FIRST_NAME"], [], [ASSUMED]) == (read.unavailable, read.changed, read.notes)


def test_delete_of_a_key_only() -> None:
    """A delete that captured only its key has only the key."""
    read = change(dialect(), bare("DELETE", {"id": 7, "a": None, "b": None}, changeMask="01", columnMask="01"))
    assert ({"id": "7"}, ["a", "b"], None) == (read.before, read.unavailable, read.changed)


@pytest.mark.requirement("qlik.masks.3")
def test_value_beside_a_clear_bit() -> None:
    """The value is kept, and the contradicting mask is noted."""
    read = change(dialect(), bare("INSERT", {"id": 1, "a": "x", "b": None}, columnMask="01"))
    assert ({"id": "1", "a": "x"}, ["b"]) == (read.after, read.unavailable)
    assert [ASSUMED, "COLUMN_MASK_CONTRADICTED"] == read.notes


@pytest.mark.parametrize(("operation", "op"), [("INSERT", "c"), ("UPDATE", "u"), ("DELETE", "d"), ("REFRESH", "r")])
def test_nulls_beside_a_disproved_mask(operation: str, op: str) -> None:
    """If a value contradicts the mask, no null of the row counts as NULL, whatever its bit. The image is not complete,
    and the other mask, whose bits are for the same columns, is not trusted.
    """
    reader = taught({"ID": {"primaryKeyPosition": 1}, "NAME": {}, "PAY": {}, "NOTE": {}})
    row = {"ID": "1", "NAME": "x", "PAY": None, "NOTE": None}
    value = enveloped(bare(operation, row, columnMask="05", changeMask="04"), SCHEMA_ID)
    read = change(reader, value)
    image = read.before if op == "d" else read.after
    assert (op, {"ID": "1", "NAME": "x"}, ["PAY", "NOTE"]) == (read.op, image, read.unavailable)
    assert (["COLUMN_MASK_CONTRADICTED"], None) == (read.notes, read.changed)
    (event,) = events(reader, value)
    assert ('{"ID":"1"}', "partial") == (event.key, event.before_state if op == "d" else event.after_state)


def test_either_image_disproves_the_mask() -> None:
    """One mask covers both images, so the nulls of both are in doubt. Values are kept."""
    row, old = {"id": 1, "a": None, "b": None}, {"id": 1, "a": "x", "b": None}
    read = change(dialect(), bare("UPDATE", row, old, columnMask="05"))
    assert ({"id": "1", "a": "x"}, {"id": "1"}, ["a", "b"]) == (read.before, read.after, read.unavailable)
    assert [ASSUMED, "COLUMN_MASK_CONTRADICTED"] == read.notes


def test_a_key_of_which_a_part_is_null_in_a_doubtful_image() -> None:
    """A key column cannot be NULL. A null in the new row was not captured, and the old row's value applies."""
    reader = taught({"A": {"primaryKeyPosition": 1}, "B": {"primaryKeyPosition": 2}, "N": {}})
    value = bare("UPDATE", {"A": "1", "B": None, "N": "x"}, {"A": "1", "B": "2", "N": "y"}, columnMask="03")
    (event,) = events(reader, enveloped(value, SCHEMA_ID))
    assert ('{"A":"1","B":"2"}', None, ["B"]) == (event.key, event.key_old, event.unavailable)


@pytest.mark.requirement("qlik.masks.2")
@pytest.mark.parametrize("above", ["", "8", "F", "F" * 200_000])
def test_bits_of_no_column(above: str) -> None:
    """They are ignored. With metadata, the bits of its columns have the same meaning as without them."""
    reader = taught({name: {} for name in "abcd"})
    row, old = {"a": "1", "b": None, "c": None, "d": "4"}, {"a": "1", "b": None, "c": None, "d": "5"}
    value = bare("UPDATE", row, old, changeMask=f"{above}8", columnMask=f"{above}D")
    read = change(reader, enveloped(value, SCHEMA_ID))
    assert ({"a": "1", "c": None, "d": "4"}, ["b"]) == (read.after, read.unavailable)
    assert (["d"], None) == (read.changed, read.notes)


@pytest.mark.requirement("qlik.masks.2")
def test_a_filled_byte_over_seven_columns() -> None:
    """As in flink-studies, FF covers all of seven columns."""
    row = {f"c{number}": None for number in range(1, 8)}
    read = change(dialect(), bare("INSERT", row, changeMask="FF", columnMask="FF"))
    assert (row, None, [ASSUMED]) == (read.after, read.unavailable, read.notes)


@pytest.mark.requirement("qlik.masks.2")
def test_bits_above_the_last_place_of_a_row() -> None:
    """Without metadata, such a bit shows that positions are not ordinals, so neither gaps nor changes are known."""
    row = {"a": "1", "b": None, "c": None}
    read = change(dialect(), bare("UPDATE", row, changeMask="0A", columnMask="0D"))
    assert ({"a": "1"}, ["b", "c"], None) == (read.after, read.unavailable, read.changed)
    assert [ASSUMED, "COLUMN_MASK_CONTRADICTED", "CHANGE_MASK_CONTRADICTED"] == read.notes


def test_assumption_is_noted_with_a_mask_only() -> None:
    """Without metadata, the position in the row is used as the ordinal. That is noted only if a mask needs it."""
    row = {"a": 1}
    assert [ASSUMED] == change(dialect(), bare("UPDATE", row, changeMask="01")).notes
    assert change(dialect(), bare("UPDATE", row)).notes is None


def test_column_without_a_place() -> None:
    """A column of beforeData that data lacks has no position to assume. Without a mask, none is needed."""
    images: dict[str, Any] = {"data": {"a": 1}, "before": {"a": 1, "b": 2}}
    assert ("INVALID_FIELD", "$.beforeData") == refusal(dialect(), bare("UPDATE", **images, columnMask="01"))
    assert {"a": "1", "b": "2"} == change(dialect(), bare("UPDATE", **images)).before


# -- changed columns


@pytest.mark.parametrize("operation", ["INSERT", "DELETE", "REFRESH"])
def test_changed_is_of_updates(operation: str) -> None:
    """In other operations, the changeMask has inserted or key columns and is not a list of changes."""
    assert change(dialect(), bare(operation, {"a": 1}, changeMask="01")).changed is None


def test_changed_without_before() -> None:
    """Without an old image, the changeMask is trusted."""
    assert ["b"] == change(dialect(), bare("UPDATE", {"a": 1, "b": 2}, changeMask="02")).changed


@pytest.mark.requirement("qlik.masks.5")
def test_unchanged_column_with_its_bit() -> None:
    """A column can be written with its previous value, so the mask is accepted."""
    assert ["a"] == change(dialect(), bare("UPDATE", {"a": 1}, {"a": 1}, changeMask="01")).changed


@pytest.mark.requirement("qlik.masks.5")
def test_change_without_its_bit() -> None:
    """A mask that misses a change is neither trusted nor corrected, so the changed columns are unknown."""
    read = change(dialect(), bare("UPDATE", {"a": 1, "b": 2}, {"a": 1, "b": 3}, changeMask="01"))
    assert (None, [ASSUMED, "CHANGE_MASK_CONTRADICTED"]) == (read.changed, read.notes)


KEYED: dict[str, dict[str, Any]] = {"ID": {"primaryKeyPosition": 1}, "NAME": {}, "PAY": {}}


@pytest.mark.requirement("qlik.masks.6")
def test_old_nulls_that_the_mask_disproves() -> None:
    """PAY has a value and did not change, so its old null was not sent. Then NAME's may not have been either."""
    reader = taught(KEYED)
    row, old = {"ID": "1", "NAME": "b", "PAY": "1"}, {"ID": "1", "NAME": None, "PAY": None}
    value = enveloped(bare("UPDATE", row, old, changeMask="02", columnMask="07"), SCHEMA_ID)
    read = change(reader, value)
    assert ({"ID": "1"}, row, None) == (read.before, read.after, read.changed)
    assert ["CHANGE_MASK_CONTRADICTED"] == read.notes
    (event,) = events(reader, value)
    assert ("key", "full", '{"ID":"1"}') == (event.before_state, event.after_state, event.key)


@pytest.mark.requirement("qlik.masks.6")
def test_values_of_a_row_with_disproved_nulls() -> None:
    """Values were sent and are kept, and so are nulls that the mask does not contradict."""
    reader = taught(KEYED)
    row, old = {"ID": "1", "NAME": "b", "PAY": "1"}, {"ID": "1", "NAME": "a", "PAY": None}
    disproved = enveloped(bare("UPDATE", row, old, changeMask="02"), SCHEMA_ID)
    assert {"ID": "1", "NAME": "a"} == change(reader, disproved).before
    for masks in ({"changeMask": "06"}, {"changeMask": "04"}, {}):
        assert old == change(reader, enveloped(bare("UPDATE", row, old, **masks), SCHEMA_ID)).before


@pytest.mark.requirement("qlik.masks.6")
def test_disproved_nulls_of_a_table_with_a_lob() -> None:
    """The LOB has no bit and proves nothing, but the other columns do."""
    reader = taught({**KEYED, "NAME": {"type": "CLOB"}})
    row, old = {"ID": "1", "NAME": "b", "PAY": "1"}, {"ID": "1", "NAME": None, "PAY": None}
    read = change(reader, enveloped(bare("UPDATE", row, old, changeMask="00"), SCHEMA_ID))
    assert ({"ID": "1"}, ["CHANGE_MASK_CONTRADICTED"]) == (read.before, read.notes)
    assert old == change(reader, enveloped(bare("UPDATE", row, old, changeMask="04"), SCHEMA_ID)).before


@pytest.mark.requirement("qlik.masks.6")
def test_an_old_row_of_disproved_nulls_alone() -> None:
    """It was not sent, although a table without a key can have a row of nulls."""
    read = change(dialect(), bare("UPDATE", {"a": "1", "b": "2"}, {"a": None, "b": None}, changeMask="02"))
    assert (None, {"a": "1", "b": "2"}) == (read.before, read.after)


@pytest.mark.requirement("qlik.masks.4")
def test_lob_has_no_bit() -> None:
    """The changed columns of a table with a LOB are never known, because LOBs have no bit in the mask."""
    reader = taught({"id": {}, "doc": {"type": "CLOB"}})
    value = enveloped(
        bare("UPDATE", {"id": "1", "doc": "x"}, {"id": "1", "doc": "y"}, changeMask="01"),
        SCHEMA_ID,
    )
    assert (None, None) == (change(reader, value).changed, change(reader, value).notes)


class Counted(str):
    """A column name that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_work_grows_with_the_columns() -> None:
    """The work is linear in the number of columns, however many were not captured."""
    cells = {Counted(f"c{number}"): None for number in range(1000)}
    frame = Frame("bare_json", "DT", None, bare("UPDATE", cells, columnMask="5" * 250), "$")
    headers = read_headers(frame.body, "$", HeaderRules(OPERATIONS, "note", ()))
    sections = read_sections(frame, "u", Limits(), has_key=False)
    read = read_change(frame, headers, sections, Table(TableName(None, "S", "T"), ConvertersOr({}, UNKNOWN)), Limits())
    assert 500 == len(read.unavailable or ())
    assert Counted.compared < 10_000
