"""Records -> changes: operations, images, tables, keys, schemas and times (§3, 5 and 6)."""

from typing import Any, cast

import pytest

from cdc_core.envelope import Issue, Tx
from tests.translator.dialects.dts_avro.composer import (
    NONE,
    NULL,
    compose,
    fields,
    integer,
    local,
    record,
    row,
    text,
)
from tests.translator.dialects.dts_avro.messages import ORACLE, decode, refused, row_of
from tests.translator.dialects.made import made
from translator.dialects.dts_avro import DtsAvro
from translator.dialects.dts_avro.decode import OPERATIONS
from translator.dialects.dts_avro.schema import V3
from translator.errors import ConfigError, FatalError
from translator.message import Setup, Skip, TableName

A, B = integer(1), integer(2)
COLUMNS = fields(a=3, b=3)


# -- operations


@pytest.mark.requirement("dts_avro.map.2")
def test_every_operation_of_the_schema_has_its_line() -> None:
    """The tables cover exactly the operations of the wire format."""
    (operation,) = [field for field in cast(dict[str, Any], V3)["fields"] if field["name"] == "operation"]
    assert set(operation["type"]["symbols"]) == OPERATIONS


@pytest.mark.requirement("dts_avro.map.2")
@pytest.mark.parametrize(
    ("expected", "operation"),
    [
        ("transaction_mark", "BEGIN"),
        ("transaction_mark", "COMMIT"),
        ("transaction_mark", "ROLLBACK"),
        ("transaction_mark", "ABORT"),
        ("noop", "NOOP"),
        ("fill", "FILL"),
        ("finish", "FINISH"),
        ("control", "CONTROL"),
        ("rdb", "RDB"),
    ],
)
def test_what_carries_no_change_is_skipped_by_name(expected: str, operation: str) -> None:
    """The operation decides, and never the length of the record."""
    assert Skip(expected) == decode(compose(operation, objectName=None))
    assert Skip(expected) == decode(compose(operation, sourcePosition="x" * 500))


@pytest.mark.requirement("dts_avro.decode.2")
@pytest.mark.parametrize(
    ("expected", "value"), [("tombstone", None), ("empty", b""), ("empty", b"\0"), ("empty", b"{}")]
)
def test_a_mock_value_is_skipped(expected: str, value: bytes | None) -> None:
    """A null or a value of at most two bytes only moves the offset."""
    assert Skip(expected) == decode(value)


@pytest.mark.requirement("dts_avro.map.1")
@pytest.mark.parametrize(
    ("op", "before", "after", "operation", "images"),
    [
        ("c", None, {"a": 1, "b": 2}, "INSERT", {"afterImages": [A, B]}),
        ("u", {"a": 1, "b": 1}, {"a": 1, "b": 2}, "UPDATE", {"beforeImages": [A, A], "afterImages": [A, B]}),
        ("u", None, {"a": 1, "b": 2}, "UPDATE", {"afterImages": [A, B]}),
        ("d", {"a": 1, "b": 2}, None, "DELETE", {"beforeImages": [A, B]}),
        ("r", None, {"a": 1, "b": 2}, "INIT", {"afterImages": [A, B]}),
    ],
)
def test_row_operations(op: str, before: object, after: object, operation: str, images: dict[str, Any]) -> None:
    """Each row operation gives its letter and the images that were sent."""
    change = row_of(compose(operation, fields=COLUMNS, **images))
    assert (op, before, after) == (change.op, change.before, change.after)
    assert (False, False, None) == (change.before_sparse, change.after_sparse, change.changed)


@pytest.mark.requirement("dts_avro.map.1")
def test_an_initial_row_may_come_in_the_before_image() -> None:
    """INIT was never observed. Its only image is the row, and a note says where it was."""
    change = row_of(compose("INIT", fields=COLUMNS, beforeImages=[A, B]))
    assert ("r", None, {"a": 1, "b": 2}) == (change.op, change.before, change.after)
    assert ["INIT_FROM_BEFORE"] == change.notes


