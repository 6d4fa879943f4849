"""SharePlex: which tests show each box of §10; here those found nowhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent
from tests.translator.dialects._checklist import Tests, boxes, exists
from tests.translator.dialects.shareplex.messages import BAND, KEYED, body, dialect, refusal, row, sample
from translator.dialects.shareplex import SharePlex
from translator.message import DeclaredTable, Limits, Message, TableName
from translator.translation.translate import Events, Translator

ACCEPT: Mapping[str, Tests] = {
    "UTF-8 object, byte order mark, white space; several objects in one value, each one event": (
        "dialects.shareplex.test_objects::test_white_space_and_a_byte_order_mark_change_nothing",
        "dialects.shareplex.test_objects::test_each_of_several_objects_is_a_row_of_the_message",
        "dialects.shareplex.test_history::test_a_declared_table_comes_back",
        "dialects.test_cases::test_case[shareplex/quest_insert]",
    ),
    "op: three codes, the seven documented words in any case, further spellings by option": (
        "dialects.shareplex.test_decode::test_documented_words_are_read",
        "dialects.shareplex.test_decode::test_truncate_needs_no_row",
        "dialects.shareplex.test_decode::test_drop_column_is_a_schema_change",
        "dialects.shareplex.test_pairs::test_taught_spellings_pair_too",
        "dialects.shareplex.test_options::test_further_spellings_of_operations_are_exact",
        "dialects.shareplex.test_options::test_every_alias_means_an_operation",
    ),
    "table or a default one (no rule by topic); first dot outside quotes; raw text of quoted names kept": (
        "dialects.shareplex.test_envelope_fields::test_table_names_split_at_the_first_free_dot",
        "dialects.shareplex.test_envelope_fields::test_default_table_is_for_messages_without_one",
        "dialects.test_cases::test_case[shareplex/dts_delete_without_table]",
    ),
    "any subset of meta; numbers or text; unknown members of meta and root kept": (
        "dialects.shareplex.test_envelope_fields::test_everything_but_op_and_table_is_optional",
        "dialects.shareplex.test_envelope_fields::test_all_members_find_their_place",
        "dialects.shareplex.test_envelope_fields::test_scn_may_be_a_number",
        "dialects.shareplex.test_envelope_fields::test_unknown_members_are_kept_as_text",
        "dialects.shareplex.test_checklist::test_every_subset_of_meta_is_read",
    ),
    "exact numbers; absent, null and empty text are three": (
        "dialects.shareplex.test_decode::test_insert_holds_what_was_sent",
        "dialects.shareplex.test_objects::test_no_column_is_lost_or_invented",
        "dialects.shareplex.test_history::test_a_table_of_which_only_the_key_is_declared_comes_back_as_text",
    ),
    "times with and without zone, 0 to 9 digits of a fraction; zone by preset and option": (
        "dialects.shareplex.test_envelope_fields::test_times_are_exact_instants",
        "dialects.shareplex.test_envelope_fields::test_a_time_without_a_zone_is_no_instant",
        "dialects.shareplex.test_envelope_fields::test_digits_below_a_microsecond_are_kept",
        "dialects.shareplex.test_envelope_fields::test_an_hour_that_comes_twice_or_never_is_read_as_in_columns",
        "dialects.shareplex.test_options::test_a_configured_zone_wins_over_the_preset",
    ),
    "ins: after is data; what is omitted is NULL only where the columns are declared, and noted": (
        "dialects.shareplex.test_decode::test_omitted_columns_of_an_insert_stay_absent_without_a_declaration",
        "dialects.shareplex.test_decode::test_omitted_columns_of_an_insert_are_null_when_declared",
        "dialects.shareplex.test_decode::test_a_missing_key_column_is_never_filled_with_null",
        "dialects.test_cases::test_case[shareplex/quest_insert_declared]",
    ),
    "upd: before is key, after is data over key, explicit null wins, unknown old values stay unknown, images marked": (
        "dialects.shareplex.test_decode::test_update_is_data_over_key",
        "dialects.shareplex.test_decode::test_an_explicit_null_is_a_change",
        "dialects.shareplex.test_decode::test_equal_values_are_not_a_change",
        "dialects.shareplex.test_decode::test_unknown_old_values_stay_unknown",
        "dialects.shareplex.test_checklist::test_images_say_how_whole_they_are",
    ),
    "upd without key: only with its configured key in data": (
        "dialects.shareplex.test_keys::test_an_update_without_key_needs_its_configured_key_in_data",
    ),
    "key change: both identities": (
        "dialects.shareplex.test_checklist::test_a_key_change_carries_both_keys",
        "dialects.shareplex.test_pairs::test_a_pair_may_change_its_key",
        "dialects.shareplex.test_keys::test_key_that_may_be_wide_names_nothing",
    ),
    "del: before is data, a key beside it overlays nothing": (
        "dialects.shareplex.test_decode::test_delete_reads_data",
        "dialects.shareplex.test_decode::test_a_key_beside_a_deleted_row_is_kept_aside",
    ),
    "UPDATE BEFORE and AFTER join inside one value, never across records; a half alone is a dead letter": (
        "dialects.shareplex.test_pairs::test_two_halves_are_one_update",
        "dialects.shareplex.test_pairs::test_transaction_and_place_join_halves_that_lie_apart",
        "dialects.shareplex.test_pairs::test_the_configured_key_joins_halves",
        "dialects.shareplex.test_pairs::test_half_an_update_is_refused",
        "dialects.shareplex.test_pairs::test_halves_of_two_records_are_never_joined",
    ),
    "TRUNCATE and DROP COLUMN are off the row path": (
        "dialects.shareplex.test_decode::test_truncate_needs_no_row",
        "dialects.shareplex.test_decode::test_drop_column_is_a_schema_change",
        "dialects.shareplex.test_checklist::test_truncate_and_drop_column_as_events",
    ),
    "idx is seq/size, fills in what is missing, last of a transaction": (
        "dialects.shareplex.test_envelope_fields::test_idx_and_counts_complete_each_other",
        "dialects.shareplex.test_envelope_fields::test_counts_without_a_transaction_are_extras",
        "dialects.shareplex.test_pairs::test_idx_tells_the_place_where_seq_does_not",
    ),
    "case kept; columns may be called like words of meta": (
        "dialects.shareplex.test_decode::test_columns_may_be_called_like_meta_words",
        "dialects.shareplex.test_checklist::test_names_keep_their_case",
    ),
    "position and event id are those of the record, as in all dialects; scn, trans, seq and changeid are kept": (
        "dialects.shareplex.test_checklist::test_position_and_identity",
        "dialects.shareplex.test_envelope_fields::test_unknown_members_are_kept_as_text",
    ),
    "empty value and tombstone are skipped under a name": (
        "dialects.shareplex.test_decode::test_nothing_in_a_record_is_skipped_by_name",
    ),
}

REJECT: Mapping[str, Tests] = {
    "what is no JSON: cut, trailing garbage or comma, dots, NaN, bad UTF-8, surrogates, too deep, too large": (
        "dialects.shareplex.test_objects::test_what_is_not_json_objects_is_refused",
        "dialects.shareplex.test_objects::test_a_message_cut_anywhere_is_refused_or_read",
        "dialects.shareplex.test_keys::test_half_a_character_is_an_issue_in_key_too",
        "dialects.shareplex.test_mutations::test_events_or_a_dead_letter",
        "translation.test_translate::TestSizeLimit::test_beyond",
        "dialects.test_cases::test_case[shareplex/dts_update_verbatim]",
        "dialects.test_cases::test_case[shareplex/dts_delete_verbatim]",
    ),
    "array or scalar at the root; meta missing or no object; what the Flink sink writes": (
        "dialects.shareplex.test_objects::test_what_is_not_json_objects_is_refused",
        "dialects.shareplex.test_decode::test_wrong_shapes_are_refused_where_they_are",
        "dialects.shareplex.test_checklist::test_the_flink_sink_is_named",
    ),
    "op missing, no text, empty or unknown; table missing, no text or empty": (
        "dialects.shareplex.test_decode::test_an_unknown_operation_is_refused_by_name",
        "dialects.shareplex.test_decode::test_wrong_shapes_are_refused_where_they_are",
        "dialects.shareplex.test_envelope_fields::test_table_names_with_an_empty_part_or_odd_quotes_are_refused",
        "dialects.shareplex.test_checklist::test_an_unknown_operation_names_the_known_ones",
    ),
    "data missing, no object or empty; data and key both empty; key no object": (
        "dialects.shareplex.test_decode::test_wrong_shapes_are_refused_where_they_are",
        "dialects.shareplex.test_decode::test_an_update_that_changes_nothing_is_an_update",
    ),
    "cells that are objects or arrays; members named twice": (
        "dialects.shareplex.test_decode::test_wrong_shapes_are_refused_where_they_are",
        "dialects.shareplex.test_objects::test_a_member_named_twice_is_refused",
        "dialects.shareplex.test_objects::test_text_that_looks_like_members_is_text",
        "dialects.shareplex.test_fast_path::test_both_ways_agree",
    ),
    "seq, size, idx and scn that are not valid or disagree: refused, or set aside by the lenient preset": (
        "dialects.shareplex.test_envelope_fields::test_invalid_members_are_refused",
        "dialects.shareplex.test_envelope_fields::test_invalid_members_are_set_aside_when_lenient",
        "dialects.shareplex.test_envelope_fields::test_scn_of_other_databases_is_their_own_token",
    ),
    "times that are none: refused, or kept raw by the lenient preset; a rowid is not checked (no strict mode)": (
        "dialects.shareplex.test_envelope_fields::test_invalid_members_are_refused",
        "dialects.shareplex.test_envelope_fields::test_invalid_members_are_set_aside_when_lenient",
        "dialects.shareplex.test_checklist::test_a_row_address_may_be_any",
    ),
    "XML is named": ("dialects.shareplex.test_objects::test_xml_is_named",),
}

BOXES = boxes({"Accept": ACCEPT, "Reject": REJECT})
"""Every box, in the order of §10, and the tests that show it."""


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_the_tests_of_a_box_exist(box: str) -> None:
    """The index names tests, and none that was renamed or removed."""
    assert BOXES[box]
    assert [] == [test for test in BOXES[box] if not exists(test)]


# -- parts of boxes that no other module shows, down to the event


def event(reader: SharePlex, value: bytes | dict[str, Any]) -> ChangeEvent:
    """The one event of a value."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    result = Translator("s", reader, Limits()).translate(Message("raw.t", 2, 7, 0, None, raw))
    assert isinstance(result, Events), result
    (only,) = result.events
    return only


