"""Canal: which tests show each box of the checklist (§15); here those found nowhere else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.translator.dialects._checklist import Tests, boxes, exists
from tests.translator.dialects.canal.messages import (
    UPDATE,
    canal,
    decode,
    message,
    of_type,
    other,
    refused,
    row,
    update,
)
from translator.errors import MessageError
from translator.message import TableName

ACCEPT: Mapping[str, Tests] = {
    "one UTF-8 object in any order of members; unknown members are ignored (not counted), missing ones are null": (
        "dialects.canal.test_decode::test_the_head_of_a_row",
        "dialects.canal.test_decode::test_missing_members_are_null",
        "dialects.canal.test_decode::test_null_members_are_missing_members",
        "dialects.canal.test_images::test_null_in_old_was_null",
        "dialects.canal.test_checklist::test_unknown_members_are_ignored",
    ),
    "optional members: images of DTS, _tidb, INIT, TIDB_WATERMARK, pkNames, gtid, sqlType, mysqlType, sql, isDdl": (
        "dialects.canal.test_decode::test_null_members_are_missing_members",
        "dialects.canal.test_checklist::test_absent_members_of_dts_are_null",
        "dialects.canal.test_writers::test_ticdc_update",
        "dialects.canal.test_writers::test_ticdc_watermark",
        "dialects.canal.test_pitfalls::test_flink_23207_init",
        "dialects.canal.test_pitfalls::test_canal_1408_is_ddl_null",
        "dialects.canal.test_pitfalls::test_canal_1517_and_5056_without_gtid_and_key",
        "dialects.canal.test_pitfalls::test_paimon_2112_and_2115_pk_names_null",
    ),
    "several rows: one event each, in order, with place and count": (
        "dialects.canal.test_decode::test_rows_keep_their_order_and_number",
        "dialects.canal.test_images::test_thousands_of_rows_keep_their_place",
        "dialects.canal.test_pitfalls::test_canal_2048_and_4839_duplicates_after_a_restart",
        "dialects.test_cases::test_case[canal/flink_01_insert_nine_rows]",
    ),
    "id, es, ts are 64-bit integers; as text they are refused (there is no lenient mode)": (
        "dialects.canal.test_checklist::test_id_is_a_64_bit_integer",
        "dialects.canal.test_checklist::test_integers_as_text_are_refused",
        "dialects.canal.test_decode::test_a_member_of_the_wrong_form_is_refused",
    ),
    "grammar of mysqlType with quoted labels; a column without a type is text, and noted": (
        "dialects.canal.test_types::test_the_canonical_type_of_a_mysql_type",
        "dialects.canal.test_types::test_labels_keep_quotes_commas_and_brackets",
        "dialects.canal.test_types::test_columns_without_a_type_are_named",
    ),
    "profiles and rules of 6.5, variant and basis in the event, reason in the dead letter, the options": (
        "dialects.canal.test_variant::test_table_a_marks",
        "dialects.canal.test_variant::test_auto_never_emits_an_ambiguous_update",
        "dialects.canal.test_images::test_the_direction_of_a_legacy_update_is_a_switch",
        "dialects.canal.test_images::test_the_first_restart_ends_the_legacy_form",
        "dialects.canal.test_values::test_timestamps_in_a_configured_zone",
        "dialects.canal.test_types::test_options_choose_two_types",
        "dialects.canal.test_values::test_labels_of_dts",
        "dialects.canal.test_writers::test_oceanbase_values",
        "dialects.canal.test_writers::test_a_declared_form_of_bytes_is_no_assumption",
        "dialects.canal.test_heartbeat::test_a_message_of_a_heartbeat_table_is_one_watermark",
        "dialects.canal.test_options::test_the_manual_lists_every_option",
    ),
}

PRODUCE: Mapping[str, Tests] = {
    "before is old[i] over data[i] where pairing is sound, else unknown; missing columns are unknown": (
        "dialects.canal.test_images::test_old_lists_the_changed_columns",
        "dialects.canal.test_images::test_rows_pair_by_index_only",
        "dialects.canal.test_images::test_lengths_that_differ_pair_nothing",
        "dialects.canal.test_images::test_an_update_without_old",
        "dialects.canal.test_images::test_partial_row_images",
        "dialects.canal.test_writers::test_ticdc_update_with_changed_columns_only",
    ),
    "an UPDATE that changes the key is seen": (
        "dialects.canal.test_events::test_a_key_change_is_seen_with_its_old_key",
        "dialects.canal.test_images::test_a_partial_key_change_keeps_the_whole_old_key",
        "dialects.test_cases::test_case[canal/key_change]",
    ),
    "exact numbers, dates, TIME with sign; a float is a double only; a zero date is an issue, with no other policy": (
        "dialects.canal.test_values::test_numbers",
        "dialects.canal.test_values::test_dates_and_times",
        "dialects.canal.test_pitfalls::test_canal_2257_time_beyond_a_day",
        "dialects.test_cases::test_case[canal/zero_date]",
    ),
    "binary is bytes; the raw text is kept for issues only": (
        "dialects.canal.test_values::test_bytes",
        "dialects.canal.test_pitfalls::test_canal_804_2101_4584_and_5056_binary_shows_as_latin1",
        "dialects.canal.test_values::test_an_issue_leaves_the_column_out_and_keeps_its_text",
    ),
    "never rows: DDL, QUERY and statements are kind schema (type and note tell them apart), a watermark its own": (
        "dialects.canal.test_statements::test_statements_are_schema_changes",
        "dialects.canal.test_statements::test_a_statement_in_place_of_rows",
        "dialects.canal.test_statements::test_rows_query_echo",
        "dialects.canal.test_writers::test_ticdc_watermark",
    ),
}

REJECT: Mapping[str, Tests] = {
    "what is no single JSON object: empty (skipped), broken, several, doubled members, bad text, too large, binary": (
        "dialects.canal.test_decode::test_records_without_a_message_are_skipped",
        "dialects.canal.test_decode::test_what_is_not_one_json_object_is_refused",
        "dialects.canal.test_decode::test_limits",
        "translation.test_translate::TestSizeLimit::test_beyond",
        "dialects.canal.test_writers::test_newline_batches_are_an_option",
        "dialects.canal.test_mutations::test_every_truncation",
        "dialects.canal.test_checklist::test_compressed_bytes_are_refused",
        "dialects.test_cases::test_case[canal/seatunnel_broken]",
    ),
    "type missing, no text or unknown; DML without image and sql; DML with isDdl true": (
        "dialects.canal.test_decode::test_a_member_of_the_wrong_form_is_refused",
        "dialects.canal.test_decode::test_an_unknown_type_names_what_is_known",
        "dialects.canal.test_statements::test_neither_rows_nor_a_statement",
        "dialects.test_cases::test_case[canal/seatunnel_empty_object]",
        "dialects.test_cases::test_case[canal/seatunnel_insert_without_rows]",
        "dialects.test_cases::test_case[canal/seatunnel_unknown_type]",
    ),
    "data or old no array, rows no objects or null, cells (but for flink_cdc and auto) nested or no text": (
        "dialects.canal.test_images::test_undocumented_shapes_are_refused",
        "dialects.canal.test_writers::test_the_rows_of_seatunnel_are_an_option",
        "dialects.canal.test_writers::test_nested_cells_are_refused_elsewhere",
        "dialects.canal.test_writers::test_flink_cdc_update",
    ),
    "lengths that differ, old with columns of its own, DELETE with two images, ambiguous shapes of 6.5 B": (
        "dialects.canal.test_images::test_lengths_that_differ_pair_nothing",
        "dialects.canal.test_images::test_undocumented_shapes_are_refused",
        "dialects.canal.test_images::test_a_deleted_row_sent_twice",
        "dialects.canal.test_variant::test_table_b_new_row_in_old",
        "dialects.canal.test_variant::test_table_b_new_row_in_both",
        "dialects.canal.test_variant::test_table_b_deleted_row_in_both",
        "dialects.canal.test_variant::test_table_b_neither_row_nor_sql",
        "dialects.canal.test_variant::test_table_b_update_with_old_only",
        "dialects.canal.test_variant::test_table_b_more_columns_in_old",
        "dialects.canal.test_variant::test_table_b_two_full_images",
    ),
    "a row without its key column is read, and noted": (
        "dialects.canal.test_events::test_the_vendors_delete_without_its_key_gets_through",
        "dialects.canal.test_images::test_a_minimal_update_lacks_its_key",
    ),
    "cells that their type cannot hold: an issue, not a dead letter, unless of the key": (
        "dialects.canal.test_values::test_bytes",
        "dialects.canal.test_values::test_numbers",
        "dialects.canal.test_values::test_labels_of_open_source_canal",
        "dialects.canal.test_values::test_json_documents",
        "dialects.canal.test_values::test_dates_and_times",
        "translation.test_translate::TestKey::test_column_with_an_issue",
    ),
    "_tidb: a key alone is noted, a claim check refused (the row is elsewhere), a watermark is progress": (
        "dialects.canal.test_writers::test_ticdc_rows_with_their_key_only",
        "dialects.canal.test_writers::test_ticdc_claim_check",
        "dialects.canal.test_writers::test_ticdc_watermark",
        "dialects.canal.test_writers::test_ticdc_watermark_without_its_time",
    ),
    "evidence that conflicts: noted where one image is clear, refused or stopped where two are not": (
        "dialects.canal.test_variant::test_two_images_against_the_declaration_are_refused",
        "dialects.canal.test_variant::test_two_contradictions_are_one_conflict",
        "dialects.canal.test_images::test_a_deleted_row_in_old",
        "dialects.canal.test_continuity::TestHints::test_the_swap_itself",
        "dialects.canal.test_swap::TestStream::test_read_as_legacy_it_stops_after_the_restart",
        "service.test_guards::test_nothing_from_the_contrary_message_on_is_written",
    ),
}

DO_NOT: Mapping[str, Tests] = {
    "order or drop by id, es, ts, gtid": (
        "dialects.canal.test_pitfalls::test_canal_2048_and_4839_duplicates_after_a_restart",
        "dialects.canal.test_decode::test_the_gtid_names_a_transaction_for_dts_only",
    ),
    "trust isDdl alone": (
        "dialects.canal.test_statements::test_statements_are_schema_changes",
        "dialects.canal.test_statements::test_neither_rows_nor_a_statement",
    ),
    "trust sqlType": ("dialects.canal.test_pitfalls::test_canal_4652_and_4653_sql_type_of_a_null_text",),
    "take absent for null": (
        "dialects.canal.test_images::test_null_in_old_was_null",
        "dialects.canal.test_pitfalls::test_flink_14693_null_in_old_is_not_unchanged",
    ),
    "pair by content": (
        "dialects.canal.test_images::test_identical_rows_are_rows_of_their_own",
        "dialects.canal.test_pitfalls::test_canal_4352_pairing_of_several_rows",
    ),
    "search all of old": ("dialects.canal.test_images::test_rows_pair_by_index_only",),
    "lower-case names": ("dialects.canal.test_checklist::test_names_keep_their_case",),
    "assume one row in a message": ("dialects.canal.test_decode::test_rows_keep_their_order_and_number",),
    "assume DDL and rows in one partition": (
        "dialects.canal.test_checklist::test_a_row_needs_no_other_message",
        "dialects.canal.test_pitfalls::test_paimon_1526_schema_from_mysql_type",
    ),
}
"""One box in §15; here each thing that it forbids has its line."""

BOXES = boxes({"Accept": ACCEPT, "Produce": PRODUCE, "Reject": REJECT, "Do not": DO_NOT})
"""Every box, in the order of §15, and the tests that show it."""


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_the_tests_of_a_box_exist(box: str) -> None:
    """The index names tests, and none that was renamed or removed."""
    assert BOXES[box]
    assert [] == [test for test in BOXES[box] if not exists(test)]


# -- parts of boxes that no other module shows


@pytest.mark.parametrize("value", [None, 1, "x", [], {"type": "DELETE", "data": [{"id": "8"}]}])
def test_unknown_members_are_ignored(value: Any) -> None:
    """Whatever they hold: the outcome is that without them."""
    assert decode(UPDATE) == decode(update(more=value))


@pytest.mark.parametrize(
    ("member", "body"),
    [
        ("data", of_type("DELETE", None, [{"id": "7"}])),
        ("old", of_type("DELETE", [{"id": "7"}], None)),
        ("old", of_type("INIT", [{"id": "7"}], None)),
        ("sqlType", update(sqlType=None)),
    ],
)
def test_absent_members_of_dts_are_null(member: str, body: dict[str, Any]) -> None:
    """DTS leaves out the image that an operation does not have, and need not send `sqlType`."""
    absent = {name: value for name, value in body.items() if name != member}
    assert decode(body, profile="dts") == decode(absent, profile="dts")


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1])
def test_id_is_a_64_bit_integer(number: int) -> None:
    """Every digit is kept, beyond what a double holds too."""
    assert str(number) == row(update(id=number)).pos_native


@pytest.mark.parametrize("profile", ["oss", "dts", "ticdc", "flink_cdc", "auto"])
@pytest.mark.parametrize("member", ["id", "es", "ts"])
def test_integers_as_text_are_refused(member: str, profile: str) -> None:
    """No known writer does it, and no profile is lenient."""
    error = refused(update(**{member: str(UPDATE[member])}), profile=profile)
    assert ("INVALID_FIELD", f"$.{member}") == (error.code, error.path)


BODY = json.dumps(UPDATE).encode()
LZ4 = b"\x04\x22\x4d\x18\x60\x40\x82" + (len(BODY) | 1 << 31).to_bytes(4, "little") + BODY + bytes(4)
"""An LZ4 frame with one stored block: the message itself stands in it."""


@pytest.mark.parametrize("value", [gzip.compress(BODY, mtime=0), LZ4], ids=["gzip", "lz4"])
def test_compressed_bytes_are_refused(value: bytes) -> None:
    """A value that its writer compressed is no JSON; what Kafka compresses, its client has opened before."""
    with pytest.raises(MessageError) as caught:
        canal().decode(message(value))
    assert "MALFORMED_JSON" == caught.value.code


def test_names_keep_their_case() -> None:
    """Two columns may differ in case alone; databases, tables and keys are named as they are sent."""
    names = {"database": "Shop", "table": "Orders"}
    change = row(
        of_type("INSERT", [{"ID": "1", "id": "2"}], mysqlType={"ID": "int", "id": "int"}, pkNames=["ID"], **names)
    )
    assert (TableName("Shop", None, "Orders"), {"ID": 1, "id": 2}) == (change.table, change.after)
    assert ("ID",) == change.key_columns
    assert change.schema is not None
    assert [("ID", 1), ("id", None)] == [(column.name, column.key) for column in change.schema.columns]
    ddl = other(of_type("ALTER", sql="ALTER TABLE Orders ADD C INT", **names)).ddl
    assert ddl is not None
    assert ["Shop.Orders"] == ddl.tables


def test_a_row_needs_no_other_message() -> None:
    """DDL may lie in another partition, before or after its rows: with or without it, they are read the same."""
    types = {**UPDATE["mysqlType"], "more": "int"}
    wider = of_type("INSERT", [{"id": "7", "name": "new", "n": None, "more": "1"}], mysqlType=types)
    ddl = of_type("ALTER", sql="ALTER TABLE orders ADD more INT", mysqlType=None, pkNames=None)
    elsewhere = msgspec.structs.replace(message(json.dumps(ddl).encode()), partition=1)
    alone, informed = canal(), canal()
    informed.decode(elsewhere)
    assert {"id": 7, "name": "new", "n": None, "more": 1} == row(wider, alone).after
    assert decode(wider, alone) == decode(wider, informed)
    assert decode(UPDATE, alone) == decode(UPDATE, informed)  # a row from before the DDL
