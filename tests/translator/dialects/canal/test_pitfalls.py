"""Canal: pitfalls that users of other readers reported (§12), named after their issues."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from cdc_core.envelope import Issue
from tests.translator.dialects.canal.messages import (
    FULL,
    UPDATE,
    canal,
    decode,
    message,
    of_type,
    refused,
    row,
    rows,
    update,
)
from translator.message import Limits, RowChange, Skip
from translator.translation.translate import Events, Translator

NEW = {"id": "7", "name": "new", "n": None}
AFTER = {"id": 7, "name": "new", "n": None}


def inserted(type_: str, cell: str | None, **options: Any) -> RowChange:
    return row(of_type("INSERT", [{"c": cell}], mysqlType={"c": type_}, pkNames=None), **options)


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in UPDATE.items() if name not in names}


def test_canal_1028_and_1163_null_written_as_empty() -> None:
    """NULL written as "" or dropped (≤1.1.1): "" in a number is an issue; a dropped column is absent, never null."""
    change = row(of_type("INSERT", [{"id": "7", "n": ""}]))
    assert ({"id": 7}, [Issue("n", "NOT_AN_INTEGER", "")]) == (change.after, change.issues)
    assert {"c": ""} == inserted("varchar(9)", "").after


def test_canal_4267_and_4504_null_or_short_old() -> None:
    """UPDATE with null or short `old` (≤1.1.6): the new row is kept, and the old one is unknown."""
    assert (None, None) == (row(update(old=None)).before, row(update(old=None)).notes)
    short = rows(update(data=[NEW, {**NEW, "id": "8"}], old=[{"name": "old"}]))
    assert [(None, ["OLD_LENGTH_MISMATCH"])] * 2 == [(change.before, change.notes) for change in short]


@pytest.mark.requirement("canal.do_not.5")
def test_canal_4352_pairing_of_several_rows() -> None:
    """Rows pair by index, and each identical row keeps its own `old`."""
    changes = rows(update(data=[NEW] * 3, old=[{"name": "a"}, {"n": "2"}, {"name": "c"}]))
    assert [{"name": "a"}, {"n": 2}, {"name": "c"}] == [change.before for change in changes]


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [("b", "enum('a','b')", "2"), ("", "enum('a','b')", "0"), ("it's,)", "enum('a','it''s,)')", "2")],
)
def test_canal_1008_2813_and_5562_enum_as_index(value: str, type_: str, text: str) -> None:
    """An ENUM index gets its label from `mysqlType`."""
    assert {"c": value} == inserted(type_, text).after


@pytest.mark.requirement("canal.produce.4")
@pytest.mark.parametrize("type_", ["blob", "varbinary(20)", "longblob"])
def test_canal_804_2101_4584_and_5056_binary_shows_as_latin1(type_: str) -> None:
    """Each byte is one character, so UTF-8 text in a BLOB is decoded to its bytes."""
    raw = "中文".encode()
    assert {"c": base64.b64encode(raw).decode()} == inserted(type_, raw.decode("latin-1")).after


def test_canal_2522_4982_and_5355_timestamp_zone() -> None:
    """The zone is configured. Without it, no instant is claimed."""
    change = inserted("timestamp", "2024-05-06 07:08:09", timezone="+08:00")
    assert {"c": "2024-05-05T23:08:09Z"} == change.after
    assert {"c": "2024-05-06T07:08:09"} == inserted("timestamp", "2024-05-06 07:08:09").after


@pytest.mark.requirement("canal.produce.3")
def test_canal_2257_time_beyond_a_day() -> None:
    """TIME hour 100: versions ≤1.1.4 wrote "00", which cannot be detected. Later versions are read unchanged."""
    assert {"c": "100:00:00"} == inserted("time", "100:00:00").after


@pytest.mark.requirement("canal.do_not.3")
@pytest.mark.parametrize("number", [12, -4, 2005, 1111, "x"])
def test_canal_4652_and_4653_sql_type_of_a_null_text(number: Any) -> None:
    """`sqlType` depends on the value and the version, so it is never used."""
    body = of_type("INSERT", [{"c": None}, {"c": "t"}], mysqlType={"c": "text"}, sqlType={"c": number}, pkNames=None)
    assert [{"c": None}, {"c": "t"}] == [change.after for change in rows(body)]


@pytest.mark.requirement("canal.accept.3", "canal.do_not.1")
def test_canal_2048_and_4839_duplicates_after_a_restart() -> None:
    """A resent batch gives the same rows under other ids. Nothing is dropped by `id`, `es` or `ts`."""
    translator = Translator("s", canal(), Limits())
    value = json.dumps(UPDATE).encode()
    first, again = (translator.translate(msgspec.structs.replace(message(value), offset=at)) for at in (5, 6))
    assert isinstance(first, Events)
    assert isinstance(again, Events)
    assert ["s/raw.shop/0/5/0", "s/raw.shop/0/6/0"] == [event.id for event in (*first.events, *again.events)]
    assert first.events[0].after == again.events[0].after


@pytest.mark.parametrize("value", [b"null", b" null\r\n"])
def test_canal_3787_and_1083_null_bodies(value: bytes) -> None:
    """Null bodies are skipped and counted."""
    assert Skip("null") == canal().decode(message(value))


@pytest.mark.requirement("canal.accept.2")
def test_canal_1408_is_ddl_null() -> None:
    """isDdl can be null, as seen in the adapter log."""
    assert decode(without("isDdl")) == decode(update(isDdl=None)) == decode(UPDATE)


@pytest.mark.requirement("canal.accept.2")
@pytest.mark.parametrize("members", [{"gtid": None}, {"gtid": "", "pkNames": None}])
def test_canal_1517_and_5056_without_gtid_and_key(members: dict[str, Any]) -> None:
    """Real messages lack gtid, or have gtid "" or a null pkNames, so these members are optional."""
    assert AFTER == row(update(**members)).after


@pytest.mark.requirement("canal.do_not.4")
def test_flink_14693_null_in_old_is_not_unchanged() -> None:
    """null in `old` was NULL; absent is unchanged (FLINK-19446)."""
    change = row(update(data=[FULL], old=[{"name": None}]))
    assert ({"name": None}, ["name"]) == (change.before, change.changed)


@pytest.mark.requirement("canal.accept.2")
@pytest.mark.parametrize("profile", ["oss", "dts", "auto"])
def test_flink_23207_init(profile: str) -> None:
    """INIT is a row of the full load (FLINK-32862)."""
    change = row(of_type("INIT", [NEW]), profile=profile)
    assert ("r", AFTER) == (change.op, change.after)


@pytest.mark.requirement("canal.accept.2")
def test_paimon_2112_and_2115_pk_names_null() -> None:
    """pkNames is optional."""
    change = row(update(pkNames=None))
    assert ((), "none") == (change.key_columns, change.key_kind)


def test_paimon_3176_update_without_old() -> None:
    """An UPDATE without `old` is accepted."""
    change = row(without("old"))
    assert (AFTER, None) == (change.after, change.before)


@pytest.mark.parametrize("profile", ["oss", "dts_legacy"])
def test_paimon_4453_delete_with_null_data(profile: str) -> None:
    """By the legacy rule, the row in `old` is the deleted one. Without any row, the error is clear."""
    assert {"id": 7, "name": "old", "n": 1} == row(of_type("DELETE", None, [FULL]), profile=profile).before
    assert "neither rows" in refused(of_type("DELETE", None, None), profile=profile).reason


@pytest.mark.requirement("canal.do_not.9")
def test_paimon_1526_schema_from_mysql_type() -> None:
    """The schema is that of the row message, so it has a new column whatever DDL was seen."""
    body = of_type("INSERT", [{**NEW, "more": "1"}], mysqlType={**UPDATE["mysqlType"], "more": "int"})
    schema = row(body).schema
    assert schema is not None
    assert ["id", "name", "n", "more"] == [column.name for column in schema.columns]


def test_paimon_2056_type_row() -> None:
    """No product that writes "ROW" is known, so it is rejected."""
    assert "$.type" == refused(update(type="ROW")).path


def test_flink_sink_writes_an_update_as_two_messages() -> None:
    """Its DELETE and INSERT have no table, so it is unknown whose rows they are."""
    assert "TABLE_UNKNOWN" == refused({"data": [NEW], "type": "DELETE"}, profile="flink_cdc").code