@pytest.mark.requirement("dts_avro.reject.4", "dts_avro.reject.5")
@pytest.mark.parametrize(
    ("code", "path", "operation", "given"),
    [
        ("MISSING_FIELD", "$.afterImages", "INSERT", {}),
        ("MISSING_FIELD", "$.afterImages", "UPDATE", {"beforeImages": [A, B]}),
        ("MISSING_FIELD", "$.beforeImages", "DELETE", {}),
        ("MISSING_FIELD", "$.afterImages", "INIT", {}),
        ("UNSUPPORTED_SHAPE", "$.beforeImages", "INSERT", {"beforeImages": [A, B], "afterImages": [A, B]}),
        ("UNSUPPORTED_SHAPE", "$.beforeImages", "INIT", {"beforeImages": [A, B], "afterImages": [A, B]}),
        ("UNSUPPORTED_SHAPE", "$.afterImages", "DELETE", {"beforeImages": [A, B], "afterImages": [A, B]}),
        ("UNSUPPORTED_SHAPE", "$.afterImages", "INSERT", {"afterImages": "a=1"}),
        ("UNSUPPORTED_SHAPE", "$.beforeImages", "UPDATE", {"beforeImages": "a=1", "afterImages": [A, B]}),
        ("INVALID_FIELD", "$.afterImages", "INSERT", {"afterImages": [A]}),
        ("INVALID_FIELD", "$.beforeImages", "UPDATE", {"beforeImages": [A, B, B], "afterImages": [A, B]}),
        ("MISSING_FIELD", "$.fields", "INSERT", {"fields": None, "afterImages": [A, B]}),
        ("MISSING_FIELD", "$.fields", "INSERT", {"fields": [], "afterImages": []}),
        ("UNSUPPORTED_SHAPE", "$.fields", "INSERT", {"fields": "a,b", "afterImages": [A, B]}),
        ("UNSUPPORTED_SHAPE", "$.fields", "INSERT", {"source": ("MongoDB", "6"), "fields": "a", "afterImages": [A]}),
        ("INVALID_FIELD", "$.afterImages", "INSERT", {"source": ("MongoDB", "6"), "fields": None, "afterImages": [A]}),
        ("MISSING_FIELD", "$.fields", "INSERT", {"source": ("MongoDB", "6"), "fields": [], "afterImages": []}),
        ("INVALID_FIELD", "$.fields", "INSERT", {"fields": fields(a=3) + fields(a=3), "afterImages": [A, B]}),
        ("MISSING_FIELD", "$.afterImages", "DDL", {}),
        ("MISSING_FIELD", "$.afterImages", "DDL", {"afterImages": ""}),
        ("MISSING_FIELD", "$.afterImages", "COMMAND", {"fields": COLUMNS, "afterImages": [A, B]}),
        ("INVALID_FIELD", "$.objectName", "DDL", {"objectName": "a.b.c.d", "afterImages": "drop"}),
    ],
)
def test_contradictory_records_are_dead_letters(code: str, path: str, operation: str, given: dict[str, Any]) -> None:
    """A record whose parts do not fit its operation is rejected with the place and never repaired."""
    assert (code, path) == refused(compose(operation, **{"fields": COLUMNS, **given}))


# -- null, absent, withheld


@pytest.mark.requirement("dts_avro.map.4")
def test_null_absent_and_withheld_stay_three_things() -> None:
    """Branch null and EmptyObject.NULL are null. EmptyObject.NONE is absent and unavailable in either image."""
    columns, cells = fields(a=3, b=3, c=3, d=3), [A, None, NULL, NONE]
    expected = {"a": 1, "b": None, "c": None}
    inserted = row_of(compose("INSERT", fields=columns, afterImages=cells))
    deleted = row_of(compose("DELETE", fields=columns, beforeImages=cells))
    assert (expected, ["d"]) == (inserted.after, inserted.unavailable)
    assert (expected, ["d"]) == (deleted.before, deleted.unavailable)


@pytest.mark.requirement("dts_avro.map.5")
def test_what_an_update_withholds_is_told_by_its_after_image() -> None:
    """A column that only the before image lacks can be written."""
    change = row_of(compose("UPDATE", fields=COLUMNS, beforeImages=[A, NONE], afterImages=[NONE, B]))
    assert ({"a": 1}, {"b": 2}, ["a"]) == (change.before, change.after, change.unavailable)


def test_an_issue_of_both_images_is_one() -> None:
    """An unchanged value without a form is reported once."""
    zero = local(0, 0, 0, 0, 0, 0)
    change = row_of(compose("UPDATE", fields=fields(a=3, t=12), beforeImages=[A, zero], afterImages=[A, zero]))
    assert [Issue("t", "ZERO_DATE", "0000-00-00T00:00:00")] == change.issues
    assert ({"a": 1}, {"a": 1}) == (change.before, change.after)