WHOLE_META: dict[str, Any] = {
    "time": "2017-06-16T14:24:34",
    "userid": 84,
    "scn": "14589063118712",
    "rowid": "AAATGpAAIAAItcIAAA",
    "trans": "7.0.411499",
    "seq": 1,
    "size": 11,
    "idx": "1/11",
    "posttime": "2017-06-16T14:33:52",
    "host": "ora1",
    "queue": "q1",
    "source": "s1",
    "changeid": 9,
}


@pytest.mark.parametrize("preset", ["quest", "dts", "lenient"])
def test_every_subset_of_meta_is_read(preset: str) -> None:
    """Whichever members were switched on at the source: the row is the same, and every member has its place."""
    names = list(WHOLE_META)
    reader = dialect(KEYED, preset=preset)
    for chosen in range(0, 2 ** len(names), 7):
        meta = {name: WHOLE_META[name] for n, name in enumerate(names) if chosen >> n & 1}
        change = row(reader, body("ins", meta=meta, data={"ID": 1}))
        assert (change.after, change.pos_native) == ({"ID": "1"}, meta.get("scn"))
        assert change.writer.server == meta.get("host")
        seq, size = (1 if name in meta or "idx" in meta else None for name in ("seq", "size"))
        counts = (seq, size and 11, False if seq and size else None)
        tx = change.tx
        assert (tx and (tx.id, tx.seq, tx.size, tx.last)) == (("7.0.411499", *counts) if "trans" in meta else None)
        for name, instant, micros in (
            ("time", change.ts_commit_us, 1_497_623_074_000_000),
            ("posttime", change.ts_capture_us, 1_497_623_632_000_000),
        ):
            told = micros if name in meta and preset == "dts" else None
            assert instant == told
            assert (name in (change.ext or {})) == (name in meta and told is None)
        kept = change.ext or {}
        for name in ("userid", "rowid", "queue", "source", "changeid"):
            assert kept.get(name) == (str(meta[name]) if name in meta else None)


