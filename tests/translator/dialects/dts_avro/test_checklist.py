"""DTS Avro: which tests show each box of the checklist (§11); here those not elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.repository.pages import page
from tests.translator.dialects._checklist import Tests, boxes, exists
from tests.translator.dialects.dts_avro.composer import NONE, NULL, compose, decimal, fields, integer, row
from tests.translator.dialects.dts_avro.messages import MYSQL, refused, row_of, value_of
from translator.dialects.dts_avro import DtsAvro
from translator.dialects.dts_avro.types import MICROSECOND_SOURCES
from translator.message import Changes, Message, RowChange, Setup, TableName

DECODE: Mapping[str, Tests] = {
    "one V3 schema, Record of named types; no registry": (
        "dialects.dts_avro.test_reader::test_the_schema_is_the_published_one",
    ),
    "null or at most two bytes: skipped under a reason of their own": (
        "dialects.dts_avro.test_decode::test_a_mock_value_is_skipped",
    ),
    "the branch of a value is known": ("dialects.dts_avro.test_differential::test_three_readers_agree",),
    "14 fields, then nothing or exactly one long": (
        "dialects.dts_avro.test_reader::test_version_3_has_the_last_field",
        "dialects.dts_avro.test_reader::test_version_2_has_no_last_field",
        "dialects.dts_avro.test_reader::test_bytes_after_the_record_are_refused",
        "dialects.dts_avro.test_reader::test_truncation_is_never_a_success",
    ),
    "v2 or v3 is told (in `variant`); Record.version is no schema version, and kept": (
        "dialects.dts_avro.test_reader::test_the_version_field_is_no_schema_version",
        "dialects.dts_avro.test_decode::test_writer_position_and_transaction",
        "dialects.dts_avro.test_decode::test_extras_keep_what_has_no_field",
        "dialects.test_cases::test_case[dts_avro/mysql_delete_v2]",
    ),
    "nothing of a message shows in another; columns are remembered for the same bytes only": (
        "dialects.dts_avro.test_differential::test_what_the_reader_remembers_changes_nothing",
        "dialects.dts_avro.test_layout::test_layouts_are_forgotten_before_they_fill_the_memory",
        "dialects.dts_avro.test_checklist::test_a_table_that_changes_its_columns",
        "dialects.dts_avro.test_patterns::test_a_dialect_that_knows_the_table_says_the_same",
        "dialects.dts_avro.test_patterns::test_odd_values_of_a_known_table",
        "dialects.dts_avro.test_patterns::test_patterns_of_all_tables_have_a_bound",
        "dialects.dts_avro.test_layout::test_a_layout_that_was_given_up_leaves_no_issue",
    ),
    "what fastavro lets through is refused": (
        "dialects.dts_avro.test_reader::test_an_index_outside_the_union_is_refused",
        "dialects.dts_avro.test_reader::test_an_ordinal_outside_the_enum_is_refused",
        "dialects.dts_avro.test_reader::test_an_operation_outside_the_enum_is_refused",
        "dialects.dts_avro.test_reader::test_an_int_beyond_32_bits_is_refused",
        "dialects.dts_avro.test_reader::test_a_varint_beyond_64_bits_is_refused",
        "dialects.dts_avro.test_reader::test_a_tag_twice_is_refused",
        "dialects.dts_avro.test_reader::test_a_count_beyond_the_data_costs_nothing",
        "dialects.dts_avro.test_differential::test_damage_is_judged_alike",
        "dialects.dts_avro.test_differential::test_every_bit_is_judged_alike",
    ),
}

REJECT: Mapping[str, Tests] = {
    "truncated, over-long, bad UTF-8, unknown ordinal (named) and union index": (
        "dialects.dts_avro.test_reader::test_truncation_is_never_a_success",
        "dialects.dts_avro.test_reader::test_text_must_be_utf8",
        "dialects.dts_avro.test_reader::test_an_ordinal_outside_the_enum_is_refused",
        "dialects.dts_avro.test_reader::test_an_index_outside_the_union_is_refused",
        "dialects.dts_avro.test_mutations::test_seeded_mutations",
    ),
    "Confluent prefix, container, single object: named, and only after reading failed": (
        "dialects.dts_avro.test_reader::test_other_formats_are_named",
        "dialects.dts_avro.test_reader::test_first_bytes_alone_convict_nobody",
    ),
    "JSON: named, and only after reading failed": (
        "dialects.dts_avro.test_reader::test_other_formats_are_named",
        "dialects.dts_avro.test_reader::test_first_bytes_alone_convict_nobody",
        "dialects.test_cases::test_case[dts_avro/json_for_another_dialect]",
    ),
    "images, columns and object names that do not fit the operation": (
        "dialects.dts_avro.test_decode::test_contradictory_records_are_dead_letters",
        "dialects.dts_avro.test_decode::test_a_row_without_a_table_is_a_dead_letter",
        "dialects.dts_avro.test_decode::test_a_document_of_mongodb_is_its_value_and_its_id",
    ),
    "DDL with no text in either image": ("dialects.dts_avro.test_decode::test_contradictory_records_are_dead_letters",),
    "values without a form: issues, a dead letter in a key; micros or nanos; a unit can be declared": (
        "dialects.dts_avro.test_values::test_mysql",
        "dialects.dts_avro.test_times::test_the_unit_of_a_fraction",
        "dialects.dts_avro.test_times::test_a_fraction_too_large_for_micros_is_nanos",
        "dialects.dts_avro.test_times::test_a_second_has_less_than_ten_to_the_nine_parts",
        "translation.test_translate::TestKey::test_column_with_an_issue",
    ),
    "pk_uk_info of no use: the row is kept without a key, and noted": ("dialects.dts_avro.test_layout::test_the_key",),
}

MAP: Mapping[str, Tests] = {
    "row operations, INIT too; DDL and COMMAND are schema changes": (
        "dialects.dts_avro.test_decode::test_row_operations",
        "dialects.dts_avro.test_decode::test_an_initial_row_may_come_in_the_before_image",
        "dialects.dts_avro.test_statements::test_statements",
        "dialects.dts_avro.test_statements::test_a_command_is_a_statement",
        "dialects.dts_avro.test_statements::test_a_truncate_of_the_named_table_empties_it",
        "dialects.dts_avro.test_statements::test_a_truncate_that_is_anything_more_stays_text",
        "dialects.test_cases::test_case[dts_avro/mysql_init]",
    ),
    "transaction marks by option, progress, and the rest counted by name": (
        "dialects.dts_avro.test_decode::test_every_operation_of_the_schema_has_its_line",
        "dialects.dts_avro.test_decode::test_what_carries_no_change_is_skipped_by_name",
        "dialects.dts_avro.test_statements::test_transaction_marks_are_an_option",
        "dialects.dts_avro.test_statements::test_progress",
        "dialects.dts_avro.test_statements::test_images_and_fields_of_marks_are_read_and_left",
    ),
    "columns by name, with the source's name of a known type": (
        "dialects.dts_avro.test_layout::test_the_schema_lists_every_column",
    ),
    "null, EmptyObject.NONE (absent and unavailable) and EmptyObject.NULL (null, and noted)": (
        "dialects.dts_avro.test_decode::test_null_absent_and_withheld_stay_three_things",
        "dialects.dts_avro.test_checklist::test_null_by_name_is_noted",
        "dialects.test_cases::test_case[dts_avro/mysql_withheld]",
    ),
    "a column that an update withholds after is unavailable, not taken from before": (
        "dialects.dts_avro.test_decode::test_what_an_update_withholds_is_told_by_its_after_image",
    ),
    "key: PRIMARY in its order, a unique one by option, else none": (
        "dialects.dts_avro.test_layout::test_the_key",
        "dialects.test_cases::test_case[dts_avro/mysql_no_key]",
    ),
    "names of one to three parts; logical ones by option, the physical one kept": (
        "dialects.dts_avro.test_decode::test_names",
        "dialects.dts_avro.test_decode::test_logical_names_of_sharded_sources",
        "dialects.test_cases::test_case[dts_avro/escaped_dots]",
    ),
    "source time in seconds or milliseconds, readerThroughoutTime in milliseconds": (
        "dialects.dts_avro.test_decode::test_the_time_of_the_commit",
        "dialects.dts_avro.test_decode::test_the_time_of_the_capture",
    ),
    "position, txid, id and tags are opaque text; MySQL's position taken apart too": (
        "dialects.dts_avro.test_decode::test_writer_position_and_transaction",
        "dialects.dts_avro.test_decode::test_extras_keep_what_has_no_field",
        "dialects.dts_avro.test_decode::test_a_position_of_another_form_is_opaque",
        "dialects.dts_avro.test_decode::test_the_transaction",
    ),
    "order by topic, partition and offset; table, key and position are in the event, and nothing is dropped by them": (
        "dialects.dts_avro.test_history::test_a_topic_read_twice_in_part",
        "dialects.dts_avro.test_checklist::test_the_same_row_under_another_offset_is_an_event_of_its_own",
    ),
    "what the partition policy does to the order is documented": (
        "dialects.dts_avro.test_checklist::test_the_page_speaks_of_partitions",
    ),
}

VALUES: Mapping[str, Tests] = {
    "Integer, Decimal, Float; a special Decimal is an issue with its text, and text where the type allows": (
        "dialects.dts_avro.test_values::test_mysql",
        "dialects.dts_avro.test_values::test_postgresql",
        "dialects.dts_avro.test_values::test_a_declared_type_wins",
        "dialects.dts_avro.test_checklist::test_special_decimals_as_text",
    ),
    "Timestamp is an instant in UTC, in micros": ("dialects.dts_avro.test_values::test_mysql",),
    "DateTime by the parts that are there; negative and long times; zero dates are issues with their text": (
        "dialects.dts_avro.test_values::test_mysql",
        "dialects.dts_avro.test_values::test_oracle",
        "dialects.dts_avro.test_times::test_the_unit_of_a_fraction",
        "dialects.dts_avro.test_checklist::test_the_sources_of_micros",
        "dialects.test_cases::test_case[dts_avro/mysql_values_without_form]",
    ),
    "TimestampWithTimeZone: the offset applied, else text with the zone": (
        "dialects.dts_avro.test_times::test_zones",
        "dialects.dts_avro.test_values::test_postgresql",
    ),
    "Character: the table of charsets, any case; unknown or undecodable is base64 with the charset": (
        "dialects.dts_avro.test_values::test_every_charset_reads_ascii",
        "dialects.dts_avro.test_values::test_latin1_of_mysql_passes_its_five_holes",
        "dialects.dts_avro.test_values::test_mysql",
        "dialects.dts_avro.test_values::test_oracle",
    ),
    "bytes, jsonb, bool; an unknown type of an object passes": (
        "dialects.dts_avro.test_values::test_postgresql",
        "dialects.dts_avro.test_values::test_mysql",
        "dialects.test_cases::test_case[dts_avro/postgresql_insert]",
    ),
    "geometry: WKB with SRID 0 or none; what is neither is an issue with base64; WKT is text": (
        "dialects.dts_avro.test_values::test_mysql",
        "dialects.dts_avro.test_values::test_postgresql",
    ),
}

TESTS_TO_HAVE: Mapping[str, Tests] = {
    "records as published in V2 and V3, every branch, operation and truncation, each unit, escaped dots, charsets": (
        "dialects.dts_avro.test_reader::test_the_cases_are_what_the_composer_writes",
        "dialects.dts_avro.test_differential::test_three_readers_agree_on_the_cases",
        "dialects.dts_avro.test_fast_path::test_both_ways_agree",
        "dialects.dts_avro.test_mutations::test_a_truncated_message_is_an_outcome_or_a_message_error",
        "dialects.dts_avro.test_history::test_the_tables_of_the_source_come_back",
    ),
    "a second implementation of Avro, and bytes written by hand": (
        "dialects.dts_avro.test_differential::test_three_readers_agree",
        "dialects.dts_avro.test_reader::test_an_index_outside_the_union_is_refused",
        "dialects.dts_avro.test_differential::test_an_index_in_two_bytes_is_that_index",
    ),
}

BOXES = boxes(
    {
        "Decode": DECODE,
        "Reject": REJECT,
        "Map": MAP,
        "Values": VALUES,
        "Tests": TESTS_TO_HAVE,
    }
)
"""Every box, in the order of §11, and the tests that show it."""


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_the_tests_of_a_box_exist(box: str) -> None:
    """The index names tests, and none that was renamed or removed."""
    assert BOXES[box]
    assert [] == [test for test in BOXES[box] if not exists(test)]


# -- parts of boxes that no other module shows


def test_a_table_that_changes_its_columns() -> None:
    """The same table with a column more, with the same metaVersion or without: each row is read by its own columns."""
    dialect = DtsAvro(Setup("src"), {})
    narrow = row("INSERT", {"a": (3, integer(1))})
    wide = row("INSERT", {"a": (3, integer(1)), "b": (3, integer(2))})
    renamed = row("INSERT", {"x": (3, integer(1))})
    retyped = row("INSERT", {"a": (8, integer(1))})
    after = []
    for value in (narrow, wide, renamed, retyped, narrow):
        outcome = dialect.decode(Message("raw", 0, 0, 0, None, value))
        assert isinstance(outcome, Changes)
        (change,) = outcome.changes
        assert isinstance(change, RowChange)
        assert change.schema is not None
        after.append((change.after, change.schema.columns[0].native))
    one = ({"a": 1}, "INT32")
    assert [one, ({"a": 1, "b": 2}, "INT32"), ({"x": 1}, "INT32"), ({"a": 1}, "INT64"), one] == after


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE"])
def test_null_by_name_is_noted(operation: str) -> None:
    """EmptyObject.NULL was never seen: it is null, and the note counts it."""
    change = row_of(row(operation, {"a": (3, integer(1)), "b": (3, NULL), "c": (3, NONE)}))
    image = change.before if operation == "DELETE" else change.after
    assert ({"a": 1, "b": None}, ["c"], ["EMPTY_OBJECT_NULL=b"]) == (image, change.unavailable, change.notes)


def test_the_same_row_under_another_offset_is_an_event_of_its_own() -> None:
    """A writer that resumes sends rows again: nothing is dropped here, and the content key is in the event."""
    value = row("INSERT", {"a": (3, integer(1))}, tags={"pk_uk_info": '{"PRIMARY":["a"]}'})
    first, again = row_of(value), row_of(value)
    assert first == again
    assert (TableName("shop", None, "orders"), "72469@78", ("a",)) == (again.table, again.pos_native, again.key_columns)


def test_the_page_speaks_of_partitions() -> None:
    """An operator must know what order each policy keeps."""
    text = page("dialects/dts_avro.md")
    for words in ("hash of primary key", "All to partition 0", "in no order with the rows"):
        assert words in text


@pytest.mark.parametrize("special", ["NaN", "Infinity", "-Infinity", "~"])
def test_special_decimals_as_text(special: str) -> None:
    """No decimal column can hold them, an undeclared one can; either way the text is there."""
    assert ("decimal", ("NOT_A_NUMBER", special)) == value_of(MYSQL, 246, decimal(special))
    assert ("unknown", special) == value_of(MYSQL, 77, decimal(special))


def test_the_sources_of_micros() -> None:
    """MySQL and PostgreSQL, and no other (§4.4)."""
    assert frozenset({"MySQL", "PostgreSQL"}) == MICROSECOND_SOURCES


def test_an_image_longer_than_its_columns() -> None:
    """Nor shorter: pairing by index would put values into wrong columns."""
    for image in ([integer(1)], [integer(1)] * 3):
        value = compose("INSERT", fields=fields(a=3, b=3), afterImages=image)
        assert ("INVALID_FIELD", "$.afterImages") == refused(value)