# -- tables and statements


@pytest.mark.requirement("dts_avro.map.7")
@pytest.mark.parametrize(
    ("expected", "name"),
    [
        (TableName("shop", None, "orders"), "shop.orders"),
        (TableName("shop", "dbo", "orders"), "shop.dbo.orders"),
        (TableName("shop.de", None, "a.b"), "shop\\u002Ede.a\\u002Eb"),
        (TableName("Shop", None, "a\\u002eb"), "Shop.a\\u002eb"),
    ],
)
def test_names(expected: TableName, name: str) -> None:
    """Names are split at dots. A dot inside a name is encoded in six characters with a capital E, and case is kept."""
    assert expected == row_of(row("INSERT", {"a": (3, A)}, objectName=name)).table


@pytest.mark.requirement("dts_avro.reject.4")
@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("TABLE_UNKNOWN", None),
        ("TABLE_UNKNOWN", ""),
        ("TABLE_UNKNOWN", "shop"),
        ("INVALID_FIELD", "a.b."),
        ("INVALID_FIELD", ".b"),
        ("INVALID_FIELD", "a..b"),
        ("INVALID_FIELD", "a.b.c.d"),
    ],
)
def test_a_row_without_a_table_is_a_dead_letter(code: str, name: str | None) -> None:
    """A row needs a database and a table, and neither part can be empty."""
    assert (code, "$.objectName") == refused(row("INSERT", {"a": (3, A)}, objectName=name))


@pytest.mark.requirement("dts_avro.map.7")
def test_logical_names_of_sharded_sources() -> None:
    """With the option, the tags provide the table, and a note keeps the physical name."""
    value = row("INSERT", {"a": (3, A)}, objectName="db_0005.t_11", tags={"l_db_name": "db", "l_tb_name": "t"})
    assert (TableName("db_0005", None, "t_11"), None) == (row_of(value).table, row_of(value).notes)
    logical = row_of(value, logical_names=True)
    assert (TableName("db", None, "t"), ["PHYSICAL_TABLE=db_0005.t_11"]) == (logical.table, logical.notes)


# -- who, when, where


@pytest.mark.requirement("dts_avro.map.8")
@pytest.mark.parametrize(
    ("expected", "timestamp"),
    [
        (1_697_526_120_000_000, 1_697_526_120),
        (1_697_526_120_531_000, 1_697_526_120_531),
        (9_999_999_999_000_000, 9_999_999_999),
        (10_000_000_000_000, 10_000_000_000),
        (None, 0),
        (None, -1),
        (None, 2**62),
    ],
)
def test_the_time_of_the_commit(expected: int | None, timestamp: int) -> None:
    """Times are seconds, or milliseconds from 10^10 on. 0 and invalid times are unknown."""
    assert expected == row_of(row("INSERT", {"a": (3, A)}, sourceTimestamp=timestamp)).ts_commit_us


@pytest.mark.requirement("dts_avro.map.8")
@pytest.mark.parametrize(
    ("expected", "tags"),
    [
        (1_697_526_120_531_000, {"readerThroughoutTime": "1697526120531"}),
        (None, {"readerThroughoutTime": "yesterday"}),
        (None, {"readerThroughoutTime": "9" * 40}),
        (None, {"readerThroughoutTime": "0"}),
        (None, {}),
    ],
)
def test_the_time_of_the_capture(expected: int | None, tags: dict[str, str]) -> None:
    """readerThroughoutTime is in milliseconds."""
    assert expected == row_of(row("INSERT", {"a": (3, A)}, tags=tags)).ts_capture_us


@pytest.mark.requirement("dts_avro.decode.5", "dts_avro.map.9")
def test_writer_position_and_transaction() -> None:
    """The version is certain, product and server are as sent, and so is the position. MySQL's `0` is no transaction."""
    change = row_of(row("INSERT", {"a": (3, A)}))
    assert ("v3", "certain", "MySQL", "1921057203") == (
        change.writer.variant,
        change.writer.variant_basis,
        change.writer.dbms,
        change.writer.server,
    )
    assert ("72469@78", None, None) == (change.pos_native, change.tx, change.ext)
    oracle = row_of(row("INSERT", {"A": (2, None)}, source=ORACLE, sourceTxid="5.12.7", sourcePosition=""))
    assert (None, Tx("5.12.7")) == (oracle.pos_native, oracle.tx)