def test_images_say_how_whole_they_are() -> None:
    """Quest's update: `key` alone before, completed after; the wide image of DTS: all of the declared columns."""
    declared = event(dialect(BAND), sample("quest_update"))
    assert (declared.before_state, declared.after_state) == ("key", "merged")
    assert (declared.after, declared.changed) == ('{"BAND_NAME":"Rush","YEAR_END":2015}', ["YEAR_END"])
    wide = DeclaredTable("A.T", key=("ID",), columns={"ID": "int32", "A": "string"})
    full = event(dialect(wide, preset="dts"), body("upd", data={"A": None}, key={"ID": 1, "A": "x"}))
    assert (full.before_state, full.after_state, full.after) == ("full", "full", '{"ID":1,"A":null}')
    assert event(dialect(BAND), sample("quest_delete")).before_state == "full"
    assert event(dialect(), sample("quest_insert")).after_state == "partial"


@pytest.mark.parametrize("preset", ["quest", "dts"])
def test_a_key_change_carries_both_keys(preset: str) -> None:
    """A key column in `key` and in `data` with other values: the old row and the new one are both named."""
    changed = event(dialect(KEYED, preset=preset), body("upd", data={"ID": 8}, key={"ID": 7, "A": "x"}))
    assert (changed.op, changed.key, changed.key_old) == ("u", '{"ID":"8"}', '{"ID":"7"}')
    assert changed.notes == ["PK_CHANGED"]
    assert changed.after == '{"ID":"8","A":"x"}'