@pytest.mark.requirement("dts_avro.decode.5", "dts_avro.map.9")
def test_extras_keep_what_has_no_field() -> None:
    """With the option, these are numbers, recovery position, transaction id and every tag, known or not."""
    value = row("INSERT", {"a": (3, A)}, tags={"traceid": "x", "new": "y"})
    assert {
        "version": "0",
        "id": str(record("INSERT")["id"]),
        "bornTimestamp": "1697526120",
        "safeSourcePosition": "72347@78",
        "sourceTxid": "0",
        "binlogOffset": "72469",
        "binlogFile": "78",
        "tag.traceid": "x",
        "tag.new": "y",
    } == row_of(value, extras=True).ext


@pytest.mark.requirement("dts_avro.map.9")
@pytest.mark.parametrize(
    ("source", "position"),
    [(("MySQL", "8"), "72469@78@1"), (("MySQL", "8"), "1<->2"), (("MySQL", "8"), ""), (ORACLE, "72469@78")],
)
def test_a_position_of_another_form_is_opaque(source: tuple[str, str], position: str) -> None:
    """Only MySQL's position is known to be an offset and a file."""
    ext = row_of(row("INSERT", {"a": (3, A)}, source=source, sourcePosition=position), extras=True).ext
    assert ext is not None
    assert not {"binlogOffset", "binlogFile"} & ext.keys()


def test_a_record_of_version_2_has_no_born_timestamp_in_its_extras() -> None:
    """The member is absent and not 0."""
    ext = row_of(row("INSERT", {"a": (3, A)}, schema="v2"), extras=True).ext
    assert ext is not None
    assert "bornTimestamp" not in ext


@pytest.mark.requirement("dts_avro.map.9")
@pytest.mark.parametrize(
    ("expected", "txid", "tags"),
    [
        (Tx("5.12.7"), "5.12.7", {"GTID": "uuid:7"}),
        (Tx("uuid:7"), "0", {"GTID": "uuid:7"}),
        (Tx("uuid:7"), "", {"GTID": "uuid:7"}),
        (None, "0", {}),
    ],
)
def test_the_transaction(expected: Tx | None, txid: str, tags: dict[str, str]) -> None:
    """The transaction is sourceTxid unless that is MySQL's `0`, and otherwise the tag GTID if the source writes it."""
    assert expected == row_of(row("INSERT", {"a": (3, A)}, sourceTxid=txid, tags=tags)).tx


# -- documents


@pytest.mark.requirement("dts_avro.reject.4")
def test_a_document_of_mongodb_is_its_value_and_its_id() -> None:
    """`fields` is null, and images have `_value` and `_id`. The id is the key, and a note explains the row."""
    cells = [text('{"a": 1}', "JSON"), text("5f1e", "XTYPE")]
    source = {"source": ("MongoDB", "6.0"), "objectName": "shop.orders"}
    change = row_of(compose("UPDATE", beforeImages=[None, cells[1]], afterImages=cells, **source))
    expected = {"_value": '{"a": 1}', "_id": "5f1e"}
    assert (expected, {**expected, "_value": None}) == (change.after, change.before)
    assert (("_id",), "primary", ["MONGODB_DOCUMENT"]) == (change.key_columns, change.key_kind, change.notes)


def test_columns_of_mongodb_are_columns() -> None:
    """With `fields`, it is a normal row."""
    change = row_of(compose("INSERT", source=("MongoDB", "6.0"), fields=COLUMNS, afterImages=[A, B]))
    assert ({"a": "1", "b": "2"}, (), None) == (change.after, change.key_columns, change.notes)


# -- options


@pytest.mark.parametrize("options", [{"fraction_units": "nanos"}, {"fraction_unit": "millis"}, {"extras": "perhaps"}])
def test_wrong_options_stop_at_the_start(options: dict[str, Any]) -> None:
    """An unknown option or value is a configuration error."""
    with pytest.raises(ConfigError):
        made(DtsAvro, Setup("src"), options)


def test_there_is_nothing_to_learn() -> None:
    """Every record describes itself, so a metadata document for this dialect is a mistake."""
    with pytest.raises(FatalError):
        made(DtsAvro, Setup("src"), {}).learn("key", b"{}")