def test_truncate_and_drop_column_as_events() -> None:
    """Neither is a row: the one empties the table, the other changes its structure and keeps what it brought."""
    truncate = event(dialect(KEYED), body("TRUNCATE", meta={"scn": 5}))
    assert (truncate.kind, truncate.op, truncate.table, truncate.key) == ("row", "t", "T", None)
    drop = event(dialect(KEYED), body("DROP COLUMN", meta={"scn": 5, "trans": "1.2.3"}, data={"COLUMN": "A"}))
    assert (drop.kind, drop.op, drop.schema, drop.table) == ("schema", None, "A", "T")
    assert drop.ddl is not None
    assert (drop.ddl.type, drop.ddl.parsed, drop.pos_native) == ("DROP COLUMN", False, "5")
    assert drop.ext == {"$.data": '{"COLUMN":"A"}'}


def test_names_keep_their_case() -> None:
    """Two columns may differ in case alone; tables are named as they are sent."""
    change = row(dialect(), body("ins", meta={"table": '"Owner"."tAb"'}, data={"id": 1, "ID": 2}))
    assert (change.table, change.after) == (TableName(None, "Owner", "tAb"), {"id": "1", "ID": "2"})


def test_position_and_identity() -> None:
    """Order and id are those of the record; what the source says of its own is kept beside them."""
    found = event(dialect(KEYED, preset="dts"), body("ins", meta=WHOLE_META, data={"ID": 1}))
    assert found.id == "s/raw.t/2/7/0"
    assert (found.origin.topic, found.origin.partition, found.origin.offset) == ("raw.t", 2, 7)
    assert found.tx is not None
    assert (found.pos_native, found.tx.id, found.tx.seq) == ("14589063118712", "7.0.411499", 1)
    assert (found.ext or {})["changeid"] == "9"


def test_the_flink_sink_is_named() -> None:
    """Its shape has no `meta`, and the dead letter says whose it is."""
    code, reason, _ = refusal(dialect(), b'{"data":{"A":1},"type":"insert"}')
    assert code == "UNSUPPORTED_SHAPE"
    assert "Flink sink" in reason


def test_an_unknown_operation_names_the_known_ones() -> None:
    """The codes, the documented words, and what the operator taught."""
    _, reason, _ = refusal(dialect(operations={"refresh": "ins"}), body("ddl", data={"A": 1}))
    assert {"ins", "upd", "del", "TRUNCATE", "DROP COLUMN", "UPDATE BEFORE", "refresh"} <= set(
        reason.partition("allowed: ")[2].split(", ")
    )


@pytest.mark.parametrize("rowid", ["AAATGpAAIAAItcIAAA", "*BAMAASMCwQL+", "(0,12)", "", 12])
def test_a_row_address_may_be_any(rowid: Any) -> None:
    """Index-organised tables and other databases have their own; it names nothing here."""
    assert (row(dialect(), body("ins", meta={"rowid": rowid}, data={"A": 1})).ext or {})["rowid"] == str(rowid)
